/* Moving an existing instance (gpolicy/allocator/instance_moves.py).
 *
 * Each function changes the state and the record, and returns the first reason against the move, or FITS. The caller
 * takes the change back in either case. `listed`: the lists of its nodes call the instance by its own number. `force`
 * ignores soft limits; so does a move away from an offline node. The last three require a target that is not a node of the
 * instance.
 */
#ifndef GPOLICY_MOVES_H
#define GPOLICY_MOVES_H

#include "cluster.h"

/* Swap primary and secondary. Fails with MISSING_NODE if there is no secondary. */
enum reason fail_over(struct engine *engine, struct instance *instance, bool listed, bool force);
/* Start an instance on external storage on `target`. */
enum reason fail_over_to(struct engine *engine, struct instance *instance, int64_t target, bool listed, bool force);
/* Replace the secondary by `target`. Fails with MISSING_NODE if there is no secondary. */
enum reason replace_secondary(struct engine *engine, struct instance *instance, int64_t target, bool listed,
                              bool force);
/* Replace the secondary by `target` and fail over to it: the old primary becomes the secondary. */
enum reason replace_and_fail_over(struct engine *engine, struct instance *instance, int64_t target, bool listed,
                                  bool force);
/* Replace the primary by `target`; for a moment the instance runs on its secondary. */
enum reason replace_primary(struct engine *engine, struct instance *instance, int64_t target, bool listed, bool force);
/* Fail over, and replace the new secondary by `target`. */
enum reason fail_over_and_replace(struct engine *engine, struct instance *instance, int64_t target, bool listed,
                                  bool force);

#endif
