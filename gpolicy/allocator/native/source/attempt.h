/* Placing one new instance: the best of the candidates that take it (gpolicy/allocator/placement.py). */
#ifndef GPOLICY_ATTEMPT_H
#define GPOLICY_ATTEMPT_H

#include "cluster.h"
#include "outcomes.h"

/* What came of trying every candidate; `primary` is NOWHERE where there is no solution. */
struct attempt { struct counts counts; int64_t primary, secondary; double score; };

/* Try to place `instance`, whose number in the table of instances will be `number`; `checked`: only where the N+1 test
 * is passed afterwards. */
void try_allocate(struct engine *engine, const struct instance *instance, int64_t number, bool checked,
                  struct attempt *attempt);

/* Whether every possible placement of an instance on a single node breaks N+1 for good, whatever follows. */
bool surely_breaks(struct engine *engine, const struct instance *instance);
/* Whether every possible placement of an instance, not mirrored, on a single node surely breaks N+1 in this state. If
 * so, a bigger one that fits on no other nodes breaks it as well. */
bool breaks_everywhere(struct engine *engine, const struct instance *instance);

#endif
