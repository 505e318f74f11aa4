#include "whole_score.h"

#include <math.h>
#include <string.h>

#include "sides.h"

enum { MOST_CHANGES = 64 }; /* of nodes, after which statistics are taken anew */

/* Statistics of a scope that follow the changes of nodes, `changes` since they were taken from all nodes. `values` are
 * those of each node that they show, `greatest` the greatest sums and variances since. Of the components that a primary
 * does not change, those of reserved memory alone are no whole numbers: their exact statistics are in `reserved`, if it
 * is known. */
struct near {
    struct statistics statistics, greatest, reserved;
    int64_t scope, as_of, changes;
    bool reserved_known;
    double (*values)[COMPONENTS];
};

/* The values that decide exact scores, of the online nodes in the scope, side by side, `width` of a node: those of the
 * `count` components at `places`; `same` gives for each component that a primary changes the number of the one that has
 * its values. `place_of` gives the place of each row, or NOWHERE. `differs` is that of the sides when they were listed.
 */
struct exact_values {
    struct buffer values;
    int64_t *place_of, online, scope, as_of;
    int width, count, places[OF_PRIMARY], same[OF_PRIMARY];
    bool differs[OF_PRIMARY];
};

/* A search for the best row. By component, then row: the numbers `own` and `slope` of a side, or NaN for a row that is
 * no candidate, and the reach of the sides, with the sum of all values that it is for. By row: what the node's counts
 * add to the score, the lower bound of its score (`lows`), the last search of which it was a candidate, and which side is
 * written there: its clock. */
struct whole_search {
    struct near near;
    struct exact_values exact;
    struct sides *sides;
    struct reach reaches[OF_PRIMARY];
    int64_t scope, searches, *listed, *written;
    double *own, *slope, *counts, *lows, sums[OF_PRIMARY];
    bool anew; /* whether the reaches begin again with the next search */
};

