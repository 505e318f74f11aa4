/* Sure answers to the N+1 test by arithmetic.
 *
 * Whether a node can be evacuated depends, in the law, on where a greedy choice puts its instances. Often that does not
 * matter: there is no room whatever the choice, or there is room whatever it is.
 */
#ifndef GPOLICY_ROOM_H
#define GPOLICY_ROOM_H

#include "cluster.h"

enum verdict { NO, YES, UNSURE };

/* Whether a node without mirrored instances can be evacuated, as far as that is sure. */
enum verdict judge_room(struct engine *engine, int64_t row);

/* Whether there is surely too little room in the group for what runs on the node at `row`, in whatever order and
 * wherever it is put. */
bool lacks_room(struct engine *engine, int64_t row);

/* Set `broken[row]` for each of `rows` on which a new instance surely breaks N+1, for a reason that no further
 * placement mends. Return whether all are broken. */
bool sure_to_break(struct engine *engine, const struct instance *instance, const int64_t *rows, int64_t count,
                   bool *broken);

bool open_room(struct engine *engine);

/* Count everything anew next time, without the sizes of earlier runs. */
void forget_sizes_of_room(struct engine *engine);

#endif
