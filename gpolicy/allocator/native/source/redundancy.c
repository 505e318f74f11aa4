#include "redundancy.h"

#include <string.h>

#include "moves.h"
#include "node_changes.h"
#include "policy_check.h"
#include "room.h"
#include "statistics.h"
#include "whole_score.h"

/* An instance on an evacuated node, the nodes of its record before, and its place in the list. During a simulation the
 * record says where the instance is: a node may list it twice, and htools then moves it again from there (GlobalN1.hs).
 */
struct resident { struct instance *instance; int64_t primary, secondary, place; };

/* What moves to a node when others fail. */
struct load { int64_t memory, cpus; };

/* Working memory: the instances of a node, their targets, and the nodes that must be simulated. For several failures:
 * what moves to each node from one node (0 between questions), the most of it, and the nodes whose loss was not
 * absorbed last time. */
struct evacuating {
    struct buffer residents, targets, unsure, most;
    struct load *moving_load;
    int64_t last_lost[MOST_FAILURES], last_count;
    int64_t doubts; /* simulations until nodes that are alike are tried again */
};

enum { DOUBTS = 100 };

bool open_evacuating(struct engine *engine) {
    struct evacuating *evacuating = engine->evacuating = zeroed(engine, 1, sizeof *evacuating);
    if (evacuating == NULL) return false;
    evacuating->moving_load = zeroed(engine, engine->node_count, sizeof *evacuating->moving_load);
    return evacuating->moving_load != NULL;
}

/* List the instances of some nodes, node by node, the newest first; NULL after fail(). See restore(). */
static struct resident *residents_of(struct engine *engine, const int64_t *rows, int64_t count) {
    struct table *table = &engine->table;
    int64_t total = 0;
    for (int64_t place = 0; place < count; place++) total += engine->primaries[rows[place]].count;
    struct resident *residents = reserve(engine, &engine->evacuating->residents, total, sizeof *residents),
                    *next = residents;
    for (int64_t place = 0; place < count && residents != NULL; place++) {
        const struct list *primaries = &engine->primaries[rows[place]];
        for (int64_t item = primaries->count - 1; item >= 0; item--) {
            struct instance *instance = &table->items[primaries->items[item]];
            bool other_number = instance->index != table->numbers[primaries->items[item]];
            *next = (struct resident){instance, instance->primary, instance->secondary, next - residents};
            instance->no_primary_entry = instance->no_secondary_entry = other_number;
            next++;
        }
    }
    return residents;
}

/* Nodes of one group that are evacuated at once; `cpus`: only to nodes that keep the vcpu-ratio. */
struct lost { const int64_t *rows; int64_t count, group; bool cpus; };

static bool is_lost(const struct lost *lost, int64_t row) {
    for (int64_t place = 0; place < lost->count; place++) {
        if (lost->rows[place] == row) return true;
    }
    return false;
}

/* Whether a node may take the instance of a lost node at all. */
static bool may_take(const struct engine *engine, const struct lost *lost, int64_t row,
                     const struct instance *instance) {
    if (is_lost(lost, row) || engine->facts[row].group != lost->group) return false;
    return !lost->cpus || keeps_vcpu_ratio(engine, row, instance);
}

/* Move an instance of a lost node whose record names a node that is not lost. For a change of group, hail gives a
 * placed instance the number of another one. Staying on its recorded node is possible and takes it off the lost node.
 */
static int64_t move_from_elsewhere(struct engine *engine, const struct lost *lost, const struct resident *resident) {
    int64_t best = NOWHERE;
    double best_score = 0.0;
    for (int64_t other = 0; other < engine->node_count && !ended(engine); other++) {
        struct mark before = engine->journal.top;
        struct instance instance = *resident->instance;
        if (!may_take(engine, lost, other, &instance)) continue;
        if (fail_over_to(engine, &instance, other, true) == FITS) {
            double score = whole_score(engine, lost->group);
            if (best == NOWHERE || !(best_score < score)) best = other, best_score = score;
        }
        take_back(engine, before);
    }
    if (best != NOWHERE) fail_over_to(engine, resident->instance, best, true);
    return best;
}

