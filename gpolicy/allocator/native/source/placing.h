/* Placing new instances and taking them back: nodes, their lists, and the table of instances. */
#ifndef GPOLICY_PLACING_H
#define GPOLICY_PLACING_H

#include "cluster.h"

/* Put `instance` on its nodes as number `number` of the table. The caller has made the checks. */
void place(struct engine *engine, const struct instance *instance, int64_t number);
/* Whether a new instance's number is its own: no other instance has it, and node lists use it for no other one. */
bool own_number(const struct engine *engine, const struct instance *instance, int64_t number);
/* Take back the last placements until `count` are left. */
void unplace(struct engine *engine, int64_t count);

#endif
