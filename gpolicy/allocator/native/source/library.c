/* The functions that gpolicy/allocator/native/library.py calls. */
#include <stdlib.h>
#include <string.h>

#include "attempt.h"
#include "balancing.h"
#include "capacity.h"
#include "dedicated.h"
#include "evacuation.h"
#include "input.h"
#include "outcomes.h"
#include "pairs.h"
#include "placing.h"
#include "redundancy.h"
#include "room.h"
#include "shrink.h"
#include "whole_score.h"

#define EXPORTED __attribute__((visibility("default")))
#ifndef GPOLICY_SOURCES
#error "the build passes GPOLICY_SOURCES, a number made of all sources, so that an old library is recognised"
#endif

/* The answer to an attempt or a run. */
struct result { int64_t failures[REASONS], attempted, refused, successes, primary, secondary; double score; };

/* One move of balancing, and the score after it; `slot` is NOWHERE if no move improves the score. */
struct taken_move { int64_t slot, kind, target; double score; };

/* One placement: the rows of its nodes, and the size to which the instance was shrunk. */
struct placement { int64_t primary, secondary, memory, least_disk, vcpus, spindles; };

EXPORTED uint32_t gpolicy_sources(void) { return GPOLICY_SOURCES; }

/* Read a cluster. Returns an enum status. The caller must close the engine after any status, unless it is NULL. */
EXPORTED int gpolicy_open(const int64_t *integers, int64_t integer_count, const double *reals, int64_t real_count,
                          struct engine **opened) {
    struct numbers numbers = {integers, integer_count, reals, real_count};
    struct engine *engine = *opened = calloc(1, sizeof *engine);
    if (engine == NULL) return OUT_OF_MEMORY;
    engine->allowed = engine->steps_left = INT64_MAX;
    read_cluster(engine, &numbers);
    if (failed(engine)) return (int)engine->status;
    bool open = open_outcomes(engine) && open_pair_search(engine) && open_whole_search(engine) &&
                open_evacuating(engine) && open_room(engine);
    engine->open = open;
    return (int)engine->status;
}

EXPORTED void gpolicy_close(struct engine *engine) {
    if (engine == NULL) return;
    release_all(engine);
    free(engine);
}

/* Let each later call do so many steps of work; it then ends with TOO_LONG. */
EXPORTED void gpolicy_allow(struct engine *engine, int64_t steps) { engine->allowed = steps; }

/* Return how many steps the last call has done. */
EXPORTED int64_t gpolicy_steps(const struct engine *engine) { return engine->allowed - engine->steps_left; }

/* Make the call that another thread is in end without an answer (1), or allow calls again (0). */
EXPORTED void gpolicy_stop(struct engine *engine, int stop) {
    atomic_store_explicit(&engine->stop, stop, memory_order_relaxed);
}

enum kind { STANDARD, TIERED, ATTEMPT, DEDICATED, REDUNDANT, KINDS };

/* `limit` is the number of the new instance in the table of instances. */
static void answer_attempt(struct engine *engine, enum kind kind, const struct instance *instance, int64_t limit,
                           bool checked, struct result *result) {
    struct attempt attempt;
    if (kind == DEDICATED) {
        try_dedicated(engine, instance, &attempt);
    } else {
        try_allocate(engine, instance, limit, checked ? COUNTED : UNTESTED, &attempt);
        bool single = attempt.primary != NOWHERE && !engine->mirrored;
        if (single && !failed(engine)) attempt.score = single_score(engine, instance, attempt.primary);
    }
    memcpy(result->failures, attempt.counts.failures, sizeof result->failures);
    result->successes = attempt.counts.successes;
    result->primary = attempt.primary;
    result->secondary = attempt.secondary;
    result->score = attempt.score;
}

