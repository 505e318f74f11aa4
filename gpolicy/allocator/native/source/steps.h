/* The steps of balancing (gpolicy/allocator/balancing.py): what may be tried, and taking one. */
#ifndef GPOLICY_STEPS_H
#define GPOLICY_STEPS_H

#include "cluster.h"

enum step_kind {
    FAIL_OVER_STEP, FAIL_OVER_TO_STEP, REPLACE_SECONDARY_STEP, REPLACE_AND_FAIL_OVER_STEP, REPLACE_PRIMARY_STEP,
    FAIL_OVER_AND_REPLACE_STEP, STEP_KINDS
};

/* Which steps may be taken (`StepRules`). */
struct step_rules { bool disk_moves, instance_moves, evacuation, restricted_migration, force; };

/* One step of the instance at `slot` of the table; `target` is a row, or NOWHERE for a fail-over. */
struct step { int64_t slot, target; enum step_kind kind; };

/* Whether an instance may be moved at all; then `allowed` says which kinds of steps are tried for each target, and
 * whether a fail-over is tried before them. */
bool allowed_kinds(const struct engine *engine, const struct instance *instance, const struct step_rules *rules,
                   bool allowed[STEP_KINDS]);

/* Whether a row can be the target of an instance. */
static inline bool is_target(const struct engine *engine, const struct instance *instance, int64_t row) {
    return !engine->facts[row].offline && row != instance->primary && row != instance->secondary;
}

/* Change the state by a step, and the record `instance`. Returns the first reason against it, or FITS; the caller takes
 * the change back in either case. */
enum reason take_step(struct engine *engine, const struct step *step, struct instance *instance, bool force);

#endif
