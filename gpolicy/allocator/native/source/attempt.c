#include "attempt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "node_changes.h"
#include "outcomes.h"
#include "pairs.h"
#include "placing.h"
#include "redundancy.h"
#include "room.h"
#include "statistics.h"
#include "whole_score.h"

enum { FEW = 4 };

static bool is_redundant_after(struct engine *engine, const struct instance *instance, int64_t number, int64_t primary,
                               int64_t secondary) {
    struct instance placed = *instance;
    int64_t before = engine->placements.count;
    placed.primary = primary;
    placed.secondary = secondary;
    if (secondary != NOWHERE) placed.location_score = common_locations(engine, primary, secondary);
    place(engine, &placed, number);
    bool answer = !failed(engine) && is_redundant(engine);
    unplace(engine, before);
    return answer;
}

/* A candidate with its score; the later one of two equals comes first. */
struct scored { double score; int64_t row; };
static int best_first(const void *left, const void *right) {
    const struct scored *a = left, *b = right;
    if (a->score != b->score) return a->score < b->score ? -1 : 1;
    return a->row > b->row ? -1 : a->row < b->row;
}

static void reject_all(struct attempt *attempt) {
    attempt->counts.failures[N1] += attempt->counts.successes;
    attempt->counts.successes = 0;
}

static void choose(struct attempt *attempt, int64_t primary, int64_t secondary, double score) {
    attempt->primary = primary;
    attempt->secondary = secondary;
    attempt->score = score;
}

/* Whether a pair is better than the one chosen so far; of equals, and of undefined ones, the later primary is. */
static bool is_better(const struct attempt *attempt, int64_t primary, double score) {
    if (attempt->primary == NOWHERE) return true;
    return !(attempt->score < score) && !(attempt->score == score && primary < attempt->primary);
}

/* Sort candidates by score. If the scores are NaN, the order stays, as it does in GHC's sort. */
static void sort_by_score(struct scored *order, int64_t count) {
    if (count > 0 && !isnan(order[0].score)) qsort(order, (size_t)count, sizeof *order, best_first);
}

/* Whether some mirrored instance, perhaps the new one, has no secondary: the simulation may meet it and fail. A
 * forthcoming instance moves the score, but is never evacuated itself. */
static bool only_simulation_tells(const struct engine *engine, const struct instance *instance) {
    return engine->missing > 0 || (instance->evacuation == FAIL_OVER && !engine->mirrored) || instance->forthcoming;
}

/* Whether an instance breaks N+1 on every row. Answers only if few rows are not yet known to be `broken`: then this is
 * faster than finding the best row. */
static bool breaks_on_the_few(struct engine *engine, const struct instance *instance, int64_t number,
                              const int64_t *rows, int64_t count, bool *broken) {
    int64_t left = 0;
    for (int64_t place = 0; place < count; place++) left += !broken[rows[place]];
    if (left > FEW) return false;
    for (int64_t place = 0; place < count && !ended(engine); place++) {
        bool *row_broken = &broken[rows[place]];
        *row_broken = *row_broken || !is_redundant_after(engine, instance, number, rows[place], NOWHERE);
        if (!*row_broken) return false;
    }
    return true;
}

/* Choose the best of the rows that leaves the cluster redundant, by the scores of all of them. */
static void choose_by_scores(struct engine *engine, const struct instance *instance, int64_t number,
                             const int64_t *rows, int64_t count, const bool *broken, struct attempt *attempt) {
    double *scores = reserve(engine, &engine->scores, count, sizeof *scores);
    struct scored *order = reserve(engine, &engine->scored, count, sizeof *order);
    if (failed(engine)) return;
    all_singles(engine, instance, rows, count, scores);
    if (failed(engine)) return;
    for (int64_t place = 0; place < count; place++) order[place] = (struct scored){scores[place], rows[place]};
    sort_by_score(order, count);
    for (int64_t rejected = 0; rejected < count && !ended(engine); rejected++) {
        int64_t row = order[rejected].row;
        if (broken[row] || !is_redundant_after(engine, instance, number, row, NOWHERE)) continue;
        attempt->counts.failures[N1] += rejected;
        attempt->counts.successes -= rejected;
        choose(attempt, row, NOWHERE, NAN);
        return;
    }
    reject_all(attempt);
}

/* Try the best of the rows that are not `broken`, then the best of the rest, and so on; rows that fail become broken.
 * Gives up after a few: then the scores of all rows are faster. Return whether one was chosen. */
static bool choose_among_the_best(struct engine *engine, const struct instance *instance, int64_t number,
                                  const int64_t *rows, int64_t count, bool *broken, struct attempt *attempt) {
    int64_t *whole = reserve(engine, &engine->moving, count, sizeof *whole), left = 0;
    if (failed(engine)) return false;
    for (int64_t place = 0; place < count; place++) {
        if (!broken[rows[place]]) whole[left++] = rows[place];
    }
    engine->refused = engine->refused || left < count;
    for (int tries = 0; tries < FEW && left > 0 && !ended(engine); tries++) {
        int64_t best = best_row(engine, EVERYWHERE, instance, whole, left);
        if (is_redundant_after(engine, instance, number, best, NOWHERE)) {
            choose(attempt, best, NOWHERE, NAN);
            return true;
        }
        broken[best] = engine->refused = true;
        int64_t place = 0;
        while (whole[place] != best) place++;
        for (left--; place < left; place++) whole[place] = whole[place + 1];
    }
    return false;
}