static void answer_run(struct engine *engine, enum kind kind, const struct instance *instance, int64_t limit,
                       struct result *result) {
    struct outcome outcome = {{{0}, 0}, false};
    int64_t given = engine->table.given;
    /* new instances get the numbers after the last one, so the table must have no gaps */
    if (given > 0 && engine->table.numbers[given - 1] != given - 1) fail(engine, INVALID);
    if (!failed(engine)) remember_sizes(engine);
    if (failed(engine)) return;
    engine->refused = false;
    if (kind == TIERED) {
        tiered(engine, instance, limit, &outcome);
    } else {
        standard(engine, instance, limit, &outcome);
    }
    forget_sizes(engine);
    memcpy(result->failures, outcome.counts.failures, sizeof result->failures);
    result->attempted = outcome.attempted;
    result->refused = engine->refused;
}

/* Begin a call: return to the state after `keep` placements. */
static bool begin(struct engine *engine, int64_t keep) {
    engine->steps_left = engine->allowed;
    if (!engine->open || keep < 0 || keep > engine->placements.count) return false;
    engine->status = DONE;
    unplace(engine, keep);
    return true;
}

/* End a call: after an error, restore the state of its beginning. */
static int end(struct engine *engine, int64_t keep, struct mark before) {
    if (failed(engine)) {
        unplace(engine, keep); /* placements first, then the changes of a simulation */
        take_back(engine, before);
    }
    return (int)engine->status;
}

/* Take back the placements beyond the first `keep` and answer one question. Returns an enum status; after an error the
 * engine is in the state after `keep` placements. */
EXPORTED int gpolicy_ask(struct engine *engine, int64_t keep, int kind, const int64_t *integers, int64_t integer_count,
                         const double *reals, int64_t real_count, int64_t limit, int checked, struct result *result) {
    struct numbers numbers = {integers, integer_count, reals, real_count};
    struct instance instance;
    memset(result, 0, sizeof *result);
    result->primary = result->secondary = NOWHERE;
    bool sensible = kind >= 0 && kind < KINDS && limit >= NO_LIMIT && !engine->moved;
    if (!sensible || !begin(engine, keep)) return INVALID;
    struct mark before = engine->journal.top;
    if (kind == REDUNDANT) {
        result->successes = is_redundant(engine);
        return end(engine, keep, before);
    }
    read_instance(engine, &numbers, NULL, &instance);
    instance.primary = instance.secondary = NOWHERE;
    if (failed(engine)) return (int)engine->status;
    if (kind == ATTEMPT || kind == DEDICATED) {
        answer_attempt(engine, (enum kind)kind, &instance, limit, checked != 0, result);
    } else {
        answer_run(engine, (enum kind)kind, &instance, limit, result);
    }
    return end(engine, keep, before);
}

/* Move an instance away from its nodes (evacuation.h). The integers are its record, then the count of candidates and
 * their rows, ascending. `unlisted`: 1 if its primary does not list it (any more), plus 2 if its secondary does not.
 * `result` has its new nodes; if no candidate takes it, the primary is NOWHERE and the state is unchanged. After a
 * move, only further moves can be asked for. */
EXPORTED int gpolicy_move_away(struct engine *engine, int leaving, int unlisted, int force, const int64_t *integers,
                               int64_t integer_count, const double *reals, int64_t real_count, struct result *result) {
    struct numbers numbers = {integers, integer_count, reals, real_count};
    struct list rows = {NULL, 0, 0};
    struct instance instance;
    memset(result, 0, sizeof *result);
    result->primary = result->secondary = NOWHERE;
    if (leaving < PRIMARY || leaving > BOTH || !begin(engine, 0)) return INVALID;
    struct mark before = engine->journal.top;
    read_instance(engine, &numbers, &rows, &instance);
    if (!failed(engine) && instance.primary == NOWHERE) fail(engine, INVALID);
    instance.no_primary_entry = (unlisted & 1) != 0;
    instance.no_secondary_entry = (unlisted & 2) != 0;
    if (!failed(engine) && move_away(engine, &instance, (enum leaving)leaving, force != 0, rows.items, rows.count)) {
        result->primary = instance.primary;
        result->secondary = instance.secondary;
        engine->version = ++engine->versions;
        engine->moved = true;
        engine->balanced = false;
    }
    release(engine, rows.items);
    return end(engine, 0, before);
}

