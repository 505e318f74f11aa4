/* The global N+1 test (gpolicy/allocator/redundancy.py): can every node be evacuated, one at a time? */
#ifndef GPOLICY_REDUNDANCY_H
#define GPOLICY_REDUNDANCY_H

#include "cluster.h"

bool open_evacuating(struct engine *engine);

/* Whether each examined node can be evacuated, and each set of as many nodes of a group as may fail at once. Fails with
 * MISSING_NODE if an instance has to fail over to a node that does not exist. */
bool is_redundant(struct engine *engine);

/* Whether the cluster surely passes this test, and passed it in each state since which instances were only placed. */
bool is_surely_redundant(struct engine *engine);

/* Whether the cluster fails this test, and surely in each state that follows by placements. */
bool is_beyond_repair(struct engine *engine);

/* Find where the instances of `count` nodes of one group run on if these nodes are lost at once. `targets` has an entry
 * for each instance, node by node, the newest first: the row where it runs on, or NOWHERE. Mirrored instances that lose
 * both nodes are skipped. With `cpus` no node takes an instance beyond its vcpu-ratio. The state is not changed. */
void lose(struct engine *engine, const int64_t *rows, int64_t count, bool cpus, int64_t *targets);

/* Whether all instances, also new ones, are mirrored and only lack of memory or disk can prevent a fail-over. */
bool all_mirrored(const struct engine *engine);
#endif