/* Start an instance on external storage on the best remaining node; return its row, or NOWHERE. */
static int64_t move(struct engine *engine, const struct lost *lost, const struct resident *resident) {
    struct instance *instance = resident->instance;
    int64_t count = 0, source = instance->primary;
    int64_t *targets = reserve(engine, &engine->evacuating->targets, engine->node_count, sizeof *targets);
    if (source == NOWHERE) fail(engine, ASK_THE_LAW);
    if (ended_after(engine, engine->node_count / 4)) return NOWHERE;
    if (!is_lost(lost, source)) return move_from_elsewhere(engine, lost, resident);
    for (int64_t other = 0; other < engine->node_count; other++) {
        if (!may_take(engine, lost, other, instance) || !may_migrate(engine, source, other)) continue;
        if (primary_reason(engine, other, instance, true) == FITS) targets[count++] = other;
    }
    if (count == 0) return NOWHERE;
    remove_primary(engine, source, instance);
    /* of undefined scores htools takes the last one here (GlobalN1.hs) */
    bool undefined = score_is_undefined(engine, lost->group);
    int64_t target = undefined ? targets[count - 1] : best_row(engine, lost->group, instance, targets, count);
    add_primary(engine, target, instance);
    instance->primary = target;
    instance->no_primary_entry = false;
    return target;
}

/* Place a copy of an instance on the best remaining node; return its row, or NOWHERE. */
static int64_t copy(struct engine *engine, const struct lost *lost, const struct instance *instance) {
    int64_t count = 0, *targets = reserve(engine, &engine->evacuating->targets, engine->node_count, sizeof *targets);
    enum reason verdicts[2] = {INTERNAL, INTERNAL}; /* of the one policy; INTERNAL: not yet asked */
    if (ended_after(engine, engine->node_count / 4)) return NOWHERE;
    for (int64_t other = 0; other < engine->node_count; other++) {
        if (!may_take(engine, lost, other, instance)) continue;
        enum reason *verdict = &verdicts[engine->facts[other].exclusive];
        if (*verdict == INTERNAL) *verdict = check_ipolicy(engine, other, instance, 0);
        if (*verdict != FITS) continue;
        if (primary_reason(engine, other, instance, true) == FITS) targets[count++] = other;
    }
    if (count == 0) return NOWHERE;
    int64_t target = best_row(engine, EVERYWHERE, instance, targets, count);
    count_open(engine, target, -1);
    add_primary(engine, target, instance);
    count_open(engine, target, 1);
    return target;
}

/* Let a mirrored instance fail over with `force`; return its new primary, or NOWHERE. */
static int64_t fail_over_resident(struct engine *engine, const struct lost *lost, const struct resident *resident) {
    struct mark before = engine->journal.top;
    struct instance swapped = *resident->instance;
    if (swapped.primary == NOWHERE) fail(engine, ASK_THE_LAW);
    if (failed(engine)) return NOWHERE;
    bool watched = lost->cpus && swapped.secondary != NOWHERE;
    if (watched && !keeps_vcpu_ratio(engine, swapped.secondary, &swapped)) return NOWHERE;
    if (fail_over(engine, &swapped, true) == FITS) {
        *resident->instance = swapped;
        return swapped.primary;
    }
    take_back(engine, before);
    return NOWHERE;
}

/* Record the target of an instance. Without a list of `targets`, the evacuation ends with the first failure. */
static bool goes_on(const struct resident *resident, int64_t target, int64_t *targets) {
    if (targets == NULL) return target != NOWHERE;
    targets[resident->place] = target;
    return true;
}

/* Let mirrored residents fail over, and move those on external storage. Those without a target stay where they are. */
static bool move_residents(struct engine *engine, const struct lost *lost, const struct resident *residents,
                           int64_t count, int64_t *targets) {
    for (int64_t place = 0; place < count && !failed(engine); place++) {
        const struct instance *instance = residents[place].instance;
        if (instance->evacuation != FAIL_OVER) continue;
        if (lost->count > 1 && instance->secondary != NOWHERE && is_lost(lost, instance->secondary)) continue;
        if (!goes_on(&residents[place], fail_over_resident(engine, lost, &residents[place]), targets)) return false;
    }
    for (int64_t place = 0; place < count && !failed(engine); place++) {
        if (residents[place].instance->evacuation != MOVE) continue;
        if (!goes_on(&residents[place], move(engine, lost, &residents[place]), targets)) return false;
    }
    return !failed(engine);
}

