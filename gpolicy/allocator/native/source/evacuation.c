#include "evacuation.h"

#include <math.h>
#include <string.h>

#include "moves.h"
#include "whole_score.h"

/* The instance and the journal before the move, and the best move so far. A move whose score is surely above `limit` is
 * not the best. */
struct search {
    struct engine *engine;
    const struct instance *instance;
    bool force, undefined;
    int64_t scope;
    struct statistics statistics;
    struct mark before;
    double limit;
    bool found;
    double score;
    int64_t primary, secondary;
};

/* Score the state after a move, and keep the best. Of equal or undefined scores the later one is kept. */
static void judge_state(struct search *search, int64_t primary, int64_t secondary) {
    struct engine *engine = search->engine;
    double score = NAN;
    if (failed(engine)) return;
    if (!search->undefined) {
        double error, estimate = estimate_score(engine, search->scope, &search->statistics, search->before, &error);
        if (estimate - error > search->limit) return;
        search->limit = fmin(search->limit, estimate + error);
        score = whole_score(engine, search->scope);
        if (search->found && search->score < score) return;
    }
    search->found = true;
    search->score = score;
    search->primary = primary;
    search->secondary = secondary;
}

static enum reason move_one(struct search *search, struct instance *instance, int64_t target) {
    if (instance->evacuation == FAIL_OVER) {
        return replace_secondary(search->engine, instance, target, search->force);
    }
    return fail_over_to(search->engine, instance, target, search->force);
}

static void try_nodes(struct search *search, const int64_t *rows, int64_t count) {
    for (int64_t place = 0; place < count && !ended(search->engine); place++) {
        struct instance instance = *search->instance;
        if (move_one(search, &instance, rows[place]) == FITS) judge_state(search, rows[place], NOWHERE);
        take_back(search->engine, search->before);
    }
}

/* Move a mirrored instance to a new primary: first as its secondary, then by a fail-over. */
static bool change_primary(struct search *search, struct instance *instance, int64_t target) {
    struct engine *engine = search->engine;
    bool offline = engine->facts[instance->primary].offline;
    if (offline && fail_over(engine, instance, search->force) != FITS) return false;
    if (replace_secondary(engine, instance, target, search->force) != FITS) return false;
    return fail_over(engine, instance, search->force) == FITS;
}

static void try_pairs(struct search *search, const int64_t *rows, int64_t count) {
    struct engine *engine = search->engine;
    if (count < 2) return; /* no pair, so the primary (perhaps NOWHERE) is not read */
    for (int64_t first = 0; first < count && !ended(engine); first++) {
        struct instance moved = *search->instance;
        if (change_primary(search, &moved, rows[first])) {
            struct mark there = engine->journal.top;
            for (int64_t second = 0; second < count && !ended(engine); second++) {
                struct instance instance = moved;
                if (second == first) continue;
                enum reason reason = replace_secondary(engine, &instance, rows[second], search->force);
                if (reason == FITS) judge_state(search, rows[first], rows[second]);
                take_back(engine, there);
            }
        }
        take_back(engine, search->before);
    }
}

bool move_away(struct engine *engine, struct instance *instance, enum leaving leaving, bool force, const int64_t *rows,
               int64_t count) {
    struct search search = {.engine = engine, .instance = instance, .force = force, .before = engine->journal.top,
                            .limit = INFINITY};
    bool mirrored = instance->evacuation == FAIL_OVER;
    if (mirrored && leaving == PRIMARY) {
        struct instance moved = *instance;
        search.found = fail_over(engine, &moved, force) == FITS;
        if (!search.found) take_back(engine, search.before);
        *instance = moved;
        return search.found && !failed(engine);
    }
    if (count == 0) return false;
    search.scope = engine->facts[rows[0]].group;
    search.undefined = score_is_undefined(engine, search.scope);
    take_statistics(engine, search.scope, &search.statistics);
    if (mirrored && leaving == BOTH) {
        try_pairs(&search, rows, count);
    } else {
        try_nodes(&search, rows, count);
    }
    if (!search.found || failed(engine)) return false;
    if (mirrored && leaving == BOTH) {
        change_primary(&search, instance, search.primary);
        replace_secondary(engine, instance, search.secondary, force);
    } else {
        move_one(&search, instance, search.primary);
    }
    return !failed(engine);
}
