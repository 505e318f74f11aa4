#include "whole_score.h"

#include <math.h>
#include <string.h>

#include "sides.h"

/* A search for the best row: how each candidate changes each variance (`parts`), and lower bounds of their scores
 * (`lows`). `values` are those that a primary changes, of the online nodes in the scope, side by side; `place_of` gives
 * the place of each row there, or NOWHERE. */
struct whole_search {
    struct statistics statistics;
    struct sides *sides;
    int64_t scope, *place_of;
    struct buffer parts, lows, values;
};

bool open_whole_search(struct engine *engine) {
    struct whole_search *search = engine->whole_search = zeroed(engine, 1, sizeof *search);
    if (search == NULL) return false;
    search->sides = open_sides(engine, false);
    search->place_of = zeroed(engine, engine->node_count, sizeof *search->place_of);
    return !failed(engine);
}

double whole_score(struct engine *engine, int64_t scope) {
    struct statistics statistics;
    take_statistics(engine, scope, &statistics);
    return sum_of(&statistics);
}

/* Replace the values of one node in the statistics. */
static void replace_values(struct statistics *statistics, bool offline, const double *before, const double *after) {
    for (int place = 0; place < COMPONENTS; place++) {
        enum aggregate aggregate = AGGREGATES[place];
        if (aggregate == TAG_MAP || offline != (aggregate == OFFLINE_SUM)) continue;
        struct deviation new = {statistics->sums[place] + (after[place] - before[place]), 0.0};
        if (aggregate == DEVIATION) {
            struct deviation old = {statistics->sums[place], statistics->variances[place]};
            new = replaced(statistics->count, old, before[place], after[place]);
        }
        statistics->sums[place] = new.sum;
        statistics->variances[place] = new.variance;
    }
}

/* Bound the error of a score after the values of up to `rows` nodes were replaced instead of adding up all nodes again.
 * Both are sums with as many terms as nodes. No value is further from the mean than the root of the sum of all squares,
 * and near 0 a root magnifies the error of its argument. */
static double estimate_error(const struct statistics *before, const struct statistics *after, double rows) {
    double count = before->count, off = 0.0;
    for (int place = 0; place < COMPONENTS; place++) {
        if (AGGREGATES[place] != DEVIATION) continue;
        double greatest = greater(before->variances[place], after->variances[place]) * count;
        double mean = greater(fabs(before->sums[place]), fabs(after->sums[place])) / count;
        double rounding = 8.0 * rows * (count + 64.0) * 0x1p-52 * (greatest + mean * mean);
        double root = sqrt(after->variances[place]), most_off = sqrt(rounding);
        off += before->weights[place] * (root > most_off ? rounding / root : most_off);
    }
    return off + 1e-12 * (1.0 + fabs(sum_of(after)));
}

/* Whether this entry of the journal is the first of its row since `before`. */
static bool first_entry(const struct journal *journal, struct mark before, int64_t place) {
    for (int64_t other = before.nodes; other < place; other++) {
        if (journal->nodes[other].row == journal->nodes[place].row) return false;
    }
    return true;
}

double estimate_score(const struct engine *engine, int64_t scope, const struct statistics *statistics,
                      struct mark before, double *error) {
    const struct journal *journal = &engine->journal;
    struct statistics after = *statistics;
    double rows = 1.0;
    *error = INFINITY; /* there is no estimate of exclusions */
    if (engine->location_count * engine->tag_count > 0 || statistics->count == 0.0) return 0.0;
    for (int64_t place = before.nodes; place < journal->top.nodes; place++) {
        const struct saved_node *saved = &journal->nodes[place];
        if (!in_scope(engine, scope, saved->row) || !first_entry(journal, before, place)) continue;
        replace_values(&after, engine->facts[saved->row].offline, saved->node.values, engine->nodes[saved->row].values);
        rows += 1.0;
    }
    *error = estimate_error(statistics, &after, rows);
    return sum_of(&after);
}

/* Fill in the values of a candidate after the instance is added. */
static void values_with(struct engine *engine, int64_t row, double *values) {
    const struct primary_side *side = primary_side(engine, engine->whole_search->sides, row);
    memcpy(values, engine->nodes[row].values, sizeof engine->nodes[row].values);
    for (int place = 0; place < OF_PRIMARY; place++) values[PRIMARY_COMPONENTS[place]] = side->after[place];
    values[N1_COUNT] += side->n1_change;
    values[PRIMARY_TAGS] += side->tags_change;
    values[LOCATION] += side->location_change;
    values[OFFLINE_ALL] += side->offline_all_change;
    values[OFFLINE_PRIMARIES] += side->offline_primaries_change;
}

static double exclusions_with(const struct engine *engine, int64_t row) {
    const struct statistics *statistics = &engine->whole_search->statistics;
    const struct instance *instance = &engine->whole_search->sides->demand;
    if (engine->facts[row].offline || instance->tag_count == 0) return statistics->exclusions;
    return statistics->exclusions + (double)exclusion_change(engine, row, instance, statistics->merged);
}

