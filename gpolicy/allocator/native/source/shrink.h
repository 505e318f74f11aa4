/* Making a wanted instance smaller in the resource that an allocation failed for: `shrink` of the law. */
#ifndef GPOLICY_SHRINK_H
#define GPOLICY_SHRINK_H

#include "cluster.h"

/* Whether an instance can be shrunk by what a reason names. */
static inline bool shrinkable(enum reason reason) {
    return reason == MEM || reason == DISK || reason == CPU || reason == SPINDLES;
}

/* How often the instance can be shrunk by `reason`. */
int64_t possible_shrinks(const struct instance *instance, enum reason reason);
/* Return `instance`, `steps` units smaller; they must be possible. */
struct instance shrink(const struct instance *instance, enum reason reason, int64_t steps);
/* Return how many shrinks lead to the first instance with other outcomes on some candidate. */
int64_t steps_until_change(struct engine *engine, const struct instance *instance, enum reason reason);
/* Return how many shrinks lead to the first instance that some policy may judge otherwise. */
int64_t steps_until_other_bounds(struct engine *engine, const struct instance *instance, enum reason reason);

#endif
