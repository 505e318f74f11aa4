/* Standard allocation, and the pieces that tiered allocation needs (gpolicy/allocator/repeated_allocation.py). */
#ifndef GPOLICY_CAPACITY_H
#define GPOLICY_CAPACITY_H

#include "cluster.h"
#include "attempt.h"

enum { NO_LIMIT = -1 };

/* What a run of allocations says at its end; what it placed is in the engine's list of placements. */
struct outcome { struct counts counts; bool attempted; };

/* Place copies of `instance` until none fits or `limit` new ones are placed. */
void standard(struct engine *engine, const struct instance *instance, int64_t limit, struct outcome *outcome);
/* Place `instance` until none fits, shrink it by what failed most, and go on (tiered.c). */
void tiered(struct engine *engine, const struct instance *instance, int64_t limit, struct outcome *outcome);

/* Attempts and trials in the present state, computed once per size. The instance may differ from that of another call
 * in memory, disk, cpus and spindles only, until forget_sizes() is called. */
void known_attempt(struct engine *engine, const struct instance *instance, bool checked, struct attempt *attempt);
/* The outcomes on all candidates, N+1 not asked. To be read before the next question. */
const struct counts *known_trial(struct engine *engine, const struct instance *instance);
/* Whether any candidate takes the instance, without the bounds of policies on the resources in `unbounded`. */
bool known_to_fit(struct engine *engine, const struct instance *instance, unsigned unbounded);
void forget_sizes(struct engine *engine);

#endif
