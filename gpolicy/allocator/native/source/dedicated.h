/* Placement on dedicated nodes: lose as few slots for big instances as possible (gpolicy/allocator/requests.py).
 */
#ifndef GPOLICY_DEDICATED_H
#define GPOLICY_DEDICATED_H

#include "attempt.h"
#include "cluster.h"

/* Take the candidate with the smallest loss; of equals the one with the least disk left, then the later one. The score
 * of the attempt is not used. */
void try_dedicated(struct engine *engine, const struct instance *instance, struct attempt *attempt);

#endif
