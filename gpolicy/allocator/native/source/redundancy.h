/* The global N+1 test (gpolicy/allocator/redundancy.py): can every node be evacuated, one at a time? */
#ifndef GPOLICY_REDUNDANCY_H
#define GPOLICY_REDUNDANCY_H

#include "cluster.h"

/* Whether each examined node can be evacuated. Leaves the call with MISSING_NODE where an instance has to fail over to
 * a node that there is not. */
bool is_redundant(struct engine *engine);
/* The same, remembered as long as the state stays. */
bool known_redundant(struct engine *engine);

/* Whether all instances, and those to come, are mirrored, with nothing in the way of fail-overs but memory and disk. */
bool all_mirrored(const struct engine *engine);
/* Fill in, per row, the memory that fails over from the node at `row` to it. */
void memory_moving(const struct engine *engine, int64_t row, int64_t *moving);
/* Fill in, per row, the most memory that fails over to it from any one node. */
void most_memory_moving(struct engine *engine, int64_t *most_moving);

#endif
