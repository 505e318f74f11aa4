/* Standard allocation, and the parts that tiered allocation needs (gpolicy/allocator/repeated_allocation.py). */
#ifndef GPOLICY_CAPACITY_H
#define GPOLICY_CAPACITY_H

#include "cluster.h"
#include "attempt.h"

enum { NO_LIMIT = -1 };

/* The last attempt of a run of allocations. The placed instances are in the engine's list of placements. */
struct outcome { struct counts counts; bool attempted; };

/* Place copies of `instance` until none fits or `limit` of them are placed. */
void standard(struct engine *engine, const struct instance *instance, int64_t limit, struct outcome *outcome);
/* Place `instance` until none fits, shrink it by the most frequent reason of failure, and repeat (tiered.c). */
void tiered(struct engine *engine, const struct instance *instance, int64_t limit, struct outcome *outcome);

/* Attempts and trials in the present state, computed once for each size, between remember_sizes() and forget_sizes().
 * Meanwhile instances may differ in memory, disk, CPUs and spindles only. */
void known_attempt(struct engine *engine, const struct instance *instance, enum test test, struct attempt *attempt);
/* The outcomes on all candidates, without the N+1 test. Valid until the next question. */
const struct counts *known_trial(struct engine *engine, const struct instance *instance);
/* Whether any candidate takes the instance if policies do not bound the resources in `unbounded`. */
bool known_to_fit(struct engine *engine, const struct instance *instance, unsigned unbounded);
void remember_sizes(struct engine *engine);
void forget_sizes(struct engine *engine);

#endif
