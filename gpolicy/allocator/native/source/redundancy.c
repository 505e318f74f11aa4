#include "redundancy.h"

#include <stdlib.h>

#include "node_changes.h"
#include "policy_check.h"
#include "room.h"
#include "statistics.h"
#include "whole_score.h"

/* An instance on the node that is evacuated; `listed`: the node's list calls it by its own number. */
struct resident { const struct instance *instance; bool listed; };

/* Working memory: the instances of a node and where they may go, what is moving to each node (0 between the questions),
 * the nodes that only a simulation can judge, and the node that could not be evacuated last time. */
struct evacuating { struct buffer residents, targets, unsure; int64_t *moving, last_failing; };

bool open_evacuating(struct engine *engine) {
    struct evacuating *evacuating = engine->evacuating = zeroed(engine, 1, sizeof *evacuating);
    if (evacuating == NULL) return false;
    evacuating->moving = zeroed(engine, engine->node_count, sizeof *evacuating->moving);
    return evacuating->moving != NULL;
}

void close_evacuating(struct engine *engine) {
    struct evacuating *evacuating = engine->evacuating;
    if (evacuating == NULL) return;
    free(evacuating->residents.items);
    free(evacuating->targets.items);
    free(evacuating->unsure.items);
    free(evacuating->moving);
    free(evacuating);
}

static struct resident *residents_of(struct engine *engine, int64_t row) {
    const struct list *primaries = &engine->primaries[row];
    const struct table *table = &engine->table;
    struct resident *residents =
        reserve(engine, &engine->evacuating->residents, primaries->count, sizeof *residents);
    if (residents == NULL) return NULL;
    for (int64_t place = 0; place < primaries->count; place++) {
        int64_t slot = primaries->items[primaries->count - 1 - place]; /* the newest first */
        const struct instance *instance = &table->items[slot];
        residents[place] = (struct resident){instance, instance->index == table->numbers[slot]};
    }
    return residents;
}

