#include "redundancy.h"

#include <string.h>

#include "node_changes.h"
#include "policy_check.h"
#include "room.h"
#include "score.h"
#include "single.h"

/* An instance on the node that is evacuated; `listed`: the node's list calls it by its own number. */
struct resident { const struct instance *instance; bool listed; };

static int64_t residents_of(struct engine *engine, int64_t row, struct resident **residents) {
    const struct list *primaries = &engine->primaries[row];
    *residents = scratch(engine, EVACUATION_RESIDENTS, primaries->count, sizeof **residents);
    for (int64_t place = 0; place < primaries->count; place++) {
        int64_t slot = primaries->items[primaries->count - 1 - place]; /* the newest first */
        const struct instance *instance = &engine->instances[slot];
        (*residents)[place] = (struct resident){instance, instance->index == engine->keys[slot]};
    }
    return primaries->count;
}

/* Swap primary and secondary by force. */
static bool fail_over(struct engine *engine, const struct resident *resident) {
    struct instance swapped = *resident->instance;
    int64_t primary = swapped.primary, secondary = swapped.secondary;
    if (secondary == NOWHERE) {
        engine->missing_index = swapped.secondary_index;
        fail(engine, MISSING_NODE);
    }
    bool offline = engine->facts[primary].offline;
    remove_primary(engine, primary, &swapped, resident->listed);
    remove_secondary(engine, secondary, &swapped, resident->listed);
    if (!may_migrate(engine, primary, secondary)) return false;
    if (primary_reason(engine, secondary, &swapped, true) != FITS) return false;
    int64_t peer = peer_memory(engine, primary, secondary);
    if (secondary_reason(engine, primary, &swapped, peer, true, offline) != FITS) return false;
    add_primary(engine, secondary, &swapped);
    add_secondary(engine, primary, &swapped, secondary);
    return true;
}

/* Start an instance on foreign storage on the best other node of the group. */
static bool move(struct engine *engine, int64_t row, const struct resident *resident) {
    const struct instance *instance = resident->instance;
    int64_t group = engine->facts[row].group, count = 0;
    int64_t *targets = scratch(engine, EVACUATION_TARGETS, engine->node_count, sizeof *targets);
    if (instance->primary != row) fail(engine, ASK_THE_LAW); /* two instances of one number: it may stay where it is */
    for (int64_t other = 0; other < engine->node_count; other++) {
        if (other == row || engine->facts[other].group != group || !may_migrate(engine, row, other)) continue;
        if (primary_reason(engine, other, instance, true) == FITS) targets[count++] = other;
    }
    if (count == 0) return false;
    remove_primary(engine, row, instance, resident->listed);
    add_primary(engine, best_single(engine, group, instance, targets, count).row, instance);
    return true;
}

/* Place a copy of an instance on the best other node of the group. */
static bool copy(struct engine *engine, int64_t row, const struct instance *instance) {
    int64_t group = engine->facts[row].group, count = 0;
    int64_t *targets = scratch(engine, EVACUATION_TARGETS, engine->node_count, sizeof *targets);
    enum reason verdicts[2] = {INTERNAL, INTERNAL}; /* a group has one policy; INTERNAL is not yet asked */
    for (int64_t other = 0; other < engine->node_count; other++) {
        if (other == row || engine->facts[other].group != group) continue;
        enum reason *verdict = &verdicts[engine->facts[other].exclusive];
        if (*verdict == INTERNAL) *verdict = check_policy(engine, other, instance, 0);
        if (*verdict != FITS) continue;
        if (primary_reason(engine, other, instance, true) == FITS) targets[count++] = other;
    }
    if (count == 0) return false;
    add_primary(engine, best_single(engine, EVERYWHERE, instance, targets, count).row, instance);
    return true;
}

/* Go through the evacuation step by step; the state is changed. */
static bool evacuate(struct engine *engine, int64_t row) {
    struct resident *residents;
    int64_t count = residents_of(engine, row, &residents), copies = 0;
    for (int64_t place = 0; place < count; place++) {
        if (residents[place].instance->evacuation == FAIL_OVER && !fail_over(engine, &residents[place])) return false;
    }
    for (int64_t place = 0; place < count; place++) {
        if (residents[place].instance->evacuation == MOVE && !move(engine, row, &residents[place])) return false;
    }
    /* the biggest first; equal ones stay in their order */
    for (int64_t place = 0; place < count; place++) {
        struct resident resident = residents[place];
        if (resident.instance->evacuation != COPY) continue;
        int64_t to = copies++;
        for (; to > 0 && residents[to - 1].instance->memory < resident.instance->memory; to--) {
            residents[to] = residents[to - 1];
        }
        residents[to] = resident;
    }
    for (int64_t place = 0; place < copies; place++) {
        if (!copy(engine, row, residents[place].instance)) return false;
    }
    return true;
}

static bool can_evacuate(struct engine *engine, int64_t row) {
    struct mark before = engine->top;
    look_at_stop(engine);
    bool answer = evacuate(engine, row);
    take_back(engine, before);
    return answer;
}

