#include "steps.h"

#include <string.h>

#include "moves.h"

bool allowed_kinds(const struct engine *engine, const struct instance *instance, const struct step_rules *rules,
                   bool allowed[STEP_KINDS]) {
    bool mirrored = instance->evacuation == FAIL_OVER, has_secondary = instance->secondary != NOWHERE;
    bool offline = engine->facts[instance->primary].offline;
    bool secondary_offline = has_secondary && engine->facts[instance->secondary].offline;
    memset(allowed, 0, STEP_KINDS * sizeof *allowed);
    if (rules->evacuation && !offline && !(mirrored && secondary_offline)) return false;
    if (!mirrored) return allowed[FAIL_OVER_TO_STEP] = rules->instance_moves;
    bool fails_over = has_secondary && !secondary_offline && rules->instance_moves;
    allowed[FAIL_OVER_STEP] = fails_over;
    allowed[REPLACE_SECONDARY_STEP] = rules->disk_moves;
    if (!rules->disk_moves || !rules->instance_moves || (rules->restricted_migration && !offline)) return true;
    allowed[REPLACE_AND_FAIL_OVER_STEP] = true;
    allowed[REPLACE_PRIMARY_STEP] = fails_over && !rules->restricted_migration;
    allowed[FAIL_OVER_AND_REPLACE_STEP] = fails_over;
    return true;
}

enum reason take_step(struct engine *engine, const struct step *step, struct instance *instance, bool force) {
    switch (step->kind) {
    case FAIL_OVER_STEP: return fail_over(engine, instance, true, force);
    case FAIL_OVER_TO_STEP: return fail_over_to(engine, instance, step->target, true, force);
    case REPLACE_SECONDARY_STEP: return replace_secondary(engine, instance, step->target, true, force);
    case REPLACE_AND_FAIL_OVER_STEP: return replace_and_fail_over(engine, instance, step->target, true, force);
    case REPLACE_PRIMARY_STEP: return replace_primary(engine, instance, step->target, true, force);
    case FAIL_OVER_AND_REPLACE_STEP: return fail_over_and_replace(engine, instance, step->target, true, force);
    default: return INTERNAL;
    }
}
