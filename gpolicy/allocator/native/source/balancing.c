#include "balancing.h"

#include <math.h>
#include <string.h>

#include "moves.h"
#include "node_changes.h"
#include "sides.h"
#include "spread.h"
#include "whole_score.h"

/* A move that may be the best, and the lower bound of the score after it. */
struct contender { struct move move; double low; };

/* What a node that an instance leaves becomes as its secondary again, given what it reserves for the new primary: only
 * that depends on the target, and is mostly 0. `change` is that of all nodes but the target. */
struct secondary_side { bool known, fits; int64_t peer; struct change change; };

/* The search in one state. `limit`: a move whose score is surely above it is not the best. */
struct search {
    struct engine *engine;
    const struct move_rules *rules;
    struct spread spread;
    double limit;
    struct buffer *contenders;
    int64_t count;
};

/* The trials of one instance: both nodes are in the state without it. `old` and `kept` are the nodes before that,
 * `passed` the secondary after the instance has run on it for a moment. The changes are those of all nodes but the
 * target of a move. `moved` has no location score, which is added to the bounds. */
struct trial {
    const struct instance *instance;
    struct instance moved;
    int64_t slot;
    bool allowed[MOVE_KINDS], force_old, force_kept;
    struct node old, kept, passed;
    struct change without_old, without_kept, stays, swapped;
    struct secondary_side demoted, again; /* the primary, and the secondary */
};

/* Whether an instance may be moved at all; then `allowed` says which kinds of moves are tried for each target, and
 * whether a fail-over is tried before them. */
static bool allowed_kinds(const struct engine *engine, const struct instance *instance, const struct move_rules *rules,
                          bool allowed[MOVE_KINDS]) {
    bool mirrored = instance->evacuation == FAIL_OVER, has_secondary = instance->secondary != NOWHERE;
    bool offline = engine->facts[instance->primary].offline;
    bool secondary_offline = has_secondary && engine->facts[instance->secondary].offline;
    memset(allowed, 0, MOVE_KINDS * sizeof *allowed);
    if (rules->evacuation && !offline && !(mirrored && secondary_offline)) return false;
    if (!mirrored) return allowed[MOVE_FAIL_OVER_TO] = rules->instance_moves;
    bool fails_over = has_secondary && !secondary_offline && rules->instance_moves;
    allowed[MOVE_FAIL_OVER] = fails_over;
    allowed[MOVE_REPLACE_SECONDARY] = rules->disk_moves;
    if (!rules->disk_moves || !rules->instance_moves || (rules->restricted_migration && !offline)) return true;
    allowed[MOVE_REPLACE_AND_FAIL_OVER] = true;
    allowed[MOVE_REPLACE_PRIMARY] = fails_over && !rules->restricted_migration;
    allowed[MOVE_FAIL_OVER_AND_REPLACE] = fails_over;
    return true;
}

/* Whether a row can be the target of an instance. */
static bool is_target(const struct engine *engine, const struct instance *instance, int64_t row) {
    return !engine->facts[row].offline && row != instance->primary && row != instance->secondary;
}

/* Drop contenders that later ones have excluded. */
static void drop_excluded(struct search *search) {
    struct contender *items = search->contenders->items;
    int64_t left = 0;
    for (int64_t place = 0; place < search->count; place++) {
        if (items[place].low <= search->limit) items[left++] = items[place];
    }
    search->count = left;
}

static void judge(struct search *search, const struct trial *trial, enum move_kind kind, int64_t target,
                  const struct change *one, const struct change *other, double more) {
    struct bounds_of_score bounds = bound_score_after(&search->spread, one, other, more);
    if (!(bounds.low <= search->limit)) return;
    search->limit = lesser(search->limit, bounds.high);
    if ((search->count + 1) * (int64_t)sizeof(struct contender) > search->contenders->capacity) drop_excluded(search);
    struct contender *items =
        reserve(search->engine, search->contenders, search->count + 1, sizeof(struct contender));
    if (items == NULL) return;
    items[search->count++] = (struct contender){{trial->slot, target, kind}, bounds.low};
}

/* Return what a new primary and its secondary add to the score beyond the node's own values: the location exclusions,
 * and the location score. */
