/* Shrinking a wanted instance by the reason for which an allocation failed: `shrink` of the law. */
#ifndef GPOLICY_SHRINK_H
#define GPOLICY_SHRINK_H

#include "cluster.h"

/* Whether a reason names a resource by which an instance can be shrunk. */
static inline bool shrinkable(enum reason reason) {
    return reason == MEM || reason == DISK || reason == CPU || reason == SPINDLES;
}

/* Return how often the instance can be shrunk by `reason`. */
int64_t possible_shrinks(const struct instance *instance, enum reason reason);
/* Return `instance`, `steps` units smaller; at most possible_shrinks(). */
struct instance shrink(const struct instance *instance, enum reason reason, int64_t steps);
/* Return how many shrinks it takes until some candidate gives another outcome. */
int64_t steps_until_change(struct engine *engine, const struct instance *instance, enum reason reason);
/* Return how many shrinks it takes until some policy may give another verdict. */
int64_t steps_until_other_bounds(struct engine *engine, const struct instance *instance, enum reason reason);

#endif