/* Choose the best single node that leaves the cluster redundant. */
static void choose_checked_single(struct engine *engine, const struct instance *instance, int64_t number,
                                  enum test test, struct attempt *attempt) {
    const int64_t *rows;
    int64_t count = fitting_rows(engine, &rows);
    bool *broken = reserve(engine, &engine->flags, engine->node_count, sizeof *broken);
    if (failed(engine)) return;
    if (only_simulation_tells(engine, instance) || !own_number(engine, instance, number)) {
        memset(broken, 0, (size_t)engine->node_count * sizeof *broken);
    } else if (sure_to_break(engine, instance, rows, count, broken)) {
        reject_all(attempt);
        return;
    }
    if (breaks_on_the_few(engine, instance, number, rows, count, broken)) {
        reject_all(attempt);
    } else if (test == COUNTED ||
               !choose_among_the_best(engine, instance, number, rows, count, broken, attempt)) {
        choose_by_scores(engine, instance, number, rows, count, broken, attempt);
    }
}

/* Try the secondaries of one primary, the best first, until one leaves the cluster redundant. `allowed` tells this for
 * each row; if it is NULL, the cluster is tested. */
static void choose_secondary(struct engine *engine, const struct instance *instance, int64_t number, int64_t primary,
                             const bool *allowed, struct attempt *attempt) {
    struct scored *order = reserve(engine, &engine->scored, engine->node_count, sizeof *order);
    int64_t count = 0, rejected = 0;
    if (ended_after(engine, engine->node_count)) return;
    for (int64_t row = 0; row < engine->node_count; row++) {
        if (!pair_fits(engine, instance, primary, row)) continue;
        order[count++] = (struct scored){pair_score(engine, primary, row), row};
    }
    if (failed(engine)) return;
    sort_by_score(order, count);
    for (; rejected < count && !ended(engine); rejected++) {
        int64_t row = order[rejected].row;
        if (allowed != NULL ? allowed[row] : is_redundant_after(engine, instance, number, primary, row)) break;
    }
    attempt->counts.failures[N1] += rejected;
    attempt->counts.successes -= rejected;
    if (rejected < count && is_better(attempt, primary, order[rejected].score)) {
        choose(attempt, primary, order[rejected].row, order[rejected].score);
    }
}

/* For choose_mirrored(): by row, the memory that moves there when the node in question fails (`from`) and when any node
 * fails (`most`); the secondaries after which the cluster is redundant (`allowed`); the primaries that are redundant
 * with every secondary (`clean`). */
struct moving { int64_t *from, *most; bool *allowed, *clean; };

static bool reserve_moving(struct engine *engine, struct moving *moving) {
    int64_t nodes = engine->node_count;
    moving->from = reserve(engine, &engine->moving, 2 * nodes, sizeof *moving->from);
    moving->allowed = reserve(engine, &engine->flags, 2 * nodes, sizeof *moving->allowed);
    if (failed(engine)) return false;
    moving->most = moving->from + nodes;
    moving->clean = moving->allowed + nodes;
    memset(moving->from, 0, (size_t)(2 * nodes) * sizeof *moving->from);
    return true;
}

/* Find, for each node, the most memory that moves to it when one other node fails. */
static void find_most_moving(struct engine *engine, struct moving *moving) {
    for (int64_t row = 0; row < engine->node_count; row++) {
        const struct census *census = census_of(engine, row);
        for (int64_t place = 0; place < census->count; place++) {
            const struct target *target = &census->targets[place];
            moving->most[target->row] = most(moving->most[target->row], target->memory);
        }
    }
}

/* Choose the best redundant pair if all instances are mirrored. A placement is redundant if two comparisons hold: one
 * for the primary (what may fail over to it) and one for the pair. Only primaries with a forbidden pair need
 * choose_secondary(). */
static void choose_mirrored(struct engine *engine, const struct instance *instance, int64_t number,
                            struct attempt *attempt) {
    int64_t nodes = engine->node_count, used = memory_used(instance);
    struct moving moving;
    if (!reserve_moving(engine, &moving)) return;
    find_most_moving(engine, &moving);
    for (int64_t primary = 0; primary < nodes; primary++) {
        moving.clean[primary] = false;
        if (engine->outcomes->primary_codes[primary] != FITS) continue;
        bool takes = moving.most[primary] < engine->nodes[primary].unallocated - used, all = true;
        const struct census *census = census_of(engine, primary);
        for (int64_t place = 0; place < census->count; place++) {
            moving.from[census->targets[place].row] = census->targets[place].memory;
        }
        for (int64_t row = 0; row < nodes; row++) {
            moving.allowed[row] = takes && moving.from[row] + used < engine->nodes[row].unallocated;
            if (!moving.allowed[row] && all) all = !pair_fits(engine, instance, primary, row);
            moving.from[row] = 0;
        }
        moving.clean[primary] = all;
        if (!all) choose_secondary(engine, instance, number, primary, moving.allowed, attempt);
        if (ended(engine)) return;
    }
    struct pair best = best_pair(engine, moving.clean);
    if (best.primary == NOWHERE || !is_better(attempt, best.primary, best.score)) return;
    choose(attempt, best.primary, best.secondary, best.score);
}