bool open_whole_search(struct engine *engine) {
    struct whole_search *search = engine->whole_search = zeroed(engine, 1, sizeof *search);
    int64_t nodes = engine->node_count;
    if (search == NULL) return false;
    search->sides = open_sides(engine, false);
    search->near.as_of = search->exact.as_of = -1;
    search->near.values = zeroed(engine, nodes, sizeof *search->near.values);
    search->exact.place_of = zeroed(engine, nodes, sizeof *search->exact.place_of);
    search->listed = zeroed(engine, nodes, sizeof *search->listed);
    search->written = zeroed(engine, nodes, sizeof *search->written);
    search->own = zeroed(engine, nodes, OF_PRIMARY * sizeof *search->own);
    search->slope = zeroed(engine, nodes, OF_PRIMARY * sizeof *search->slope);
    search->counts = zeroed(engine, nodes, sizeof *search->counts);
    search->lows = zeroed(engine, nodes, sizeof *search->lows);
    if (failed(engine)) return false;
    for (int64_t place = 0; place < OF_PRIMARY * nodes; place++) search->own[place] = NAN;
    return true;
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
static double variance_error(const struct statistics *before, const struct statistics *after, int place, double rows) {
    double count = before->count, greatest = greater(before->variances[place], after->variances[place]) * count;
    double mean = greater(fabs(before->sums[place]), fabs(after->sums[place])) / count;
    return 8.0 * rows * (count + 64.0) * 0x1p-52 * (greatest + mean * mean);
}

static double estimate_error(const struct statistics *before, const struct statistics *after, double rows) {
    double off = 0.0;
    for (int place = 0; place < COMPONENTS; place++) {
        if (AGGREGATES[place] != DEVIATION) continue;
        double rounding = variance_error(before, after, place, rows);
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
    const struct statistics *statistics = &engine->whole_search->near.statistics;
    const struct instance *instance = &engine->whole_search->sides->demand;
    if (engine->facts[row].offline || instance->tag_count == 0) return statistics->exclusions;
    return statistics->exclusions + (double)exclusion_change(engine, row, instance, statistics->merged);
}

/* Take the statistics of all nodes, to follow their changes from here. */
static void take_near(struct engine *engine, int64_t scope, struct near *near) {
    add_up(engine, scope, NOWHERE, NULL, &near->statistics);
    near->greatest = near->reserved = near->statistics;
    near->reserved_known = true;
    near->scope = scope;
    near->changes = 0;
    for (int64_t row = 0; row < engine->node_count; row++) {
        memcpy(near->values[row], engine->nodes[row].values, sizeof *near->values);
    }
}

/* Return whether the statistics can follow changes: the law makes 0 of what is not finite. */
static bool can_follow(const struct near *near, int64_t scope) {
    if (near->as_of < 0 || near->scope != scope) return false;
    for (int place = 0; place < COMPONENTS; place++) {
        if (AGGREGATES[place] == DEVIATION && !isfinite(near->statistics.variances[place])) return false;
    }
    return true;
}

/* Bring the statistics up to the present state. */
static void follow_changes(struct engine *engine, int64_t scope) {
    struct near *near = &engine->whole_search->near;
    bool follows = can_follow(near, scope);
    for (int64_t row = 0; row < engine->node_count && follows; row++) {
        if (engine->changed[row] <= near->as_of) continue;
        follows = ++near->changes <= MOST_CHANGES;
        if (!follows) break;
        const double *values = engine->nodes[row].values, *before = near->values[row];
        bool reserved = values[RESERVED] == before[RESERVED] && values[RESERVED_TOTAL] == before[RESERVED_TOTAL];
        near->reserved_known = near->reserved_known && reserved;
        if (in_scope(engine, scope, row)) {
            replace_values(&near->statistics, engine->facts[row].offline, near->values[row], values);
        }
        memcpy(near->values[row], values, sizeof *near->values);
        for (int place = 0; place < COMPONENTS; place++) {
            struct statistics *greatest = &near->greatest;
            greatest->sums[place] = greater(fabs(near->statistics.sums[place]), fabs(greatest->sums[place]));
            greatest->variances[place] = greater(near->statistics.variances[place], greatest->variances[place]);
        }
    }
    if (!follows) take_near(engine, scope, near);
    near->as_of = engine->clock;
    take_exclusions(engine, scope, &near->statistics);
}

static bool counts_exactly(const struct engine *engine, int64_t scope, int64_t row) {
    return in_scope(engine, scope, row) && !engine->facts[row].offline;
}

/* List the components that a primary changes without those whose values are those of a twin, on each online node. */
static void list_exact_places(const struct engine *engine, int64_t scope, struct exact_values *exact) {
    bool differs[OF_PRIMARY];
    memcpy(exact->differs, engine->whole_search->sides->differs, sizeof exact->differs);
    memcpy(differs, exact->differs, sizeof differs);
    for (int64_t row = 0; row < engine->node_count; row++) {
        const double *values = engine->nodes[row].values;
        for (int place = 0; place < OF_PRIMARY && counts_exactly(engine, scope, row); place++) {
            int component = PRIMARY_COMPONENTS[place], twin = TWIN_OF[place];
            if (twin != NOWHERE && values[component] != values[PRIMARY_COMPONENTS[twin]]) differs[place] = true;
        }
    }
    exact->count = 0;
    for (int place = 0; place < OF_PRIMARY; place++) {
        bool own = TWIN_OF[place] == NOWHERE || differs[place];
        exact->same[place] = own ? exact->count : exact->same[TWIN_OF[place]];
        if (own) exact->places[exact->count++] = place;
    }
    exact->width = exact->count <= 8 ? 8 : OF_PRIMARY;
}

/* Copy the values of an online node; false if they are not those that are listed. */
static bool copy_exactly(const struct engine *engine, struct exact_values *exact, int64_t row) {
    const double *values = engine->nodes[row].values;
    double *own = (double *)exact->values.items + exact->place_of[row] * exact->width;
    bool listed = true;
    for (int place = 0; place < OF_PRIMARY; place++) {
        double listed_as = values[PRIMARY_COMPONENTS[exact->places[exact->same[place]]]];
        listed = listed && values[PRIMARY_COMPONENTS[place]] == listed_as;
    }
    for (int number = 0; number < exact->count; number++) {
        own[number] = values[PRIMARY_COMPONENTS[exact->places[number]]];
    }
    return listed;
}

/* Bring exact values up to the present state; false if they must be listed anew. */
static bool follow_exactly(const struct engine *engine, struct exact_values *exact) {
    const struct whole_search *search = engine->whole_search;
    if (exact->as_of < 0 || exact->scope != search->scope) return false;
    if (memcmp(exact->differs, search->sides->differs, sizeof exact->differs) != 0) return false;
    for (int64_t row = 0; row < engine->node_count; row++) {
        bool changed = engine->changed[row] > exact->as_of && exact->place_of[row] != NOWHERE;
        if (changed && !copy_exactly(engine, exact, row)) return false;
    }
    return true;
}

/* Return the values of the present state, or NULL after fail(). Values that are NaN are listed anew each time. */
static struct exact_values *exact_values(struct engine *engine) {
    struct whole_search *search = engine->whole_search;
    struct exact_values *exact = &search->exact;
    if (!follow_exactly(engine, exact)) {
        exact->scope = search->scope;
        exact->online = 0;
        list_exact_places(engine, search->scope, exact);
        size_t size = OF_PRIMARY * sizeof(double);
        double *values = reserve(engine, &exact->values, engine->node_count, size);
        if (values == NULL) return NULL;
        memset(values, 0, (size_t)engine->node_count * size);
        for (int64_t row = 0; row < engine->node_count; row++) {
            bool counts = counts_exactly(engine, search->scope, row);
            exact->place_of[row] = counts ? exact->online++ : NOWHERE;
            if (counts) copy_exactly(engine, exact, row);
        }
    }
    exact->as_of = engine->clock;
    if (!search->near.reserved_known) {
        add_up(engine, search->scope, NOWHERE, NULL, &search->near.reserved);
        search->near.reserved_known = true;
    }
    return exact;
}

/* Compute sums and squares from the values of all nodes in their order; `width` is a constant where this is called. */
static inline void add_up_values(const struct exact_values *exact, int width, double *sums, double *squares) {
    const double *all = exact->values.items, *end = all + exact->online * width;
    double means[OF_PRIMARY];
    for (const double *values = all; values < end; values += width) {
        for (int number = 0; number < width; number++) sums[number] += values[number];
    }
    for (int number = 0; number < width; number++) means[number] = sums[number] / (double)exact->online;
    for (const double *values = all; values < end; values += width) {
        for (int number = 0; number < width; number++) {
            double difference = values[number] - means[number];
            squares[number] += difference * difference;
        }
    }
}

/* Put one node's values, those before or after, into their places. */
static void put_values(struct exact_values *exact, int64_t row, const double *values) {
    double *own = (double *)exact->values.items + exact->place_of[row] * exact->width;
    for (int number = 0; number < exact->count; number++) own[number] = values[exact->places[number]];
}

/* Return the score with the instance on a candidate as the law computes it: all nodes in their order. */
static double exact_score(struct engine *engine, int64_t row) {
    struct whole_search *search = engine->whole_search;
    const struct primary_side *side = primary_side(engine, search->sides, row);
    struct exact_values *exact = exact_values(engine);
    struct statistics after = search->near.statistics;
    if (exact == NULL) return 0.0;
    for (int number = 0; number < 2; number++) {
        int component = number == 0 ? RESERVED : RESERVED_TOTAL;
        after.sums[component] = search->near.reserved.sums[component];
        after.variances[component] = search->near.reserved.variances[component];
    }
    bool online = exact->place_of[row] != NOWHERE;
    double sums[OF_PRIMARY] = {0.0}, squares[OF_PRIMARY] = {0.0};
    if (online) put_values(exact, row, side->after);
    if (exact->width == 8) {
        add_up_values(exact, 8, sums, squares);
    } else {
        add_up_values(exact, OF_PRIMARY, sums, squares);
    }
    if (online) put_values(exact, row, side->before);
    for (int place = 0; place < OF_PRIMARY; place++) {
        after.sums[PRIMARY_COMPONENTS[place]] = sums[exact->same[place]];
        after.variances[PRIMARY_COMPONENTS[place]] = squares[exact->same[place]] / after.count;
    }
    if (online) {
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
    const struct near *near = &engine->whole_search->near;
    struct statistics after = near->statistics;
    double values[COMPONENTS];
    values_with(engine, row, values);
    replace_values(&after, engine->facts[row].offline, engine->nodes[row].values, values);
    after.exclusions = exclusions_with(engine, row);
    double score = sum_of(&after), error = estimate_error(&near->greatest, &after, 1.0 + (double)near->changes);
    return (struct contender){row, score - error, score + error};
}

static void work_out(struct engine *engine, struct contender *contender) {
    if (contender->low == contender->high) return;
    contender->low = contender->high = exact_score(engine, contender->row);
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

/* Add a side to the reaches. */
static void extend_reaches(struct whole_search *search, const struct primary_side *side) {
    for (int place = 0; place < OF_PRIMARY; place++) {
        extend_reach(&search->reaches[place], side->own[place], side->slope[place], search->sums[place]);
    }
}

/* Write the numbers of a side, or leave the row out. */
static void write_row(struct engine *engine, int64_t row, const struct primary_side *side) {
    struct whole_search *search = engine->whole_search;
    const double *weights = engine->weights;
    for (int place = 0; place < OF_PRIMARY; place++) {
        search->own[place * engine->node_count + row] = side != NULL ? side->own[place] : NAN;
        search->slope[place * engine->node_count + row] = side != NULL ? side->slope[place] : 0.0;
    }
    if (side == NULL) return;
    search->counts[row] = weights[N1_COUNT] * side->n1_change + weights[PRIMARY_TAGS] * side->tags_change +
                          weights[LOCATION] * side->location_change;
}

/* Write the candidates' rows that have changed; offline candidates get no bound. */
static void write_rows(struct engine *engine, const int64_t *rows, int64_t count) {
    struct whole_search *search = engine->whole_search;
    for (int place = 0; place < OF_PRIMARY; place++) {
        double sum = finite_sum(&search->near.statistics, PRIMARY_COMPONENTS[place]);
        move_reach(&search->reaches[place], search->anew, sum - search->sums[place]);
        search->sums[place] = sum;
    }
    search->searches++;
    for (int64_t number = 0; number < count; number++) {
        int64_t row = rows[number];
        if (engine->facts[row].offline) continue;
        search->listed[row] = search->searches;
        const struct primary_side *side = primary_side(engine, search->sides, row);
        bool written = search->written[row] == search->sides->as_of[row] && !isnan(search->own[row]);
        if (!written || search->anew) extend_reaches(search, side);
        if (written) continue;
        write_row(engine, row, side);
        search->written[row] = search->sides->as_of[row];
    }
    for (int64_t row = 0; row < engine->node_count; row++) {
        if (search->listed[row] != search->searches && !isnan(search->own[row])) write_row(engine, row, NULL);
    }
    search->anew = false;
}

/* Compute lower bounds of the scores of all candidates by chords of the square roots (sides.h); offline candidates get
 * none. Return the possible error of a bound. */
static double bound_rows(struct engine *engine, const int64_t *rows, int64_t count) {
    struct whole_search *search = engine->whole_search;
    const struct near *near = &search->near;
    const struct statistics *statistics = &near->statistics;
    struct statistics rest = *statistics; /* without what a primary changes by itself */
    struct distinct distinct = distinct_components(search->sides, statistics);
    double changes = (double)near->changes, common = 0.0, greatest, *lows = search->lows;
    int64_t nodes = engine->node_count;
    memcpy(lows, search->counts, (size_t)nodes * sizeof *lows);
    for (int number = 0; number < distinct.count; number++) {
        int place = distinct.places[number], component = PRIMARY_COMPONENTS[place];
        const double *own = &search->own[place * nodes], *slopes = &search->slope[place * nodes];
        double slope, widest = search->sides->widest[component];
        struct range parts = search->reaches[place].parts;
        double base = safe_variance(search->sides, statistics, component, widest) + parts.low;
        base -= variance_error(&near->greatest, statistics, component, changes);
        double root = lay_chord(base, parts.high - parts.low, &slope), back = slope * search->sums[place];
        double weight = distinct.weights[number];
        common += weight * root;
        if (slope == 0.0) continue;
        common -= weight * slope * parts.low;
        for (int64_t row = 0; row < nodes; row++) lows[row] += weight * (slope * own[row] - back * slopes[row]);
    }
    for (int place = 0; place < OF_PRIMARY; place++) rest.variances[PRIMARY_COMPONENTS[place]] = 0.0;
    rest.exclusions = 0.0;
    common += sum_of(&rest);
    greatest = fabs(common);
    for (int64_t number = 0; number < count; number++) {
        int64_t row = rows[number];
        lows[row] += common + engine->weights[LOCATION_EXCLUSION] * exclusions_with(engine, row);
        if (engine->facts[row].offline) lows[row] = -INFINITY;
        greatest = greater(fabs(lows[row]) < INFINITY ? fabs(lows[row]) : 0.0, greatest);
    }
    return 1e-10 * (1.0 + greatest) + (changes > 0.0 ? estimate_error(&near->greatest, statistics, changes) : 0.0);
}

static void begin_search(struct engine *engine, int64_t scope, const struct instance *instance) {
    struct whole_search *search = engine->whole_search;
    search->anew = search->anew || search->scope != scope || search->searches % SEARCHES_OF_REACH == 0;
    search->scope = scope;
    follow_changes(engine, scope);
    if (begin_sides(engine, search->sides, instance, search->near.statistics.count)) {
        memset(search->written, 0, (size_t)engine->node_count * sizeof *search->written);
        search->anew = true;
    }
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
    begin_search(engine, scope, instance);
    if (engine->whole_search->near.statistics.count == 0.0) return (struct contender){rows[count - 1], 0.0, 0.0};
    write_rows(engine, rows, count);
    double margin = bound_rows(engine, rows, count), *lows = engine->whole_search->lows;
    int64_t first = 0; /* the likeliest one: its score excludes most others */
    for (int64_t number = 1; number < count; number++) {
        if (lows[rows[number]] < lows[rows[first]]) first = number;
    }
    struct contender best = bound_score(engine, rows[first]);
    for (int64_t number = 0; number < count; number++) {
        if (number == first || lows[rows[number]] > best.high + margin) continue;
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

double single_score(struct engine *engine, const struct instance *instance, int64_t row) {
    if (score_is_undefined(engine, EVERYWHERE)) return NAN;
    begin_search(engine, EVERYWHERE, instance);
    return engine->whole_search->near.statistics.count > 0.0 ? exact_score(engine, row) : 0.0;
}

void all_singles(struct engine *engine, const struct instance *instance, const int64_t *rows, int64_t count,
                 double *scores) {
    bool undefined = score_is_undefined(engine, EVERYWHERE);
    begin_search(engine, EVERYWHERE, instance);
    for (int64_t place = 0; place < count && !ended(engine); place++) {
        scores[place] = undefined ? NAN : exact_score(engine, rows[place]);
    }
}
