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
static enum reason fail_over_in_place(struct engine *engine, const struct instance *instance, bool listed, bool force) {
    int64_t row = instance->primary;
    struct mark before = engine->journal.top;
    bool offline = engine->facts[row].offline;
    remove_secondary(engine, row, instance, listed);
    if (!may_migrate(engine, row, row)) return MIG;
    enum reason reason = primary_reason(engine, row, instance, force || offline);
    if (reason != FITS) return reason;
    take_back(engine, before);
    remove_primary(engine, row, instance, listed);
    reason = secondary_reason(engine, row, instance, peer_memory(engine, row, row), force || offline, offline);
    if (reason == FITS) add_secondary(engine, row, instance, row);
    return reason;
}

enum reason fail_over(struct engine *engine, struct instance *instance, bool listed, bool force) {
    int64_t primary = instance->primary, secondary = instance->secondary;
    if (!has_secondary(engine, instance)) return INTERNAL;
    if (primary == secondary) return fail_over_in_place(engine, instance, listed, force);
    bool offline = engine->facts[primary].offline;
    remove_primary(engine, primary, instance, listed);
    remove_secondary(engine, secondary, instance, listed);
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
    return FITS;
}

enum reason fail_over_to(struct engine *engine, struct instance *instance, int64_t target, bool listed, bool force) {
    int64_t source = instance->primary;
    if (!may_migrate(engine, source, target)) return MIG;
    enum reason reason = primary_reason(engine, target, instance, force || engine->facts[source].offline);
    if (reason != FITS) return reason;
    /* if the source is the target, the result is the node without the instance */
    if (target != source) add_primary(engine, target, instance);
    remove_primary(engine, source, instance, listed);
    instance->primary = target;
    return FITS;
}

enum reason replace_secondary(struct engine *engine, struct instance *instance, int64_t target, bool listed,
                              bool force) {
    int64_t primary = instance->primary, old = instance->secondary;
    if (!has_secondary(engine, instance)) return INTERNAL;
    struct instance moved = *instance;
    moved.secondary = target;
    moved.location_score = common_locations(engine, primary, target);
    int64_t peer = peer_memory(engine, target, primary);
    enum reason reason = secondary_reason(engine, target, &moved, peer, force || engine->facts[old].offline, false);
    if (reason != FITS) return reason;
    /* each result is computed from the old node; if nodes are the same, the last one of old, target, primary counts */
    if (target != primary) add_secondary(engine, target, &moved, primary);
    if (old != target && old != primary) remove_secondary(engine, old, instance, listed);
    remove_primary(engine, primary, instance, listed);
    reason = primary_reason(engine, primary, &moved, true);
    if (reason != FITS) return reason;
    add_primary(engine, primary, &moved);
    *instance = moved;
    return FITS;
}