/* Compute the deviations that a primary changes, from the values of all nodes in their order. */
static void add_up_values(const struct whole_search *search, struct statistics *statistics) {
    const double *all = search->values.items, *end = all + (int64_t)statistics->count * OF_PRIMARY;
    double sums[OF_PRIMARY] = {0.0}, squares[OF_PRIMARY] = {0.0}, means[OF_PRIMARY];
    for (const double *values = all; values < end; values += OF_PRIMARY) {
        for (int place = 0; place < OF_PRIMARY; place++) sums[place] += values[place];
    }
    for (int place = 0; place < OF_PRIMARY; place++) means[place] = sums[place] / statistics->count;
    for (const double *values = all; values < end; values += OF_PRIMARY) {
        for (int place = 0; place < OF_PRIMARY; place++) {
            double difference = values[place] - means[place];
            squares[place] += difference * difference;
        }
    }
    for (int place = 0; place < OF_PRIMARY; place++) {
        statistics->sums[PRIMARY_COMPONENTS[place]] = sums[place];
        statistics->variances[PRIMARY_COMPONENTS[place]] = squares[place] / statistics->count;
    }
}

/* Return the score with the instance on a candidate as the law computes it: all nodes in their order. */
static double exact(struct engine *engine, int64_t row) {
    struct whole_search *search = engine->whole_search;
    const struct primary_side *side = primary_side(engine, search->sides, row);
    struct statistics after = search->statistics;
    if (search->place_of[row] != NOWHERE) {
        double *values = (double *)search->values.items + search->place_of[row] * OF_PRIMARY;
        memcpy(values, side->after, sizeof side->after);
        add_up_values(search, &after);
        memcpy(values, side->before, sizeof side->before);
        after.sums[N1_COUNT] += side->n1_change; /* whole numbers: the order does not matter */
        after.sums[PRIMARY_TAGS] += side->tags_change;
        after.sums[LOCATION] += side->location_change;
    } else if (in_scope(engine, search->scope, row)) {
        after.sums[OFFLINE_ALL] += side->offline_all_change;
        after.sums[OFFLINE_PRIMARIES] += side->offline_primaries_change;
    }
    after.exclusions = exclusions_with(engine, row);
    return sum_of(&after);
}

/* A candidate and the bounds of its score, which are equal once the score is computed. */
struct contender { int64_t row; double low, high; };

/* Bound the score with the instance on a candidate, by replacing one node's values. */
static struct contender bound_score(struct engine *engine, int64_t row) {
    struct statistics after = engine->whole_search->statistics;
    double values[COMPONENTS];
    values_with(engine, row, values);
    replace_values(&after, engine->facts[row].offline, engine->nodes[row].values, values);
    after.exclusions = exclusions_with(engine, row);
    double score = sum_of(&after), error = estimate_error(&engine->whole_search->statistics, &after, 1.0);
    return (struct contender){row, score - error, score + error};
}

static void work_out(struct engine *engine, struct contender *contender) {
    if (contender->low == contender->high) return;
    contender->low = contender->high = exact(engine, contender->row);
}

/* Whether the bounds of two scores tell which one is less; with NaN they do not. */
static bool are_apart(const struct contender *a, const struct contender *b) {
    return a->low > b->high || a->high < b->low;
}

/* Whether `other` is better, or equal and later. Scores are computed only if their bounds do not decide. */
static bool is_better(struct engine *engine, struct contender *other, struct contender *best) {
    if (!are_apart(other, best)) work_out(engine, best);
    if (!are_apart(other, best)) work_out(engine, other);
    return other->high < best->low || (other->low == best->low && other->row > best->row);
}

/* Compute by how much each online candidate changes each variance, and the ranges of these changes. */
static void work_out_parts(struct engine *engine, const int64_t *rows, int64_t count, double *low, double *high) {
    const struct whole_search *search = engine->whole_search;
    double *parts = search->parts.items, sums[OF_PRIMARY];
    for (int place = 0; place < OF_PRIMARY; place++) {
        sums[place] = search->statistics.sums[PRIMARY_COMPONENTS[place]];
        low[place] = INFINITY;
        high[place] = -INFINITY;
    }
    for (int64_t number = 0; number < count; number++, parts += OF_PRIMARY) {
        if (engine->facts[rows[number]].offline) continue;
        const struct primary_side *side = primary_side(engine, search->sides, rows[number]);
        for (int place = 0; place < OF_PRIMARY; place++) {
            parts[place] = side->own[place] - sums[place] * side->slope[place];
            low[place] = lesser(low[place], parts[place]);
            high[place] = greater(high[place], parts[place]);
        }
    }
}

/* Compute lower bounds of the scores of all candidates by chords of the square roots (sides.h); offline candidates get
 * none. Return the rounding error of a bound. */