/* Choose the best redundant pair by testing pairs, the best first, until one is redundant. A primary whose best pair is
 * not is looked at alone. */
static void choose_tested(struct engine *engine, const struct instance *instance, int64_t number,
                          struct attempt *attempt) {
    bool *left = reserve(engine, &engine->flags, engine->node_count, sizeof *left);
    if (left == NULL) return;
    memset(left, true, (size_t)engine->node_count * sizeof *left);
    while (!ended(engine)) {
        struct pair best = best_pair(engine, left);
        if (best.primary == NOWHERE || !is_better(attempt, best.primary, best.score)) return;
        if (is_redundant_after(engine, instance, number, best.primary, best.secondary)) {
            choose(attempt, best.primary, best.secondary, best.score);
            return;
        }
        left[best.primary] = false;
        choose_secondary(engine, instance, number, best.primary, NULL, attempt);
    }
}

static void choose_single(struct engine *engine, const struct instance *instance, struct attempt *attempt) {
    const int64_t *rows;
    int64_t count = fitting_rows(engine, &rows);
    if (!failed(engine)) choose(attempt, best_row(engine, EVERYWHERE, instance, rows, count), NOWHERE, NAN);
}

static void choose_pair(struct engine *engine, const struct instance *instance, int64_t number, enum test test,
                        struct attempt *attempt) {
    prepare_pairs(engine, instance);
    if (test == UNTESTED) {
        struct pair best = best_pair(engine, NULL);
        choose(attempt, best.primary, best.secondary, best.score);
    } else if (own_number(engine, instance, number) && is_beyond_repair(engine)) {
        reject_all(attempt);
    } else if (all_mirrored(engine) && !is_strict(engine) && own_number(engine, instance, number) &&
               !instance->forthcoming && !pair_scores_are_undefined(engine)) {
        choose_mirrored(engine, instance, number, attempt);
    } else if (test == TESTED && !pair_scores_are_undefined(engine)) {
        choose_tested(engine, instance, number, attempt);
    } else {
        for (int64_t row = 0; row < engine->node_count && !failed(engine); row++) {
            if (engine->outcomes->primary_codes[row] != FITS) continue;
            choose_secondary(engine, instance, number, row, NULL, attempt);
        }
    }
}

void try_allocate(struct engine *engine, const struct instance *instance, int64_t number, enum test test,
                  struct attempt *attempt) {
    *attempt = (struct attempt){.primary = NOWHERE, .secondary = NOWHERE};
    if (ended_after(engine, engine->node_count / 2)) return;
    attempt->counts = *look_at_candidates(engine, instance, 0);
    if (attempt->counts.successes == 0) return;
    if (engine->mirrored) {
        choose_pair(engine, instance, number, test, attempt);
    } else if (test != UNTESTED) {
        choose_checked_single(engine, instance, number, test, attempt);
    } else {
        choose_single(engine, instance, attempt);
    }
}

/* List the nodes that take an instance; `all` tells whether it surely breaks N+1 on all of them. */
static int64_t look_for_breaks(struct engine *engine, const struct instance *instance, const int64_t **rows,
                               bool *all) {
    look_at_candidates(engine, instance, 0);
    int64_t count = fitting_rows(engine, rows);
    bool *broken = reserve(engine, &engine->flags, engine->node_count, sizeof *broken);
    *all = !failed(engine) && sure_to_break(engine, instance, *rows, count, broken);
    return count;
}

bool surely_breaks(struct engine *engine, const struct instance *instance) {
    const int64_t *rows;
    bool all;
    if (engine->mirrored || only_simulation_tells(engine, instance)) return false;
    look_for_breaks(engine, instance, &rows, &all);
    return all;
}

bool breaks_everywhere(struct engine *engine, const struct instance *instance) {
    struct instance placed = *instance;
    const int64_t *rows;
    int64_t number = engine->table.count, before = engine->placements.count;
    int64_t hint = engine->last_failing; /* the node that most likely lacks room */
    bool all, lacks = true;
    if (engine->node_count == 0 || !engine->facts[hint].examined) return false;
    placed.index = number;
    placed.secondary = NOWHERE;
    if (engine->mirrored || engine->clashing || only_simulation_tells(engine, instance)) return false;
    if (!own_number(engine, &placed, number)) return false;
    int64_t count = look_for_breaks(engine, instance, &rows, &all);
    for (int64_t candidate = 0; candidate < count && !all && lacks && !ended(engine); candidate++) {
        placed.primary = rows[candidate];
        place(engine, &placed, number);
        lacks = lacks_room(engine, hint);
        unplace(engine, before);
    }
    return lacks;
}