static double located(const struct search *search, const struct trial *trial, int64_t primary, int64_t secondary) {
    const struct engine *engine = search->engine;
    const struct exclusions *exclusions = &engine->exclusions;
    int64_t count = exclusions->sum - exclusions->above;
    double score = 0.0;
    if (!engine->facts[primary].offline && !trial->moved.forthcoming) {
        if (trial->moved.tag_count > 0) count += exclusion_change(engine, primary, &trial->moved, exclusions->counts);
        score = secondary == NOWHERE ? (double)trial->instance->location_score
                                     : (double)common_locations(engine, primary, secondary);
    }
    return engine->weights[LOCATION_EXCLUSION] * (double)count + engine->weights[LOCATION] * score;
}

static struct node as_primary(const struct engine *engine, const struct trial *trial, int64_t row) {
    struct node node = engine->nodes[row];
    with_primary(engine, row, &trial->moved, &node);
    return node;
}

/* Fill in a side: the change of the node at `row`, which is in the state `from` (`before` at the beginning), together
 * with `others`, if it becomes the secondary of the primary whose memory `peer` it reserves already. */
static const struct secondary_side *secondary_side(struct search *search, struct trial *trial,
                                                   struct secondary_side *side, int64_t row, const struct node *before,
                                                   const struct node *from, const struct change *others,
                                                   int64_t peer, bool force) {
    struct engine *engine = search->engine;
    if (side->known && side->peer == peer) return side;
    struct node present = engine->nodes[row], node = *from;
    side->known = true;
    side->peer = peer;
    engine->nodes[row] = *from;
    side->fits = secondary_reason(engine, row, &trial->moved, peer, force, false) == FITS;
    engine->nodes[row] = present;
    if (!side->fits) return side;
    with_secondary(engine, row, &trial->moved, peer, &node);
    side->change = *others;
    add_change(engine, &search->spread, row, before, &node, &side->change);
    return side;
}

/* The change of a target as the secondary, given what it reserves for the primary already. */
static struct change target_as_secondary(const struct search *search, const struct trial *trial, int64_t target,
                                         int64_t peer) {
    struct change change = {0};
    struct node node = search->engine->nodes[target];
    with_secondary(search->engine, target, &trial->moved, peer, &node);
    add_change(search->engine, &search->spread, target, &search->engine->nodes[target], &node, &change);
    return change;
}

static struct change target_as_primary(const struct search *search, const struct trial *trial, int64_t target) {
    struct change change = {0};
    struct node node = as_primary(search->engine, trial, target);
    add_change(search->engine, &search->spread, target, &search->engine->nodes[target], &node, &change);
    return change;
}

/* The moves after which the target is the secondary. */
static void try_as_secondary(struct search *search, const struct trial *trial, int64_t target, enum move_kind kind) {
    struct engine *engine = search->engine;
    bool stays = kind == MOVE_REPLACE_SECONDARY;
    int64_t primary = stays ? trial->instance->primary : trial->instance->secondary;
    int64_t peer = peer_memory(engine, target, primary);
    bool force = stays ? trial->force_kept : trial->force_old;
    if (secondary_reason(engine, target, &trial->moved, peer, force, false) != FITS) return;
    struct change change = target_as_secondary(search, trial, target, peer);
    judge(search, trial, kind, target, stays ? &trial->stays : &trial->swapped, &change,
          located(search, trial, primary, target));
}

/* The moves after which the target is the primary of a mirrored instance. */
static void try_as_primary(struct search *search, struct trial *trial, int64_t target) {
    struct engine *engine = search->engine;
    int64_t old = trial->instance->primary, kept = trial->instance->secondary;
    const struct secondary_side *demoted = NULL, *again = NULL;
    if (trial->allowed[MOVE_REPLACE_AND_FAIL_OVER] && may_migrate(engine, old, target) &&
        primary_reason(engine, target, &trial->moved, search->rules->force) == FITS) {
        demoted = secondary_side(search, trial, &trial->demoted, old, &trial->old, &engine->nodes[old],
                                 &trial->without_kept, peer_memory(engine, old, target), trial->force_kept);
    }
    if (trial->allowed[MOVE_REPLACE_PRIMARY] && may_migrate(engine, kept, target) &&
        primary_reason(engine, target, &trial->moved, trial->force_old) == FITS) {
        again = secondary_side(search, trial, &trial->again, kept, &trial->kept, &trial->passed, &trial->without_old,
                               peer_memory(engine, kept, target), trial->force_old);
    }
    bool demotes = demoted != NULL && demoted->fits, keeps = again != NULL && again->fits;
    if (!demotes && !keeps) return;
    struct change change = target_as_primary(search, trial, target);
    if (demotes) {
        judge(search, trial, MOVE_REPLACE_AND_FAIL_OVER, target, &demoted->change, &change,
              located(search, trial, target, old));
    }
    if (keeps) {
        judge(search, trial, MOVE_REPLACE_PRIMARY, target, &again->change, &change,
              located(search, trial, target, kept));
    }
}