/* Swap primary and secondary by force. */
static bool fail_over(struct engine *engine, const struct resident *resident) {
    struct instance swapped = *resident->instance;
    int64_t primary = swapped.primary, secondary = swapped.secondary;
    if (secondary == NOWHERE) {
        engine->missing_index = swapped.secondary_index;
        fail(engine, MISSING_NODE);
        return false;
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
    int64_t *targets = reserve(engine, &engine->evacuating->targets, engine->node_count, sizeof *targets);
    if (instance->primary != row) fail(engine, ASK_THE_LAW); /* two instances of one number: it may stay where it is */
    if (failed(engine)) return false;
    for (int64_t other = 0; other < engine->node_count; other++) {
        if (other == row || engine->facts[other].group != group || !may_migrate(engine, row, other)) continue;
        if (primary_reason(engine, other, instance, true) == FITS) targets[count++] = other;
    }
    if (count == 0) return false;
    remove_primary(engine, row, instance, resident->listed);
    /* of scores that cannot be compared the last counts here (htools, GlobalN1) */
    bool undefined = score_is_undefined(engine, group);
    int64_t target = undefined ? targets[count - 1] : best_single(engine, group, instance, targets, count).row;
    add_primary(engine, target, instance);
    return !failed(engine);
}

/* Place a copy of an instance on the best other node of the group. */
static bool copy(struct engine *engine, int64_t row, const struct instance *instance) {
    int64_t group = engine->facts[row].group, count = 0;
    int64_t *targets = reserve(engine, &engine->evacuating->targets, engine->node_count, sizeof *targets);
    if (targets == NULL) return false;
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
    return !failed(engine);
}

/* Go through the evacuation step by step; the state is changed. */
static bool evacuate(struct engine *engine, int64_t row) {
    struct resident *residents = residents_of(engine, row);
    int64_t count = engine->primaries[row].count, copies = 0;
    if (residents == NULL) return false;
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
    struct mark before = engine->journal.top;
    if (ended(engine)) return false;
    bool answer = evacuate(engine, row);
    take_back(engine, before);
    return answer;
}

void memory_moving(const struct engine *engine, int64_t row, int64_t *moving) {
    const struct list *primaries = &engine->primaries[row];
    for (int64_t place = 0; place < primaries->count; place++) {
        const struct instance *instance = &engine->table.items[primaries->items[place]];
        moving[instance->secondary] += memory_used(instance);
    }
}

/* Whether what moves leaves some memory free everywhere; `moving` is 0 again afterwards. */
static bool memory_is_left(const struct engine *engine, int64_t row, int64_t *moving) {
    const struct list *primaries = &engine->primaries[row];
    bool left = true;
    for (int64_t place = 0; place < primaries->count; place++) {
        int64_t other = engine->table.items[primaries->items[place]].secondary;
        if (engine->nodes[other].unallocated - moving[other] <= 0) left = false;
    }
    for (int64_t place = 0; place < primaries->count; place++) {
        moving[engine->table.items[primaries->items[place]].secondary] = 0;
    }
    return left;
}

/* Whether a node whose instances are all mirrored can be evacuated. A fail-over takes from both nodes what it gives
 * back, save for memory, and memory is never negative: so what counts is what all together need. */
static bool can_fail_over(struct engine *engine, int64_t row) {
    const struct list *primaries = &engine->primaries[row];
    const struct facts *facts = &engine->facts[row];
    const struct node *node = &engine->nodes[row];
    if (!facts->offline && node->disk <= 0) return false;
    for (int64_t place = 0; place < primaries->count; place++) {
        const struct instance *instance = &engine->table.items[primaries->items[place]];
        int64_t other = instance->secondary;
        bool unknown = instance->spindles == UNKNOWN_SPINDLES;
        if (!may_migrate(engine, row, other) || engine->nodes[other].disk <= 0) return false;
        if (facts->exclusive && (unknown || node->free_spindles < 0)) return false;
        if (engine->facts[other].exclusive && (unknown || engine->nodes[other].free_spindles < 0)) return false;
    }
    memory_moving(engine, row, engine->evacuating->moving);
    return memory_is_left(engine, row, engine->evacuating->moving);
}

/* Answer without a simulation if that is possible. */
static enum verdict judge(struct engine *engine, int64_t row) {
    const struct list *primaries = &engine->primaries[row];
    int64_t mirrored = 0;
    for (int64_t place = 0; place < primaries->count; place++) {
        mirrored += engine->table.items[primaries->items[place]].evacuation == FAIL_OVER;
    }
    if (primaries->count == 0) return YES;
    if (mirrored == primaries->count) return can_fail_over(engine, row) ? YES : NO;
    if (mirrored > 0 || engine->restricted_moves) return UNSURE;
    return judge_room(engine, row);
}

/* Go through all nodes as the law does. */
static bool all_can_be_evacuated(struct engine *engine) {
    for (int64_t row = 0; row < engine->node_count; row++) {
        if (engine->facts[row].examined && !can_evacuate(engine, row)) return false;
    }
    return true;
}

bool is_redundant(struct engine *engine) {
    struct evacuating *evacuating = engine->evacuating;
    int64_t unsure = 0, hint = evacuating->last_failing;
    if (engine->clashing || engine->missing > 0) return all_can_be_evacuated(engine);
    int64_t *rows = reserve(engine, &evacuating->unsure, engine->node_count, sizeof *rows);
    if (rows == NULL) return false;
    /* the order does not matter to the answer: sure failures first, and the node that failed last time */
    if (hint < engine->node_count && engine->facts[hint].examined && judge(engine, hint) == NO) return false;
    for (int64_t row = 0; row < engine->node_count; row++) {
        if (!engine->facts[row].examined) continue;
        enum verdict verdict = judge(engine, row);
        if (verdict == NO) {
            evacuating->last_failing = row;
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
            evacuating->last_failing = rows[place];
            return false;
        }
    }
    return true;
}

bool all_mirrored(const struct engine *engine) {
    bool plain = !engine->restricted_moves && !engine->any_exclusive && engine->missing == 0 && !engine->clashing;
    for (int64_t row = 0; plain && row < engine->node_count; row++) plain = engine->facts[row].examined;
    return plain && engine->mirrored && engine->unmirrored == 0;
}