/* Give the records of residents their nodes back. */
static void restore(const struct resident *residents, int64_t count) {
    for (int64_t place = 0; place < count; place++) {
        struct instance *instance = residents[place].instance;
        instance->primary = residents[place].primary;
        instance->secondary = residents[place].secondary;
        instance->no_primary_entry = instance->no_secondary_entry = false;
    }
}

/* Place copies of the other residents, the biggest first; equal ones keep their order. */
static bool copy_residents(struct engine *engine, const struct lost *lost, struct resident *residents, int64_t count,
                           int64_t *targets) {
    int64_t copies = 0;
    for (int64_t place = 0; place < count; place++) {
        struct resident resident = residents[place];
        if (resident.instance->evacuation != COPY) continue;
        int64_t to = copies++;
        for (; to > 0 && residents[to - 1].instance->memory < resident.instance->memory; to--) {
            residents[to] = residents[to - 1];
        }
        residents[to] = resident;
    }
    for (int64_t place = 0; place < copies; place++) queue_up(engine, residents[place].instance, place);
    open_queue(engine);
    for (int64_t place = 0; place < copies && !failed(engine); place++) {
        if (queue_is_sure(engine, place)) return true;
        if (!goes_on(&residents[place], copy(engine, lost, residents[place].instance), targets)) return false;
    }
    return !failed(engine);
}

/* Simulate the evacuation, and take it back. */
static bool simulate(struct engine *engine, const struct lost *lost, int64_t *targets) {
    bool only_answer = targets == NULL && lost->count == 1 && !lost->cpus && !engine->doubled && !engine->clashing;
    bool watched = only_answer && engine->missing == 0 && census_of(engine, lost->rows[0])->only_room;
    begin_queue(engine, lost->rows[0], watched);
    struct mark before = engine->journal.top;
    struct resident *residents = residents_of(engine, lost->rows, lost->count);
    int64_t count = 0;
    if (residents == NULL) return false;
    for (int64_t place = 0; place < lost->count; place++) count += engine->primaries[lost->rows[place]].count;
    bool moved = move_residents(engine, lost, residents, count, targets);
    restore(residents, count);
    bool answer = moved && copy_residents(engine, lost, residents, count, targets);
    take_back(engine, before);
    return answer;
}

/* The same; where only the answer matters, first with any of nodes that are alike. */
static bool evacuate(struct engine *engine, const struct lost *lost, int64_t *targets) {
    struct evacuating *evacuating = engine->evacuating;
    bool plain = targets == NULL && !engine->doubled && !engine->clashing && engine->missing == 0;
    if (!plain || evacuating->doubts-- > 0) return simulate(engine, lost, targets);
    engine->any_alike = true;
    engine->undecided = false;
    bool answer = simulate(engine, lost, NULL);
    engine->any_alike = false;
    evacuating->doubts = engine->undecided ? DOUBTS : 0;
    return engine->undecided ? simulate(engine, lost, NULL) : answer;
}

void lose(struct engine *engine, const int64_t *rows, int64_t count, bool cpus, int64_t *targets) {
    struct lost lost = {rows, count, engine->facts[rows[0]].group, cpus};
    evacuate(engine, &lost, targets);
}

static bool can_evacuate_all(struct engine *engine, const int64_t *rows, int64_t count) {
    struct lost lost = {rows, count, engine->facts[rows[0]].group, engine->cpus};
    return !ended_after(engine, 1 + engine->primaries[rows[0]].count) && evacuate(engine, &lost, NULL);
}

static bool can_evacuate(struct engine *engine, int64_t row) { return can_evacuate_all(engine, &row, 1); }

/* Whether the mirrored instances of a node, if there are any, can fail over. A fail-over takes from both nodes as much
 * as it gives back, except for memory, which is never negative. So only the sums of memory count. */
