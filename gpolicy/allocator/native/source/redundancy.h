/* The global N+1 test (gpolicy/allocator/redundancy.py): can every node be evacuated, one at a time? */
#ifndef GPOLICY_REDUNDANCY_H
#define GPOLICY_REDUNDANCY_H

#include "cluster.h"

bool open_evacuating(struct engine *engine);

/* Whether each examined node can be evacuated. Fails with MISSING_NODE where an instance has to fail over to a node
 * that there is not. */
bool is_redundant(struct engine *engine);

/* Find out what becomes of the instances of `count` nodes of one group that are lost at once. `targets` has a place for
 * each, node by node, of each node the newest first: the row where it runs on, or NOWHERE. A mirrored instance both of
 * whose nodes are lost is left out. The state stays as it is. */
void lose(struct engine *engine, const int64_t *rows, int64_t count, int64_t *targets);

/* Whether all instances, and those to come, are mirrored, with nothing in the way of fail-overs but memory and disk. */
bool all_mirrored(const struct engine *engine);
/* Add up, per row, the memory that fails over from the node at `row` to it. */
void memory_moving(const struct engine *engine, int64_t row, int64_t *moving);

#endif