/* Whether the instance at `slot` is where its record says; after the first move of balancing, lists show it no longer.
 */
static bool is_on_its_primary(const struct engine *engine, int64_t slot) {
    if (slot < 0 || slot >= engine->table.count || engine->table.items[slot].primary == NOWHERE) return false;
    if (engine->balanced || engine->table.items[slot].forthcoming) return true;
    const struct list *primaries = &engine->primaries[engine->table.items[slot].primary];
    int64_t place = 0;
    while (place < primaries->count && primaries->items[place] != slot) place++;
    return place < primaries->count;
}

enum { NO_DISK_MOVES = 1, NO_INSTANCE_MOVES = 2, EVACUATION = 4, RESTRICTED = 8, FORCE = 16, ALL_RULES = 31 };

/* Take the best move of balancing (balancing.h) of the instances at `slots`; `rules` is a sum of the numbers above.
 * After a move, only further moves can be asked for. */
EXPORTED int gpolicy_balance(struct engine *engine, int rules, const int64_t *slots, int64_t count,
                             struct taken_move *taken) {
    *taken = (struct taken_move){NOWHERE, 0, NOWHERE, 0.0};
    bool sensible = rules >= 0 && rules <= ALL_RULES && count >= 0 && count <= engine->table.count;
    if (!sensible || (engine->moved && !engine->balanced) || !begin(engine, 0)) return INVALID;
    for (int64_t place = 0; place < count; place++) {
        if (!is_on_its_primary(engine, slots[place]) || (place > 0 && slots[place - 1] >= slots[place])) return INVALID;
    }
    struct move_rules allowed = {(rules & NO_DISK_MOVES) == 0, (rules & NO_INSTANCE_MOVES) == 0,
                                 (rules & EVACUATION) != 0, (rules & RESTRICTED) != 0, (rules & FORCE) != 0};
    struct mark before = engine->journal.top;
    struct move move;
    if (take_best_move(engine, &allowed, slots, count, &move, &taken->score)) {
        taken->slot = move.slot;
        taken->kind = move.kind;
        taken->target = move.target;
        engine->version = ++engine->versions;
        engine->moved = engine->balanced = true;
    }
    return end(engine, 0, before);
}

/* Find where the instances of lost nodes run on (redundancy.h). */
EXPORTED int gpolicy_lose(struct engine *engine, const int64_t *rows, int64_t count, int cpus, int64_t *targets,
                          int64_t target_count) {
    int64_t residents = 0;
    if (count < 1 || engine->moved || !begin(engine, 0)) return INVALID;
    for (int64_t place = 0; place < count; place++) {
        bool row = rows[place] >= 0 && rows[place] < engine->node_count;
        if (!row || engine->facts[rows[place]].group != engine->facts[rows[0]].group) return INVALID;
        for (int64_t other = 0; other < place; other++) {
            if (rows[other] == rows[place]) return INVALID;
        }
        residents += engine->primaries[rows[place]].count;
    }
    if (residents != target_count) return INVALID;
    struct mark before = engine->journal.top;
    for (int64_t place = 0; place < target_count; place++) targets[place] = NOWHERE;
    lose(engine, rows, count, cpus != 0, targets);
    return end(engine, 0, before);
}

EXPORTED int64_t gpolicy_placed(const struct engine *engine) { return engine->placements.count; }

/* Copy the placements from number `from` on; `placements` must have room for all of them. */
EXPORTED void gpolicy_placements(const struct engine *engine, int64_t from, struct placement *placements) {
    for (int64_t number = from; number < engine->placements.count; number++) {
        const struct instance *placed = &engine->table.items[engine->placements.items[number].slot];
        *placements++ = (struct placement){placed->primary, placed->secondary, placed->memory, placed->least_disk,
                                           placed->vcpus, placed->spindles};
    }
}

/* After MISSING_NODE, return the index of the missing node to which an instance should fail over. */
EXPORTED int64_t gpolicy_missing(const struct engine *engine) { return engine->missing_index; }
