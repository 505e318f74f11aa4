#include "moves.h"

#include "node_changes.h"

static bool has_secondary(struct engine *engine, const struct instance *instance) {
    if (instance->secondary != NOWHERE) return true;
    engine->missing_index = instance->secondary_index;
    fail(engine, MISSING_NODE);
    return false;
}

/* After a move to another group onto the old primary, both nodes may be the same one. As in htools (Container.hs,
 * `addTwo`), the second of the two results then counts: the node with the new secondary. */
static enum reason fail_over_in_place(struct engine *engine, const struct instance *instance, bool force) {
    int64_t row = instance->primary;
    struct mark before = engine->journal.top;
    bool offline = engine->facts[row].offline;
    remove_secondary(engine, row, instance);
    if (!may_migrate(engine, row, row)) return MIG;
    enum reason reason = primary_reason(engine, row, instance, force || offline);
    if (reason != FITS) return reason;
    take_back(engine, before);
    remove_primary(engine, row, instance);
    reason = secondary_reason(engine, row, instance, peer_memory(engine, row, row), force || offline, offline);
    if (reason == FITS) add_secondary(engine, row, instance, row);
    return reason;
}

enum reason fail_over(struct engine *engine, struct instance *instance, bool force) {
    int64_t primary = instance->primary, secondary = instance->secondary;
    if (!has_secondary(engine, instance)) return INTERNAL;
    if (primary == secondary) {
        enum reason reason = fail_over_in_place(engine, instance, force);
        instance->no_primary_entry = true;
        instance->no_secondary_entry = false;
        return reason;
    }
    bool offline = engine->facts[primary].offline;
    remove_primary(engine, primary, instance);
    remove_secondary(engine, secondary, instance);
    if (!may_migrate(engine, primary, secondary)) return MIG;
    enum reason reason = primary_reason(engine, secondary, instance, force || offline);
    if (reason != FITS) return reason;
    int64_t peer = peer_memory(engine, primary, secondary);
    reason = secondary_reason(engine, primary, instance, peer, force || offline, offline);
    if (reason != FITS) return reason;
    add_primary(engine, secondary, instance);
    add_secondary(engine, primary, instance, secondary);
    instance->primary = secondary;
    instance->secondary = primary;
    instance->no_primary_entry = instance->no_secondary_entry = false;
    return FITS;
}

/* Return the record on other nodes, which list it, with the location score there. */
static struct instance on_nodes(const struct engine *engine, const struct instance *instance, int64_t primary,
                                int64_t secondary) {
    struct instance moved = *instance;
    moved.primary = primary;
    moved.secondary = secondary;
    moved.location_score = common_locations(engine, primary, secondary);
    moved.no_primary_entry = moved.no_secondary_entry = false;
    return moved;
}

enum reason fail_over_to(struct engine *engine, struct instance *instance, int64_t target, bool force) {
    int64_t source = instance->primary;
    if (!may_migrate(engine, source, target)) return MIG;
    enum reason reason = primary_reason(engine, target, instance, force || engine->facts[source].offline);
    if (reason != FITS) return reason;
    /* if the source is the target, the result is the node without the instance */
    if (target != source) add_primary(engine, target, instance);
    remove_primary(engine, source, instance);
    instance->primary = target;
    instance->no_primary_entry = false;
    return FITS;
}

enum reason replace_secondary(struct engine *engine, struct instance *instance, int64_t target, bool force) {
    int64_t primary = instance->primary, old = instance->secondary;
    if (!has_secondary(engine, instance)) return INTERNAL;
    struct instance moved = on_nodes(engine, instance, primary, target);
    moved.no_secondary_entry = target == primary;
    int64_t peer = peer_memory(engine, target, primary);
    enum reason reason = secondary_reason(engine, target, &moved, peer, force || engine->facts[old].offline, false);
    if (reason != FITS) return reason;
    /* each result is computed from the old node; if nodes are the same, the last one of old, target, primary counts */
    if (target != primary) add_secondary(engine, target, &moved, primary);
    if (old != target && old != primary) remove_secondary(engine, old, instance);
    remove_primary(engine, primary, instance);
    reason = primary_reason(engine, primary, &moved, true);
    if (reason != FITS) return reason;
    add_primary(engine, primary, &moved);
    *instance = moved;
    return FITS;
}

static void leave(struct engine *engine, const struct instance *instance) {
    remove_primary(engine, instance->primary, instance);
    remove_secondary(engine, instance->secondary, instance);
}

/* Put the record `moved` on its nodes if they take it, and make it the instance's record. */
static enum reason settle(struct engine *engine, struct instance *instance, const struct instance *moved,
                          bool force_primary, bool force_secondary) {
    enum reason reason = primary_reason(engine, moved->primary, moved, force_primary);
    if (reason != FITS) return reason;
    int64_t peer = peer_memory(engine, moved->secondary, moved->primary);
    reason = secondary_reason(engine, moved->secondary, moved, peer, force_secondary, false);
    if (reason != FITS) return reason;
    add_primary(engine, moved->primary, moved);
    add_secondary(engine, moved->secondary, moved, moved->primary);
    *instance = *moved;
    return FITS;
}

enum reason replace_and_fail_over(struct engine *engine, struct instance *instance, int64_t target, bool force) {
    if (!has_secondary(engine, instance)) return INTERNAL;
    if (!may_migrate(engine, instance->primary, target)) return MIG;
    bool offline = engine->facts[instance->secondary].offline;
    struct instance moved = on_nodes(engine, instance, target, instance->primary);
    leave(engine, instance);
    return settle(engine, instance, &moved, force, force || offline);
}

enum reason replace_primary(struct engine *engine, struct instance *instance, int64_t target, bool force) {
    int64_t kept = instance->secondary;
    if (!has_secondary(engine, instance)) return INTERNAL;
    if (!may_migrate(engine, instance->primary, kept) || !may_migrate(engine, kept, target)) return MIG;
    force = force || engine->facts[instance->primary].offline;
    struct instance moved = on_nodes(engine, instance, target, kept);
    leave(engine, instance);
    enum reason reason = primary_reason(engine, kept, &moved, force);
    if (reason != FITS) return reason;
    add_primary(engine, kept, &moved);
    remove_primary(engine, kept, &moved);
    return settle(engine, instance, &moved, force, force);
}

enum reason fail_over_and_replace(struct engine *engine, struct instance *instance, int64_t target, bool force) {
    int64_t kept = instance->secondary;
    if (!has_secondary(engine, instance)) return INTERNAL;
    if (!may_migrate(engine, instance->primary, kept)) return MIG;
    force = force || engine->facts[instance->primary].offline;
    struct instance moved = on_nodes(engine, instance, kept, target);
    leave(engine, instance);
    return settle(engine, instance, &moved, force, force);
}

enum reason take_move(struct engine *engine, const struct move *move, struct instance *instance, bool force) {
    switch (move->kind) {
    case MOVE_FAIL_OVER: return fail_over(engine, instance, force);
    case MOVE_FAIL_OVER_TO: return fail_over_to(engine, instance, move->target, force);
    case MOVE_REPLACE_SECONDARY: return replace_secondary(engine, instance, move->target, force);
    case MOVE_REPLACE_AND_FAIL_OVER: return replace_and_fail_over(engine, instance, move->target, force);
    case MOVE_REPLACE_PRIMARY: return replace_primary(engine, instance, move->target, force);
    case MOVE_FAIL_OVER_AND_REPLACE: return fail_over_and_replace(engine, instance, move->target, force);
    default: return INTERNAL;
    }
}