static void try_fail_over(struct search *search, const struct trial *trial) {
    struct engine *engine = search->engine;
    const struct instance *moved = &trial->moved;
    int64_t old = trial->instance->primary, kept = trial->instance->secondary, peer = peer_memory(engine, old, kept);
    const struct change nothing = {0};
    bool offline = engine->facts[old].offline;
    if (primary_reason(engine, kept, moved, trial->force_old) != FITS) return;
    if (secondary_reason(engine, old, moved, peer, trial->force_old, offline) != FITS) return;
    struct change change = {0};
    struct node primary = as_primary(engine, trial, kept), secondary = engine->nodes[old];
    with_secondary(engine, old, moved, peer, &secondary);
    add_change(engine, &search->spread, kept, &trial->kept, &primary, &change);
    add_change(engine, &search->spread, old, &trial->old, &secondary, &change);
    judge(search, trial, MOVE_FAIL_OVER, NOWHERE, &change, &nothing, located(search, trial, kept, NOWHERE));
}

/* Work out what all targets of a mirrored instance share; kinds of moves that fail for all of them are not allowed. */
static void prepare(struct search *search, struct trial *trial) {
    struct engine *engine = search->engine;
    const struct spread *spread = &search->spread;
    int64_t old = trial->instance->primary, kept = trial->instance->secondary;
    add_change(engine, spread, kept, &trial->kept, &engine->nodes[kept], &trial->without_kept);
    if (primary_reason(engine, old, &trial->moved, true) == FITS) {
        struct node stays = as_primary(engine, trial, old);
        trial->stays = trial->without_kept;
        add_change(engine, spread, old, &trial->old, &stays, &trial->stays);
    } else {
        trial->allowed[MOVE_REPLACE_SECONDARY] = false;
    }
    if (!may_migrate(engine, old, kept) || primary_reason(engine, kept, &trial->moved, trial->force_old) != FITS) {
        trial->allowed[MOVE_FAIL_OVER] = trial->allowed[MOVE_REPLACE_PRIMARY] = false;
        trial->allowed[MOVE_FAIL_OVER_AND_REPLACE] = false;
        return;
    }
    struct node swapped = as_primary(engine, trial, kept);
    trial->swapped = trial->without_old;
    add_change(engine, spread, kept, &trial->kept, &swapped, &trial->swapped);
    struct mark before = engine->journal.top;
    add_primary(engine, kept, &trial->moved);
    remove_primary(engine, kept, &trial->moved);
    trial->passed = engine->nodes[kept];
    take_back(engine, before);
}

static void try_mirrored(struct search *search, struct trial *trial) {
    const struct engine *engine = search->engine;
    const struct instance *instance = trial->instance;
    prepare(search, trial);
    if (failed(engine)) return;
    if (trial->allowed[MOVE_FAIL_OVER]) try_fail_over(search, trial);
    if (!search->rules->disk_moves) return;
    for (int64_t target = 0; target < engine->node_count; target++) {
        if (!is_target(engine, instance, target)) continue;
        if (trial->allowed[MOVE_REPLACE_SECONDARY]) {
            try_as_secondary(search, trial, target, MOVE_REPLACE_SECONDARY);
        }
        try_as_primary(search, trial, target);
        if (trial->allowed[MOVE_FAIL_OVER_AND_REPLACE]) {
            try_as_secondary(search, trial, target, MOVE_FAIL_OVER_AND_REPLACE);
        }
    }
}

static void try_external(struct search *search, const struct trial *trial) {
    const struct engine *engine = search->engine;
    int64_t source = trial->instance->primary;
    for (int64_t target = 0; target < engine->node_count; target++) {
        if (!is_target(engine, trial->instance, target) || !may_migrate(engine, source, target)) continue;
        if (primary_reason(engine, target, &trial->moved, trial->force_old) != FITS) continue;
        struct change change = target_as_primary(search, trial, target);
        judge(search, trial, MOVE_FAIL_OVER_TO, target, &trial->without_old, &change,
              located(search, trial, target, NOWHERE));
    }
}