static bool can_fail_over(const struct engine *engine, int64_t row, const struct census *census) {
    const struct facts *facts = &engine->facts[row];
    const struct node *node = &engine->nodes[row];
    if (census->mirrored > 0 && !facts->offline && node->disk <= 0) return false;
    for (int64_t place = 0; place < census->count; place++) {
        const struct target *target = &census->targets[place];
        const struct node *other = &engine->nodes[target->row];
        if (other->unallocated - target->memory <= 0 || other->disk <= 0) return false;
        if (engine->restricted_moves && !may_migrate(engine, row, target->row)) return false;
        if (facts->exclusive && (target->unknown || node->free_spindles < 0)) return false;
        if (engine->facts[target->row].exclusive && (target->unknown || other->free_spindles < 0)) return false;
    }
    return true;
}

/* Answer without a simulation, or with UNSURE. A YES also holds with fewer instances, a NO with more of them. */
static enum verdict judge(struct engine *engine, int64_t row) {
    const struct census *census = census_of(engine, row);
    if (failed(engine) || (engine->doubled && census->mirrored + census->moves > 0)) return UNSURE;
    if (!can_fail_over(engine, row, census)) return NO;
    return census->mirrored == engine->primaries[row].count ? YES : judge_room(engine, row);
}

/* Simulate the evacuation of each node, as the law does. */
static bool all_can_be_evacuated(struct engine *engine) {
    for (int64_t row = 0; row < engine->node_count; row++) {
        if (engine->facts[row].examined && !can_evacuate(engine, row)) return false;
    }
    return true;
}

/* Keep the `count` greatest numbers, the greatest first. */
static void keep_greatest(int64_t *greatest, int64_t count, int64_t number) {
    for (int64_t place = 0; place < count; place++) {
        if (number > greatest[place]) {
            int64_t smaller = greatest[place];
            greatest[place] = number;
            number = smaller;
        }
    }
}

/* Whether all sets of nodes can fail; UNSURE if not all instances are mirrored within their group. A node is worst off
 * if those nodes fail whose instances take most from it; each resource counts alone. */
static enum verdict mirrored_survive(struct engine *engine) {
    struct load *from = engine->evacuating->moving_load;
    int64_t failures = engine->failures, nodes = engine->node_count;
    int64_t *memory = reserve(engine, &engine->evacuating->most, 2 * nodes * failures, sizeof *memory);
    if (failed(engine)) return UNSURE;
    int64_t *cpus = memory + nodes * failures;
    for (int64_t row = 0; row < nodes; row++) {
        const struct list *primaries = &engine->primaries[row];
        for (int64_t place = 0; place < primaries->count && engine->facts[row].examined; place++) {
            const struct instance *instance = &engine->table.items[primaries->items[place]];
            if (instance->evacuation != FAIL_OVER) return UNSURE;
            if (engine->facts[instance->secondary].group != engine->facts[row].group) return UNSURE;
        }
    }
    memset(memory, 0, (size_t)(2 * nodes * failures) * sizeof *memory);
    for (int64_t row = 0; row < nodes; row++) {
        const struct list *primaries = &engine->primaries[row];
        if (!engine->facts[row].examined) continue;
        if (!can_fail_over(engine, row, census_of(engine, row))) return NO;
        for (int64_t place = 0; place < primaries->count; place++) {
            const struct instance *instance = &engine->table.items[primaries->items[place]];
            from[instance->secondary].memory += memory_used(instance);
            from[instance->secondary].cpus += cpus_used(instance);
        }
        for (int64_t place = 0; place < primaries->count; place++) {
            int64_t other = engine->table.items[primaries->items[place]].secondary;
            keep_greatest(memory + other * failures, failures, from[other].memory);
            keep_greatest(cpus + other * failures, failures, from[other].cpus);
            from[other] = (struct load){0, 0};
        }
    }
    for (int64_t row = 0; row < nodes; row++) {
        struct load sum = {0, 0};
        for (int64_t place = row * failures; place < (row + 1) * failures; place++) {
            sum.memory += memory[place];
            sum.cpus += cpus[place];
        }
        if (sum.memory > 0 && engine->nodes[row].unallocated - sum.memory <= 0) return NO;
        if (engine->cpus && !takes_cpus(engine, row, sum.cpus)) return NO;
    }
    return YES;
}

