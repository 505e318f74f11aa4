/* Moving an existing instance (gpolicy/allocator/instance_moves.py).
 *
 * Each function changes the state and the record, and returns the first reason against the move, or FITS. The caller
 * takes the change back in either case. `force` ignores soft limits; so does a move away from an offline node. The last
 * three require a target that is not a node of the instance.
 */
#ifndef GPOLICY_MOVES_H
#define GPOLICY_MOVES_H

#include "cluster.h"

/* The kinds of moves (`MoveKind`). */
enum move_kind {
    MOVE_FAIL_OVER, MOVE_FAIL_OVER_TO, MOVE_REPLACE_SECONDARY, MOVE_REPLACE_AND_FAIL_OVER, MOVE_REPLACE_PRIMARY,
    MOVE_FAIL_OVER_AND_REPLACE, MOVE_KINDS
};

/* One move of the instance at `slot` of the table; `target` is a row, or NOWHERE for a fail-over. */
struct move { int64_t slot, target; enum move_kind kind; };

/* Swap primary and secondary. Fails with MISSING_NODE if there is no secondary. */
enum reason fail_over(struct engine *engine, struct instance *instance, bool force);
/* Start an instance on external storage on `target`. */
enum reason fail_over_to(struct engine *engine, struct instance *instance, int64_t target, bool force);
/* Replace the secondary by `target`. Fails with MISSING_NODE if there is no secondary. */
enum reason replace_secondary(struct engine *engine, struct instance *instance, int64_t target, bool force);
/* Replace the secondary by `target` and fail over to it: the old primary becomes the secondary. */
enum reason replace_and_fail_over(struct engine *engine, struct instance *instance, int64_t target, bool force);
/* Replace the primary by `target`; for a moment the instance runs on its secondary. */
enum reason replace_primary(struct engine *engine, struct instance *instance, int64_t target, bool force);
/* Fail over, and replace the new secondary by `target`. */
enum reason fail_over_and_replace(struct engine *engine, struct instance *instance, int64_t target, bool force);
/* Do one of these. */
enum reason take_move(struct engine *engine, const struct move *move, struct instance *instance, bool force);

#endif