/* Add up the memory that fails over from one node, per target; return how many targets there are. */
static int64_t moves_from(struct engine *engine, int64_t row, struct share **moves) {
    const struct list *primaries = &engine->primaries[row];
    int64_t count = 0;
    *moves = scratch(engine, SHARES_OF_MOVES, primaries->count, sizeof **moves);
    for (int64_t place = 0; place < primaries->count; place++) {
        const struct instance *instance = &engine->instances[primaries->items[place]];
        int64_t known = 0;
        while (known < count && (*moves)[known].node != instance->secondary) known++;
        if (known == count) (*moves)[count++] = (struct share){instance->secondary, 0};
        (*moves)[known].memory += memory_used(instance);
    }
    return count;
}

/* Whether a node whose instances are all mirrored can be evacuated. A fail-over takes from both nodes what it gives
 * back, save for memory, and memory is never negative: so what counts is what all together need. */
static bool can_fail_over(struct engine *engine, int64_t row) {
    const struct list *primaries = &engine->primaries[row];
    const struct facts *facts = &engine->facts[row];
    const struct node *node = &engine->nodes[row];
    struct share *moves;
    if (!facts->offline && node->disk <= 0) return false;
    for (int64_t place = 0; place < primaries->count; place++) {
        const struct instance *instance = &engine->instances[primaries->items[place]];
        int64_t other = instance->secondary;
        bool unknown = instance->spindles == UNKNOWN_SPINDLES;
        if (!may_migrate(engine, row, other) || engine->nodes[other].disk <= 0) return false;
        if (facts->exclusive && (unknown || node->free_spindles < 0)) return false;
        if (engine->facts[other].exclusive && (unknown || engine->nodes[other].free_spindles < 0)) return false;
    }
    int64_t count = moves_from(engine, row, &moves);
    for (int64_t place = 0; place < count; place++) {
        if (engine->nodes[moves[place].node].unallocated - moves[place].memory <= 0) return false;
    }
    return true;
}

/* Answer without a simulation if that is possible. */
static enum verdict judge(struct engine *engine, int64_t row) {
    const struct list *primaries = &engine->primaries[row];
    int64_t mirrored = 0;
    for (int64_t place = 0; place < primaries->count; place++) {
        mirrored += engine->instances[primaries->items[place]].evacuation == FAIL_OVER;
    }
    if (primaries->count == 0) return YES;
    if (mirrored == primaries->count) return can_fail_over(engine, row) ? YES : NO;
    if (mirrored > 0 || engine->restricted_moves) return UNSURE;
    return judge_room(engine, row);
}

bool is_redundant(struct engine *engine) {
    int64_t unsure = 0, hint = engine->last_failing;
    int64_t *rows = scratch(engine, REDUNDANCY_ROWS, engine->node_count + 1, sizeof *rows);
    if (engine->clashing || engine->any_missing) {
        for (int64_t row = 0; row < engine->node_count; row++) {
            if (engine->facts[row].examined && !can_evacuate(engine, row)) return false;
        }
        return true;
    }
    /* the order does not matter to the answer: sure failures first, and the node that failed last time */
    if (hint < engine->node_count && engine->facts[hint].examined && judge(engine, hint) == NO) return false;
    for (int64_t row = 0; row < engine->node_count; row++) {
        if (!engine->facts[row].examined) continue;
        enum verdict verdict = judge(engine, row);
        if (verdict == NO) {
            engine->last_failing = row;
            return false;
        }
        if (verdict == UNSURE) rows[unsure++] = row;
        if (verdict == UNSURE && row == hint) {
            rows[unsure - 1] = rows[0];
            rows[0] = row;
        }
    }
    for (int64_t place = 0; place < unsure; place++) {
        if (!can_evacuate(engine, rows[place])) {
            engine->last_failing = rows[place];
            return false;
        }
    }
    return true;
}

bool known_redundant(struct engine *engine) {
    if (engine->redundant_version != engine->version) {
        engine->redundant_answer = is_redundant(engine);
        engine->redundant_version = engine->version;
    }
    return engine->redundant_answer;
}

bool all_mirrored(const struct engine *engine) {
    bool plain = !engine->restricted_moves && !engine->any_exclusive && !engine->any_missing && !engine->clashing;
    for (int64_t row = 0; plain && row < engine->node_count; row++) plain = engine->facts[row].examined;
    return plain && engine->mirrored && engine->only_mirrored;
}

void memory_moving(const struct engine *engine, int64_t row, int64_t *moving) {
    const struct list *primaries = &engine->primaries[row];
    memset(moving, 0, (size_t)engine->node_count * sizeof *moving);
    for (int64_t place = 0; place < primaries->count; place++) {
        const struct instance *instance = &engine->instances[primaries->items[place]];
        moving[instance->secondary] += memory_used(instance);
    }
}

void most_memory_moving(struct engine *engine, int64_t *most_moving) {
    memset(most_moving, 0, (size_t)engine->node_count * sizeof *most_moving);
    for (int64_t row = 0; row < engine->node_count; row++) {
        struct share *moves;
        int64_t count = moves_from(engine, row, &moves);
        for (int64_t place = 0; place < count; place++) {
            int64_t node = moves[place].node;
            most_moving[node] = most(most_moving[node], moves[place].memory);
        }
    }
}