/* Simulate the loss of all sets of `size` nodes of a group that begin with the `count` nodes in `rows`, until one is
 * not absorbed, which then is in `rows`. */
static bool each_set_survives(struct engine *engine, int64_t *rows, int64_t count, int64_t size) {
    if (count == size) return can_evacuate_all(engine, rows, size);
    for (int64_t row = count == 0 ? 0 : rows[count - 1] + 1; row < engine->node_count; row++) {
        if (!engine->facts[row].examined) continue;
        if (count > 0 && engine->facts[row].group != engine->facts[rows[0]].group) continue;
        rows[count] = row;
        if (!each_set_survives(engine, rows, count + 1, size)) return false;
    }
    return true;
}

/* The N+1 test for several nodes at once, or for CPUs. */
static bool survives(struct engine *engine) {
    struct evacuating *evacuating = engine->evacuating;
    /* a simulation may meet an instance without a secondary */
    bool told = engine->clashing || engine->doubled || engine->missing > 0;
    if (!told) {
        enum verdict verdict = mirrored_survive(engine);
        if (failed(engine)) return false;
        if (verdict != UNSURE) return verdict == YES;
    }
    if (!told && evacuating->last_count > 0) {
        if (!can_evacuate_all(engine, evacuating->last_lost, evacuating->last_count)) return false;
    }
    for (int64_t size = 1; size <= engine->failures; size++) {
        int64_t rows[MOST_FAILURES];
        if (each_set_survives(engine, rows, 0, size)) continue;
        memcpy(evacuating->last_lost, rows, sizeof rows);
        evacuating->last_count = failed(engine) ? 0 : size;
        return false;
    }
    return true;
}

bool is_redundant(struct engine *engine) {
    if (is_strict(engine)) return survives(engine);
    struct evacuating *evacuating = engine->evacuating;
    int64_t unsure = 0, hint = engine->last_failing;
    if (engine->clashing || engine->missing > 0) return all_can_be_evacuated(engine);
    int64_t *rows = reserve(engine, &evacuating->unsure, engine->node_count, sizeof *rows);
    if (rows == NULL) return false;
    /* the order does not change the answer: first the node that failed last time, then the nodes without simulation */
    if (hint < engine->node_count && engine->facts[hint].examined) {
        enum verdict verdict = engine->last_was_simulated ? UNSURE : judge(engine, hint);
        if (verdict == NO || (verdict == UNSURE && !can_evacuate(engine, hint))) return false;
    }
    for (int64_t row = 0; row < engine->node_count; row++) {
        if (row == hint || !engine->facts[row].examined) continue;
        enum verdict verdict = judge(engine, row);
        if (verdict == NO) {
            engine->last_failing = row;
            engine->last_was_simulated = false;
            return false;
        }
        if (verdict == UNSURE) rows[unsure++] = row;
    }
    for (int64_t place = 0; place < unsure; place++) {
        if (!can_evacuate(engine, rows[place])) {
            engine->last_failing = rows[place];
            engine->last_was_simulated = true;
            return false;
        }
    }
    return true;
}

bool is_surely_redundant(struct engine *engine) {
    if (engine->clashing || engine->missing > 0) return false;
    if (is_strict(engine)) return !engine->doubled && mirrored_survive(engine) == YES;
    for (int64_t row = 0; row < engine->node_count; row++) {
        if (engine->facts[row].examined && judge(engine, row) != YES) return false;
    }
    return true;
}

bool is_beyond_repair(struct engine *engine) {
    if (engine->clashing || engine->missing > 0 || is_strict(engine) || is_redundant(engine)) return false;
    return !failed(engine) && (judge(engine, engine->last_failing) == NO || lacks_room(engine, engine->last_failing));
}

bool all_mirrored(const struct engine *engine) {
    bool plain = !engine->restricted_moves && !engine->any_exclusive && engine->missing == 0;
    plain = plain && !engine->clashing && !engine->doubled;
    for (int64_t row = 0; plain && row < engine->node_count; row++) plain = engine->facts[row].examined;
    return plain && engine->mirrored && engine->unmirrored == 0;
}
