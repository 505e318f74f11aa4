/* Moving one instance away from its nodes (gpolicy/allocator/evacuation.py). */
#ifndef GPOLICY_EVACUATION_H
#define GPOLICY_EVACUATION_H

#include "cluster.h"

/* The nodes that a mirrored instance leaves. */
enum leaving { PRIMARY, SECONDARY, BOTH };

/* Move `instance` to the candidate with the best score of its group; the `count` candidate rows are all of one group.
 * Changes the state and the record. If no candidate takes the instance, returns false and leaves the state as it is. */
bool move_away(struct engine *engine, struct instance *instance, enum leaving leaving, bool force, const int64_t *rows,
               int64_t count);

#endif
