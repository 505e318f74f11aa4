/* What becomes of an instance on every candidate, node or pair: it fits, or why it does not
 * (gpolicy/allocator/placement.py, without the scores).
 */
#ifndef GPOLICY_OUTCOMES_H
#define GPOLICY_OUTCOMES_H

#include "cluster.h"

/* How many candidates fail for each reason, and how many take the instance. */
struct counts { int64_t failures[REASONS], successes; };

/* The outcomes of one instance in one state. Codes are `enum reason` per row; a secondary's is that where it keeps
 * nothing for the primary yet. Rows that have changed since are looked at anew, the others stay as they are. */
struct outcomes {
    int8_t *primary_codes, *secondary_codes;
    int64_t *refused_pairs; /* per secondary: primaries that fit, but for which it keeps too much memory already */
    int8_t *verdicts;       /* per policy, without and with exclusive storage */
    struct instance demand;
    unsigned unbounded;
    int64_t as_of; /* the engine's clock then */
    bool known;
    struct counts counts;
};

bool open_outcomes(struct engine *engine);

/* Look at all candidates; policies do not look at the resources in `unbounded` (policy_check.h). */
const struct counts *look_at_candidates(struct engine *engine, const struct instance *instance, unsigned unbounded);

/* Whether a pair of candidates takes the instance last looked at. */
bool pair_fits(const struct engine *engine, const struct instance *instance, int64_t primary, int64_t secondary);

/* List the primaries that fit, in `engine->rows`; return how many. */
int64_t fitting_rows(struct engine *engine, const int64_t **rows);

#endif
