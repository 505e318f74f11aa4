/* Placing one new instance on the best candidate (gpolicy/allocator/placement.py). */
#ifndef GPOLICY_ATTEMPT_H
#define GPOLICY_ATTEMPT_H

#include "cluster.h"
#include "outcomes.h"

/* The result of trying every candidate; `primary` is NOWHERE if none takes the instance. `score` is that of a pair; that
 * of a single node, which takes longer, is not worked out (single_score()). */
struct attempt { struct counts counts; int64_t primary, secondary; double score; };

/* Whether the cluster must pass the N+1 test after a placement. Failures of this test are counted only if no candidate
 * passes it, or if all are COUNTED, which takes longer. */
enum test { UNTESTED, TESTED, COUNTED };
/* Find the best place for `instance`, which will have the number `number` in the table of instances. */
void try_allocate(struct engine *engine, const struct instance *instance, int64_t number, enum test test,
                  struct attempt *attempt);

/* Whether every possible placement of an instance on a single node breaks N+1, and no later placement can repair it. */
bool surely_breaks(struct engine *engine, const struct instance *instance);
/* Whether every possible placement of an unmirrored instance surely breaks N+1 in this state. A bigger instance that
 * fits only on the same nodes then breaks it as well. */
bool breaks_everywhere(struct engine *engine, const struct instance *instance);

#endif
