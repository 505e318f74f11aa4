/* Moving one instance away from its nodes to the best of some candidates (gpolicy/allocator/evacuation.py). */
#ifndef GPOLICY_EVACUATION_H
#define GPOLICY_EVACUATION_H

#include "cluster.h"

/* Which of its nodes a mirrored instance leaves. */
enum leaving { PRIMARY, SECONDARY, BOTH };

/* Move `instance` to the best of `count` candidate rows, all of one group, whose score decides. The state is that after
 * the move, and the record as it is then; without any candidate that takes it, `false` is returned and the state stays.
 */
bool move_away(struct engine *engine, struct instance *instance, enum leaving leaving, bool force, const int64_t *rows,
               int64_t count);

#endif
