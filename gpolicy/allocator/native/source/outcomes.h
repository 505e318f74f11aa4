/* For every candidate, node or pair: whether it takes an instance, or why not (gpolicy/allocator/placement.py, without
 * the scores). */
#ifndef GPOLICY_OUTCOMES_H
#define GPOLICY_OUTCOMES_H

#include "cluster.h"

/* The number of candidates that fail for each reason, and of those that take the instance. */
struct counts { int64_t failures[REASONS], successes; };

/* The outcomes of one instance in one state. Codes are `enum reason` by row; the code of a secondary is that of a node
 * that reserves nothing for the primary yet. Only rows that have changed are checked again. */
struct outcomes {
    int8_t *primary_codes, *secondary_codes;
    int64_t *refused_pairs; /* for each secondary: primaries for which it reserves too much already */
    int8_t *verdicts;       /* for each policy, without and with exclusive storage */
    struct instance demand;
    unsigned unbounded;
    int64_t as_of;   /* the engine's clock at that time */
    int64_t demands; /* how often all rows were checked, for another demand than before */
    bool known;
    struct counts counts;
};

bool open_outcomes(struct engine *engine);

/* Check all candidates; policies do not bound the resources in `unbounded` (policy_check.h). */
const struct counts *look_at_candidates(struct engine *engine, const struct instance *instance, unsigned unbounded);

/* Whether a pair of candidates takes the instance last given to look_at_candidates(). */
bool pair_fits(const struct engine *engine, const struct instance *instance, int64_t primary, int64_t secondary);

/* List the primaries that fit in `engine->rows`; return their number. */
int64_t fitting_rows(struct engine *engine, const int64_t **rows);

#endif