/* A mirrored instance without a secondary, for which a target exists, is an error as in the law. */
static bool misses_secondary(struct search *search, const struct instance *instance) {
    struct engine *engine = search->engine;
    if (instance->evacuation != FAIL_OVER || instance->secondary != NOWHERE) return false;
    for (int64_t target = 0; search->rules->disk_moves && target < engine->node_count; target++) {
        if (!is_target(engine, instance, target)) continue;
        engine->missing_index = instance->secondary_index;
        fail(engine, MISSING_NODE);
    }
    return true;
}

static void try_instance(struct search *search, int64_t slot) {
    struct engine *engine = search->engine;
    const struct instance *instance = &engine->table.items[slot];
    struct trial trial;
    memset(&trial, 0, sizeof trial);
    trial.slot = slot;
    if (!allowed_kinds(engine, instance, search->rules, trial.allowed) || misses_secondary(search, instance)) return;
    bool mirrored = instance->evacuation == FAIL_OVER;
    int64_t old = instance->primary, kept = instance->secondary;
    struct mark before = engine->journal.top;
    trial.instance = instance;
    trial.moved = *instance;
    trial.moved.location_score = 0;
    trial.force_old = search->rules->force || engine->facts[old].offline;
    trial.old = engine->nodes[old];
    remove_primary(engine, old, instance);
    add_change(engine, &search->spread, old, &trial.old, &engine->nodes[old], &trial.without_old);
    if (mirrored) {
        trial.force_kept = search->rules->force || engine->facts[kept].offline;
        trial.kept = engine->nodes[kept];
        remove_secondary(engine, kept, instance);
        try_mirrored(search, &trial);
    } else if (!failed(engine)) {
        try_external(search, &trial);
    }
    take_back(engine, before);
}

/* Whether two instances have the same moves with the same scores. */
static bool are_alike(const struct instance *a, const struct instance *b) {
    return a->primary == b->primary && a->secondary == b->secondary && a->evacuation == b->evacuation &&
           same_change(a, b);
}

/* Try all moves of all instances. Of instances that are alike, the first stands for all: its moves come first. */
static void try_all(struct search *search, const int64_t *slots, int64_t count) {
    struct engine *engine = search->engine;
    /* chains of instances tried with the same primary: the last place for each row, and the one before each place */
    int64_t nodes = engine->node_count;
    int64_t *last = reserve(engine, &engine->chains, nodes + count, sizeof *last), *earlier = last + nodes;
    if (last == NULL) return;
    for (int64_t row = 0; row < nodes; row++) last[row] = NOWHERE;
    for (int64_t place = 0; place < count && !ended(engine); place++) {
        const struct instance *items = engine->table.items, *instance = &items[slots[place]];
        int64_t other = last[instance->primary];
        while (other != NOWHERE && !are_alike(instance, &items[slots[other]])) other = earlier[other];
        if (other != NOWHERE) continue;
        earlier[place] = last[instance->primary];
        last[instance->primary] = place;
        try_instance(search, slots[place]);
    }
}

bool take_best_move(struct engine *engine, const struct move_rules *rules, const int64_t *slots, int64_t count,
                    struct move *best, double *score) {
    struct search search = {.engine = engine, .rules = rules, .contenders = &engine->contenders};
    struct mark before = engine->journal.top;
    bool found = false;
    if (score_is_undefined(engine, EVERYWHERE)) return false; /* nothing is less than NaN */
    begin_spread(engine, &search.spread);
    if (search.spread.count == 0.0) return false;
    *score = search.limit = whole_score(engine, EVERYWHERE);
    try_all(&search, slots, count);
    const struct contender *contenders = engine->contenders.items;
    for (int64_t place = 0; place < search.count && !ended(engine); place++) {
        const struct contender *contender = &contenders[place];
        if (contender->low > search.limit) continue;
        struct instance instance = engine->table.items[contender->move.slot];
        enum reason reason = take_move(engine, &contender->move, &instance, rules->force);
        double after = reason == FITS && !failed(engine) ? whole_score(engine, EVERYWHERE) : INFINITY;
        take_back(engine, before);
        if (!(after < *score)) continue;
        found = true;
        *best = contender->move;
        *score = after;
        search.limit = lesser(search.limit, after);
    }
    if (!found || failed(engine)) return false;
    struct instance instance = engine->table.items[best->slot];
    if (take_move(engine, best, &instance, rules->force) != FITS) fail(engine, INVALID);
    if (failed(engine)) return false;
    engine->table.items[best->slot] = instance;
    return true;
}
