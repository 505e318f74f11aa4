/* The best next move of balancing (gpolicy/allocator/balancing.py). */
#ifndef GPOLICY_BALANCING_H
#define GPOLICY_BALANCING_H

#include "moves.h"

/* Which moves may be taken (`MoveRules`). */
struct move_rules { bool disk_moves, instance_moves, evacuation, restricted_migration, force; };

/* Find the move of the instances at `slots` (in their order) after which the score of all nodes is least, of equal ones
 * the first. If it is less than the present score, takes the move, writes the record and the score, and returns true.
 * Otherwise the state stays as it is. */
bool take_best_move(struct engine *engine, const struct move_rules *rules, const int64_t *slots, int64_t count,
                    struct move *best, double *score);

#endif