static double bound_rows(struct engine *engine, const int64_t *rows, int64_t count) {
    struct whole_search *search = engine->whole_search;
    const struct statistics *statistics = &search->statistics;
    double low[OF_PRIMARY], high[OF_PRIMARY], slopes[OF_PRIMARY], *lows = search->lows.items;
    struct statistics rest = *statistics; /* with the lower ends of the chords for the roots that a primary changes */
    work_out_parts(engine, rows, count, low, high);
    for (int place = 0; place < OF_PRIMARY; place++) {
        int component = PRIMARY_COMPONENTS[place];
        double base =
            safe_variance(search->sides, statistics, component, search->sides->widest[component]) + low[place];
        double root = lay_chord(base, high[place] - low[place], &slopes[place]);
        slopes[place] *= engine->weights[component];
        rest.variances[component] = root * root;
    }
    rest.exclusions = 0.0;
    double common = sum_of(&rest), greatest = fabs(common);
    for (int64_t number = 0; number < count; number++) {
        const double *parts = &((const double *)search->parts.items)[number * OF_PRIMARY];
        const struct primary_side *side = &search->sides->items[rows[number]];
        lows[number] = -INFINITY;
        if (engine->facts[rows[number]].offline) continue;
        double bound = common + engine->weights[LOCATION_EXCLUSION] * exclusions_with(engine, rows[number]) +
                       engine->weights[N1_COUNT] * side->n1_change + engine->weights[PRIMARY_TAGS] * side->tags_change +
                       engine->weights[LOCATION] * side->location_change;
        for (int place = 0; place < OF_PRIMARY; place++) bound += slopes[place] * (parts[place] - low[place]);
        lows[number] = bound;
        greatest = greater(greatest, fabs(bound));
    }
    return 1e-10 * (1.0 + greatest);
}

static bool begin_search(struct engine *engine, int64_t scope, const struct instance *instance, int64_t count) {
    struct whole_search *search = engine->whole_search;
    search->scope = scope;
    take_statistics(engine, scope, &search->statistics);
    begin_sides(engine, search->sides, instance, search->statistics.count);
    reserve(engine, &search->parts, count, OF_PRIMARY * sizeof(double));
    reserve(engine, &search->lows, count, sizeof(double));
    double *values = reserve(engine, &search->values, engine->node_count, OF_PRIMARY * sizeof *values);
    int64_t online = 0;
    for (int64_t row = 0; row < engine->node_count && !failed(engine); row++) {
        bool counts = in_scope(engine, scope, row) && !engine->facts[row].offline;
        search->place_of[row] = counts ? online++ : NOWHERE;
        for (int place = 0; place < OF_PRIMARY && counts; place++) {
            *values++ = engine->nodes[row].values[PRIMARY_COMPONENTS[place]];
        }
    }
    return !failed(engine);
}

/* Whether two nodes differ only in their names and in the instances that they have. */
static bool are_alike(const struct engine *engine, int64_t row, int64_t other) {
    const struct node *node = &engine->nodes[row];
    return node->tags == 0 && memcmp(node, &engine->nodes[other], sizeof *node) == 0 &&
           memcmp(&engine->facts[row], &engine->facts[other], offsetof(struct facts, locations)) == 0;
}

/* Find the best row; its score may not be computed yet. */
static struct contender find_best(struct engine *engine, int64_t scope, const struct instance *instance,
                               const int64_t *rows, int64_t count) {
    if (score_is_undefined(engine, scope)) return (struct contender){rows[0], NAN, NAN};
    if (!begin_search(engine, scope, instance, count)) return (struct contender){rows[0], 0.0, 0.0};
    if (engine->whole_search->statistics.count == 0.0) return (struct contender){rows[count - 1], 0.0, 0.0};
    double margin = bound_rows(engine, rows, count), *lows = engine->whole_search->lows.items;
    int64_t first = 0; /* the likeliest one: its score excludes most others */
    for (int64_t number = 1; number < count; number++) {
        if (lows[number] < lows[first]) first = number;
    }
    struct contender best = bound_score(engine, rows[first]);
    for (int64_t number = 0; number < count; number++) {
        if (number == first || lows[number] > best.high + margin) continue;
        if (engine->any_alike && are_alike(engine, rows[number], best.row)) continue;
        struct contender other = bound_score(engine, rows[number]);
        if (engine->any_alike && !are_apart(&other, &best)) {
            engine->undecided = true;
            return best;
        }
        if (is_better(engine, &other, &best)) best = other;
    }
    return best;
}

int64_t best_row(struct engine *engine, int64_t scope, const struct instance *instance, const int64_t *rows,
                 int64_t count) {
    return count == 1 ? rows[0] : find_best(engine, scope, instance, rows, count).row;
}

struct choice best_single(struct engine *engine, const struct instance *instance, const int64_t *rows,
                          int64_t count) {
    struct contender best = find_best(engine, EVERYWHERE, instance, rows, count);
    if (!isnan(best.low)) work_out(engine, &best);
    return (struct choice){best.row, best.low};
}

void all_singles(struct engine *engine, const struct instance *instance, const int64_t *rows, int64_t count,
                 double *scores) {
    bool undefined = score_is_undefined(engine, EVERYWHERE);
    if (!begin_search(engine, EVERYWHERE, instance, count)) return;
    for (int64_t place = 0; place < count && !ended(engine); place++) {
        scores[place] = undefined ? NAN : exact(engine, rows[place]);
    }
}
