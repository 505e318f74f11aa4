/* Placing one new instance: which candidates fail and why, and the best of the others (gpolicy/allocator/placement.py).
 */
#ifndef GPOLICY_PLACEMENT_H
#define GPOLICY_PLACEMENT_H

#include "cluster.h"

/* Outcomes of an instance on all candidates (nodes, or ordered pairs): how many fail for each reason, how many take it.
 * The codes are `enum reason` per row; a secondary's is that where it keeps nothing for the primary yet. */
struct trial { int64_t failures[REASONS], successes; int8_t *primary_codes, *secondary_codes; };

/* What came of trying every candidate; `primary` is NOWHERE where there is no solution. */
struct attempt { int64_t failures[REASONS], successes, primary, secondary; double score; };

/* Look at all candidates. Policies do not look at the resources in `free` (policy_check.h). */
void try_candidates(struct engine *engine, const struct instance *instance, unsigned free, struct trial *trial);

/* Try to place `instance`, whose number in the table of instances will be `number`; `checked`: only where the N+1 test
 * is passed afterwards. */
void try_allocate(struct engine *engine, const struct instance *instance, int64_t number, bool checked,
                  struct attempt *attempt);

/* Whether every possible placement of an instance on a single node breaks N+1 for good, whatever follows. */
bool surely_breaks(struct engine *engine, const struct instance *instance);
/* Whether every possible placement of an instance, not mirrored, on a single node surely breaks N+1 in this state. If so,
 * a bigger one that fits on no other nodes breaks it as well. */
bool breaks_everywhere(struct engine *engine, const struct instance *instance);

#endif
