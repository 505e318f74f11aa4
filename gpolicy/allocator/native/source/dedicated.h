/* Placement on dedicated nodes: lose as few of the big slots as possible (gpolicy/allocator/dedicated_nodes.py). */
#ifndef GPOLICY_DEDICATED_H
#define GPOLICY_DEDICATED_H

#include "attempt.h"
#include "cluster.h"

/* Try every candidate, and take the one with the smallest loss, then with the least disk left; of equals the later one.
 * The score of the attempt is not used. */
void try_dedicated(struct engine *engine, const struct instance *instance, struct attempt *attempt);

#endif
