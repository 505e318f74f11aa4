/* Moving an existing instance (gpolicy/allocator/instance_moves.py).
 *
 * Each returns the first reason against the move, or FITS. The state is changed in either case: the caller takes it
 * back. `listed`: the lists of its nodes call the instance by its own number. `force` ignores soft limits, as an
 * offline node that is left does. The record is changed with the move. */
#ifndef GPOLICY_MOVES_H
#define GPOLICY_MOVES_H

#include "cluster.h"

/* Swap primary and secondary. Fails with MISSING_NODE where there is no secondary. */
enum reason fail_over(struct engine *engine, struct instance *instance, bool listed, bool force);
/* Start an instance on foreign storage on `target`. */
enum reason fail_over_to(struct engine *engine, struct instance *instance, int64_t target, bool listed, bool force);
/* Mirror to `target` instead of the old secondary. Fails with MISSING_NODE where there is none. */
enum reason replace_secondary(struct engine *engine, struct instance *instance, int64_t target, bool listed,
                              bool force);

#endif
