/* Answers to the N+1 test by arithmetic, where they are certain.
 *
 * In the law the answer depends on where a greedy choice puts the instances of a node. Often that makes no difference:
 * there is too little room in any order, or enough room in any order.
 */
#ifndef GPOLICY_ROOM_H
#define GPOLICY_ROOM_H

#include "cluster.h"

enum verdict { NO, YES, UNSURE };

/* What fails over from a node to the node at `row`; `unknown`: an instance without a known number of spindles is part. */
struct target { int64_t row, memory; bool unknown; };
/* The instances of a node: the mirrored ones and their targets, those that would move, and whether lack of room is all
 * that can stop those that are not mirrored. */
struct census { int64_t mirrored, moves, count, capacity; struct target *targets; bool only_room; };
const struct census *census_of(struct engine *engine, int64_t row);

/* Whether the instances of a node that are not mirrored find room after the others have failed over, or UNSURE. A YES
 * also holds with fewer instances, a NO with more of them. */
enum verdict judge_room(struct engine *engine, int64_t row);

/* Whether the group surely has too little room for the instances of the node at `row` that are not mirrored, in any
 * order and on any nodes. */
bool lacks_room(struct engine *engine, int64_t row);

/* Set `broken[row]` for each of `rows` on which a new instance surely breaks N+1, and no later placement can repair it.
 * Return whether all are broken. */
bool sure_to_break(struct engine *engine, const struct instance *instance, const int64_t *rows, int64_t count,
                   bool *broken);

/* Watch the instances of the node at `row` that are not mirrored, as they leave it one by one: begin, name each of them in
 * its turn, and count the nodes that take them. Then tell of each node that an instance goes to: `sign` -1 before, and 1
 * after it. Without `only_room` nothing is ever sure. */
void begin_queue(struct engine *engine, int64_t row, bool only_room);
void queue_up(struct engine *engine, const struct instance *instance, int64_t turn);
void open_queue(struct engine *engine);
void count_open(struct engine *engine, int64_t row, int64_t sign);
/* Whether all that leave in this turn and later find room, wherever those before them go. */
bool queue_is_sure(const struct engine *engine, int64_t turn);

bool open_room(struct engine *engine);

/* Make the next call count everything again, without the sizes of earlier runs. */
void forget_sizes_of_room(struct engine *engine);

#endif
