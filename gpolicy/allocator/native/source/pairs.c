#include "pairs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "node_changes.h"
#include "outcomes.h"
#include "sides.h"
#include "statistics.h"

/* The deviations that a secondary changes: SHARED ones that a primary changes too, and that of its reserved memory. */
enum { OF_SECONDARY = SHARED + 1, KEPT = SHARED };
static const int SECONDARY_COMPONENTS[OF_SECONDARY] = {
    FREE_DISK, DISK_LOAD, SPINDLE_RATIO, FORTH_DISK, FORTH_SPINDLES, RESERVED,
};

/* A node with the instance as secondary, like `struct primary_side`. */
struct secondary_side {
    double before[OF_SECONDARY], after[OF_SECONDARY], own[OF_SECONDARY], slope[OF_SECONDARY];
    double n1_change, offline_all_change;
    int64_t location_class;
    uint64_t hash;
};

/* The special pairs of a secondary (special_pair()): their count, and the range of its reserved share of memory with
 * them. Beside it the share before, and after with all other pairs. */
struct specials { int64_t count; double low, high, before, usual; };

/* The terms of the score of a primary, computed when one of its pairs is compared closely. */
struct primary_score { int64_t search; double alone, terms[COMPONENTS]; struct deviation shared[SHARED]; };

/* A row, the lower bound of its side, and the part of the bound that depends on this side alone, for which an exact
 * value exists. */
struct ranked { double low, alone; int64_t row; };

/* The nodes as primaries, or as secondaries. The nodes of a list of candidates have neighbouring columns, from `begin`
 * of the list on. By component, then column: the numbers `own` and `slope` of a side, or NaN if the node does not take
 * the instance. By list, then component: the reach of the sides. By column: what the node's counts change, the lower
 * bound of its side, and the part of it that depends on this side alone. Then the rows of one list that fit. */
struct side_rows {
    const int *components_of;
    int components;
    int64_t *begin, *column_of, *row_of, columns;
    struct reach *reaches;
    double *own, *slope, *counts, *low, *alone;
    struct ranked *rows, *close;
    int64_t count, close_count, *next, *slots, best;
};

struct pair_search {
    struct sides *sides;
    const struct instance *instance;
    int64_t *as_of; /* for each secondary, the engine's clock when its side was made, plus 1 */
    struct secondary_side *secondaries;
    struct specials *specials;
    struct statistics statistics;
    double squared_count, inverse_square, inverse_others; /* from the count of online nodes */
    int64_t searches, prepared, demands; /* `prepared`: the engine's clock at the last search, for a count of demands */
    struct primary_score *scores;
    struct side_rows p, s;
    int64_t slot_count;
    bool any_offline; /* among the candidates */
    const bool *wanted; /* the argument of best_pair() */
    struct distinct distinct;
    double bases[OF_PRIMARY]; /* the variances of the distinct components less their rounding errors */
    double reserved_root, reserved_slope; /* the beginning and slope of the chord under the deviation of reservations */
    double margin; /* the rounding error of a bound */
    struct pair best;
};

static bool give_columns(struct engine *engine, struct side_rows *side, const int64_t *list_of) {
    side->begin = zeroed(engine, engine->list_count + 1, sizeof *side->begin);
    side->column_of = zeroed(engine, engine->node_count, sizeof *side->column_of);
    int64_t *end = zeroed(engine, engine->list_count, sizeof *end); /* of the columns in use */
    if (failed(engine)) return false;
    for (int64_t row = 0; row < engine->node_count; row++) {
        if (list_of[row] != NOWHERE) side->begin[list_of[row] + 1]++;
    }
    for (int64_t list = 0; list < engine->list_count; list++) {
        end[list] = side->begin[list];
        side->begin[list + 1] += side->begin[list];
    }
    side->columns = side->begin[engine->list_count];
    side->row_of = zeroed(engine, side->columns, sizeof *side->row_of);
    if (failed(engine)) return false;
    for (int64_t column = 0; column < side->columns; column++) side->row_of[column] = NOWHERE;
    for (int64_t row = 0; row < engine->node_count; row++) {
        if (list_of[row] == NOWHERE) continue;
        side->column_of[row] = end[list_of[row]]++;
        side->row_of[side->column_of[row]] = row;
    }
    return true;
}

static bool open_rows(struct engine *engine, struct side_rows *side, const int64_t *list_of, const int *components_of,
                      int components) {
    int64_t nodes = engine->node_count;
    if (!give_columns(engine, side, list_of)) return false;
    side->components_of = components_of;
    side->components = components;
    side->reaches = zeroed(engine, engine->list_count * components, sizeof *side->reaches);
    side->own = zeroed(engine, side->columns, (size_t)components * sizeof *side->own);
    side->slope = zeroed(engine, side->columns, (size_t)components * sizeof *side->slope);
    side->counts = zeroed(engine, side->columns, sizeof *side->counts);
    side->low = zeroed(engine, side->columns, sizeof *side->low);
    side->alone = zeroed(engine, side->columns, sizeof *side->alone);
    side->rows = zeroed(engine, nodes, sizeof *side->rows);
    side->close = zeroed(engine, nodes, sizeof *side->close);
    side->next = zeroed(engine, nodes, sizeof *side->next);
    side->slots = zeroed(engine, engine->pair_search->slot_count, sizeof *side->slots);
    if (failed(engine)) return false;
    for (int64_t place = 0; place < side->columns * components; place++) side->own[place] = NAN;
    return true;
}

bool open_pair_search(struct engine *engine) {
    int64_t nodes = engine->node_count;
    if (!engine->mirrored) return true;
    struct pair_search *search = engine->pair_search = zeroed(engine, 1, sizeof *search);
    if (search == NULL) return false;
    for (search->slot_count = 16; search->slot_count < 2 * nodes;) search->slot_count *= 2;
    search->sides = open_sides(engine, true);
    search->as_of = zeroed(engine, nodes, sizeof *search->as_of);
    search->secondaries = zeroed(engine, nodes, sizeof *search->secondaries);
    search->specials = zeroed(engine, nodes, sizeof *search->specials);
    search->scores = zeroed(engine, nodes, sizeof *search->scores);
    for (int64_t row = 0; row < nodes; row++) {
        bool candidate = engine->list_of_primary[row] != NOWHERE || engine->list_of_secondary[row] != NOWHERE;
        search->any_offline = search->any_offline || (candidate && engine->facts[row].offline);
    }
    return open_rows(engine, &search->p, engine->list_of_primary, PRIMARY_COMPONENTS, OF_PRIMARY) &&
           open_rows(engine, &search->s, engine->list_of_secondary, SECONDARY_COMPONENTS, OF_SECONDARY);
}

/* Compute the side of a secondary that reserves `peer` MiB for the primary already. */
static void fill_secondary(struct engine *engine, int64_t row, int64_t peer, struct secondary_side *side) {
    struct pair_search *search = engine->pair_search;
    struct node node = engine->nodes[row];
    const double *old = engine->nodes[row].values, *new = node.values;
    with_secondary(engine, row, search->instance, peer, &node);
    memset(side, 0, sizeof *side);
    side->location_class = engine->facts[row].location_class;
    for (int place = 0; place < OF_SECONDARY; place++) {
        int component = SECONDARY_COMPONENTS[place];
        double x = side->before[place] = old[component], y = side->after[place] = new[component];
        work_out_change(search->sides, component, x, y, &side->own[place], &side->slope[place]);
    }
    note_twins(search->sides, SHARED, side->before, side->after);
    side->n1_change = new[N1_COUNT] - old[N1_COUNT];
    side->offline_all_change = new[OFFLINE_ALL] - old[OFFLINE_ALL];
    side->hash = hash_of(side, offsetof(struct secondary_side, hash));
}

/* Whether the secondary reserves memory for the primary already, so that its reservation grows more than usual. */
static bool special_pair(const struct engine *engine, int64_t secondary, int64_t peer) {
    int64_t kept = memory_kept(engine->pair_search->instance);
    return peer > 0 && peer + kept > most(engine->nodes[secondary].reserved, kept);
}

static void make_secondary(struct engine *engine, int64_t row) {
    struct pair_search *search = engine->pair_search;
    const struct shares *peers = &engine->peers[row];
    int64_t kept = memory_kept(search->instance), count = 0, low = INT64_MAX, high = 0;
    fill_secondary(engine, row, 0, &search->secondaries[row]);
    for (int64_t place = 0; place < peers->count; place++) {
        int64_t memory = peers->items[place].memory;
        if (!special_pair(engine, row, memory)) continue;
        count++;
        low = least(low, memory + kept);
        high = most(high, memory + kept);
    }
    const struct secondary_side *side = &search->secondaries[row];
    double total = engine->facts[row].total_memory, before = side->before[KEPT];
    search->specials[row] =
        (struct specials){count, (double)low / total, (double)high / total, before, side->after[KEPT]};
    if (count > 0) note_size(search->sides, RESERVED, before, search->specials[row].high);
}

/* Write the numbers of a side, one for each component, into the node's column, or leave the node out. */
static void write_column(struct side_rows *side, int64_t column, const double *own, const double *slope) {
    for (int place = 0; place < side->components; place++) {
        side->own[place * side->columns + column] = own != NULL ? own[place] : NAN;
        side->slope[place * side->columns + column] = own != NULL ? slope[place] : 0.0;
    }
}

static bool is_left_out(const struct side_rows *side, int64_t column) { return isnan(side->own[column]); }

/* Begin with no reach, or move that of the last search to the present sums: by `moved`, for each component. */
static void move_reaches(const struct engine *engine, struct side_rows *side, bool anew, const double *moved) {
    for (int64_t place = 0; place < engine->list_count * side->components; place++) {
        move_reach(&side->reaches[place], anew, moved[side->components_of[place % side->components]]);
    }
}

/* Extend the reaches of a list by the sides of a node that takes the instance. */
static void extend_reaches(const struct pair_search *search, struct side_rows *side, int64_t list, int64_t column) {
    for (int place = 0; place < side->components; place++) {
        double own = side->own[place * side->columns + column], slope = side->slope[place * side->columns + column];
        double sum = finite_sum(&search->statistics, side->components_of[place]);
        extend_reach(&side->reaches[list * side->components + place], own, slope, sum);
    }
}

/* How the reservation changes its variance if the secondary keeps `after` (a share of its memory). */
static double kept_part(const struct pair_search *search, double before, double after) {
    double change = after - before, sum = search->statistics.sums[RESERVED];
    return (search->statistics.count * (change * (after + before)) - (2.0 * sum) * change - change * change) *
           search->inverse_square;
}

/* Where the change of the reservation's variance is least: it is a parabola of what the secondary keeps. */
static double bottom_of(const struct pair_search *search, double before) {
    return (search->statistics.sums[RESERVED] - before) * search->inverse_others;
}

/* Extend the reach of the reservations by the special pairs of a secondary. */
static void extend_by_specials(const struct pair_search *search, struct reach *reach, const struct specials *specials) {
    double before = specials->before, bottom = bottom_of(search, before);
    if (specials->count == 0) return;
    widen(&reach->parts, kept_part(search, before, specials->low));
    widen(&reach->parts, kept_part(search, before, specials->high));
    if (specials->low < bottom && bottom < specials->high) widen(&reach->parts, kept_part(search, before, bottom));
    widen(&reach->slopes, 2.0 * (specials->low - before) * search->inverse_square);
    widen(&reach->slopes, 2.0 * (specials->high - before) * search->inverse_square);
}

static void update_primary(struct engine *engine, int64_t row) {
    struct pair_search *search = engine->pair_search;
    const double *weights = engine->weights;
    int64_t column = search->p.column_of[row];
    bool stale = search->sides->as_of[row] <= engine->changed[row], left_out = is_left_out(&search->p, column);
    if (engine->outcomes->primary_codes[row] != FITS) {
        if (!left_out) write_column(&search->p, column, NULL, NULL);
        return;
    }
    if (stale || left_out) {
        const struct primary_side *side = primary_side(engine, search->sides, row);
        write_column(&search->p, column, side->own, side->slope);
        search->p.counts[column] = weights[N1_COUNT] * side->n1_change + weights[PRIMARY_TAGS] * side->tags_change +
                                   weights[LOCATION] * side->location_change;
    }
    extend_reaches(search, &search->p, engine->list_of_primary[row], column);
}

static void update_secondary(struct engine *engine, int64_t row) {
    struct pair_search *search = engine->pair_search;
    const double *weights = engine->weights;
    const struct secondary_side *side = &search->secondaries[row];
    int64_t column = search->s.column_of[row], list = engine->list_of_secondary[row];
    bool stale = search->as_of[row] <= engine->changed[row], left_out = is_left_out(&search->s, column);
    if (engine->outcomes->secondary_codes[row] != FITS) {
        if (!left_out) write_column(&search->s, column, NULL, NULL);
        return;
    }
    if (stale || left_out) {
        if (stale) make_secondary(engine, row);
        search->as_of[row] = engine->clock + 1;
        write_column(&search->s, column, side->own, side->slope);
        search->s.counts[column] = weights[N1_COUNT] * side->n1_change +
                                   weights[RESERVED_TOTAL] * (side->after[KEPT] - side->before[KEPT]);
    }
    extend_reaches(search, &search->s, list, column);
    extend_by_specials(search, &search->s.reaches[list * OF_SECONDARY + KEPT], &search->specials[row]);
}

void prepare_pairs(struct engine *engine, const struct instance *instance) {
    struct pair_search *search = engine->pair_search;
    struct instance wanted = *instance;
    double moved[COMPONENTS];
    wanted.location_score = 0; /* it depends on the pair: the locations that both nodes have in common */
    for (int place = 0; place < COMPONENTS; place++) moved[place] = -finite_sum(&search->statistics, place);
    take_statistics(engine, EVERYWHERE, &search->statistics);
    for (int place = 0; place < COMPONENTS; place++) moved[place] += finite_sum(&search->statistics, place);
    bool anew = begin_sides(engine, search->sides, &wanted, search->statistics.count);
    if (anew) memset(search->as_of, 0, (size_t)engine->node_count * sizeof *search->as_of);
    anew = anew || search->demands != engine->outcomes->demands || search->searches % SEARCHES_OF_REACH == 0;
    search->instance = &search->sides->demand;
    search->squared_count = search->sides->squared_count;
    search->inverse_square = search->sides->inverse_square;
    search->inverse_others = search->statistics.count > 1.0 ? 1.0 / (search->statistics.count - 1.0) : 0.0;
    search->searches++;
    move_reaches(engine, &search->p, anew, moved);
    move_reaches(engine, &search->s, anew, moved);
    for (int64_t row = 0; row < engine->node_count; row++) {
        if (!anew && engine->changed[row] <= search->prepared) continue;
        if (engine->list_of_primary[row] != NOWHERE) update_primary(engine, row);
        if (engine->list_of_secondary[row] != NOWHERE) update_secondary(engine, row);
    }
    search->prepared = engine->clock;
    search->demands = engine->outcomes->demands;
}

static struct deviation deviation_of(const struct statistics *statistics, int component) {
    return (struct deviation){statistics->sums[component], statistics->variances[component]};
}

/* Return a primary's terms of the score: those that no secondary changes, and the statistics of the others. */
static const struct primary_score *score_primary(struct engine *engine, int64_t row) {
    const double *weights = engine->weights;
    struct pair_search *search = engine->pair_search;
    const struct statistics *statistics = &search->statistics;
    const struct primary_side *side = &search->sides->items[row];
    struct primary_score *score = &search->scores[row];
    bool online = !engine->facts[row].offline;
    if (score->search == search->searches) return score;
    score->search = search->searches;
    /* which terms are NaN then depends on the secondary */
    if (!online && score_is_undefined(engine, EVERYWHERE)) fail(engine, ASK_THE_LAW);
    for (int place = 0; place < OF_PRIMARY; place++) {
        int component = PRIMARY_COMPONENTS[place];
        struct deviation after = deviation_of(statistics, component);
        if (online) after = replaced(statistics->count, after, side->before[place], side->after[place]);
        if (place < SHARED) score->shared[place] = after;
        score->terms[component] = weights[component] * sqrt(after.variance);
    }
    double exclusions = statistics->exclusions;
    if (online && search->instance->tag_count > 0) {
        exclusions += (double)exclusion_change(engine, row, search->instance, statistics->merged);
    }
    double offline = online ? 0.0 : side->offline_primaries_change;
    score->terms[N1_COUNT] = statistics->sums[N1_COUNT] + (online ? side->n1_change : 0.0);
    score->terms[OFFLINE_ALL] = statistics->sums[OFFLINE_ALL] + (online ? 0.0 : side->offline_all_change);
    score->terms[OFFLINE_PRIMARIES] =
        weights[OFFLINE_PRIMARIES] * (statistics->sums[OFFLINE_PRIMARIES] + offline);
    score->terms[PRIMARY_TAGS] =
        weights[PRIMARY_TAGS] * (statistics->sums[PRIMARY_TAGS] + (online ? side->tags_change : 0.0));
    score->terms[LOCATION] = statistics->sums[LOCATION] + (online ? side->location_change : 0.0);
    score->terms[LOCATION_EXCLUSION] = weights[LOCATION_EXCLUSION] * exclusions;
    score->alone = weights[N1_COUNT] * score->terms[N1_COUNT] + weights[OFFLINE_ALL] * score->terms[OFFLINE_ALL] +
                   score->terms[OFFLINE_PRIMARIES] + score->terms[PRIMARY_TAGS] +
                   weights[LOCATION] * score->terms[LOCATION] + score->terms[LOCATION_EXCLUSION];
    for (int place = SHARED; place < OF_PRIMARY; place++) score->alone += score->terms[PRIMARY_COMPONENTS[place]];
    return score;
}

static double common_locations_of(const struct engine *engine, int64_t primary, int64_t secondary) {
    /* common locations count for the primary; an offline one does not count, nor does a forthcoming instance */
    if (engine->facts[primary].offline || engine->pair_search->instance->forthcoming) return 0.0;
    return (double)common_locations(engine, primary, secondary);
}

/* Return the sum of the twenty components, in their order. */
static double sum_up(struct engine *engine, int64_t primary, int64_t secondary, const struct secondary_side *s) {
    const double *weights = engine->weights;
    const struct statistics *statistics = &engine->pair_search->statistics;
    double count = statistics->count, shared[SHARED], score = 0.0;
    if (count == 0.0) return 0.0; /* no node is online: there are no components */
    const struct primary_score *p = score_primary(engine, primary);
    struct deviation reserved = deviation_of(statistics, RESERVED);
    double offline_all = p->terms[OFFLINE_ALL], n1_count = p->terms[N1_COUNT];
    double reserved_total = statistics->sums[RESERVED_TOTAL];
    bool online = !engine->facts[secondary].offline;
    for (int place = 0; place < SHARED; place++) {
        struct deviation after = p->shared[place];
        if (online) after = replaced(count, after, s->before[place], s->after[place]);
        shared[place] = weights[SECONDARY_COMPONENTS[place]] * sqrt(after.variance);
    }
    if (online) {
        reserved = replaced(count, reserved, s->before[KEPT], s->after[KEPT]);
        n1_count += s->n1_change;
        reserved_total += s->after[KEPT] - s->before[KEPT];
    } else {
        offline_all += s->offline_all_change;
    }
    score += p->terms[FREE_MEMORY];
    score += shared[0];
    score += weights[N1_COUNT] * n1_count;
    score += weights[RESERVED] * sqrt(reserved.variance);
    score += weights[OFFLINE_ALL] * offline_all;
    score += p->terms[OFFLINE_PRIMARIES];
    score += p->terms[CPU_RATIO];
    score += p->terms[CPU_LOAD];
    score += p->terms[MEMORY_LOAD];
    score += shared[1];
    score += p->terms[NET_LOAD];
    score += p->terms[PRIMARY_TAGS];
    score += shared[2];
    score += p->terms[FORTH_MEMORY];
    score += shared[3];
    score += p->terms[FORTH_CPU];
    score += shared[4];
    score += weights[LOCATION] * (p->terms[LOCATION] + common_locations_of(engine, primary, secondary));
    score += p->terms[LOCATION_EXCLUSION];
    score += weights[RESERVED_TOTAL] * reserved_total;
    return score;
}

double pair_score(struct engine *engine, int64_t primary, int64_t secondary) {
    int64_t peer = peer_memory(engine, secondary, primary);
    if (!special_pair(engine, secondary, peer)) {
        return sum_up(engine, primary, secondary, &engine->pair_search->secondaries[secondary]);
    }
    struct secondary_side own;
    fill_secondary(engine, secondary, peer, &own);
    return sum_up(engine, primary, secondary, &own);
}

static void keep_better(struct pair_search *search, struct pair other) {
    struct pair *best = &search->best;
    bool later = other.primary > best->primary ||
                 (other.primary == best->primary && other.secondary > best->secondary);
    if (best->primary == NOWHERE || other.score < best->score || (other.score == best->score && later)) *best = other;
}

/* No pair whose score is surely above this can be the best. */
static double limit_of(const struct pair_search *search) {
    return search->best.primary == NOWHERE ? INFINITY : search->best.score + search->margin;
}

/* Add to a bound of each node of a list how far the node climbs the chord of a component, from 0 on; NaN if the node is
 * left out. */
static void climb(const struct side_rows *side, int64_t list, int place, double sum, double slope, double *bounds) {
    const double *own = &side->own[place * side->columns], *slopes = &side->slope[place * side->columns];
    int64_t end = side->begin[list + 1];
    double back = slope * sum;
    if (slope == 0.0) return;
    for (int64_t column = side->begin[list]; column < end; column++) {
        bounds[column] += slope * own[column] - back * slopes[column];
    }
}

/* Read the bounds of the rows that fit, and find the least. `alone` and `rest` are the same for all of them. */
static void read_bounds(const struct engine *engine, struct side_rows *side, double alone, double rest) {
    struct pair_search *search = engine->pair_search;
    bool tagged = side == &search->p && search->instance->tag_count > 0;
    double greatest = 0.0;
    side->best = 0;
    for (int64_t number = 0; number < side->count; number++) {
        struct ranked *ranked = &side->rows[number];
        int64_t column = side->column_of[ranked->row];
        ranked->alone = side->alone[column] + alone;
        if (tagged) {
            ranked->alone += engine->weights[LOCATION_EXCLUSION] *
                             (double)exclusion_change(engine, ranked->row, search->instance, search->statistics.merged);
        }
        ranked->low = ranked->alone + (side->low[column] + rest);
        if (ranked->low < side->rows[side->best].low) side->best = number;
        greatest = greater(greatest, fabs(ranked->low));
    }
    search->margin = greater(search->margin, 1e-10 * (1.0 + greatest));
}

/* Bound the sides of a list's rows: lay a chord under each deviation, and see how far each row climbs it. The `alone`
 * of a primary is its share of the components that no secondary changes, that of a secondary its share of the deviation
 * of the reservations. */
static void bound_sides(struct engine *engine, int64_t list) {
    struct pair_search *search = engine->pair_search;
    const double *weights = engine->weights;
    const struct statistics *statistics = &search->statistics;
    const struct sides *sides = search->sides;
    struct side_rows *p = &search->p, *s = &search->s;
    double slope, shared = weights[RESERVED_TOTAL] * statistics->sums[RESERVED_TOTAL];
    double of_primary = weights[N1_COUNT] * statistics->sums[N1_COUNT] +
                        weights[OFFLINE_ALL] * statistics->sums[OFFLINE_ALL] +
                        weights[OFFLINE_PRIMARIES] * statistics->sums[OFFLINE_PRIMARIES] +
                        weights[PRIMARY_TAGS] * statistics->sums[PRIMARY_TAGS] +
                        weights[LOCATION] * statistics->sums[LOCATION] +
                        weights[LOCATION_EXCLUSION] * statistics->exclusions;
    for (int64_t column = p->begin[list]; column < p->begin[list + 1]; column++) {
        p->alone[column] = p->counts[column];
        p->low[column] = 0.0;
    }
    for (int64_t column = s->begin[list]; column < s->begin[list + 1]; column++) {
        s->alone[column] = 0.0;
        s->low[column] = s->counts[column];
    }
    search->distinct = distinct_components(sides, statistics);
    for (int number = 0; number < search->distinct.count; number++) {
        int place = search->distinct.places[number], component = PRIMARY_COMPONENTS[place];
        bool both = number < search->distinct.shared;
        double widest = sides->widest[component], weight = search->distinct.weights[number];
        double sum = finite_sum(statistics, component);
        struct range of_p = p->reaches[list * OF_PRIMARY + place].parts, of_s = {0.0, 0.0};
        if (both) of_s = s->reaches[list * OF_SECONDARY + place].parts;
        search->bases[number] = safe_variance(sides, statistics, component, 2.0 * widest);
        /* a deviation that is NaN becomes 0 once a node is replaced */
        if (!isfinite(statistics->variances[component])) search->bases[number] = -INFINITY;
        double base = search->bases[number] + of_p.low + of_s.low;
        if (both) base -= 2.0 * widest * widest / search->squared_count; /* the cross term */
        double root = lay_chord(base, of_p.high - of_p.low + (of_s.high - of_s.low), &slope);
        root -= slope * (of_p.low + of_s.low); /* at 0 */
        if (both) shared += weight * root;
        if (!both) of_primary += weight * root;
        climb(p, list, place, sum, weight * slope, both ? p->low : p->alone);
        if (both) climb(s, list, place, sum, weight * slope, s->low);
    }
    struct range kept = s->reaches[list * OF_SECONDARY + KEPT].parts;
    double base = safe_variance(sides, statistics, RESERVED, 2.0 * sides->widest[RESERVED]) + kept.low;
    search->reserved_root = weights[RESERVED] * lay_chord(base, kept.high - kept.low, &slope);
    search->reserved_slope = weights[RESERVED] * slope;
    climb(s, list, KEPT, finite_sum(statistics, RESERVED), search->reserved_slope, s->alone);
    search->margin = 0.0;
    read_bounds(engine, p, of_primary, shared);
    read_bounds(engine, s, search->reserved_root - search->reserved_slope * kept.low, 0.0);
}

/* Bound the special pairs of a secondary by the least value of a parabola in a range. `shift` is how far the sum of
 * reservations, which also counts, moves its lowest point. */
static double bound_specials(const struct pair_search *search, int64_t number, double shift) {
    const struct ranked *ranked = &search->s.rows[number];
    const struct specials *specials = &search->specials[ranked->row];
    double before = specials->before, slope = search->reserved_slope, more = 0.0;
    double after = slope > 0.0 ? lesser(bottom_of(search, before) - shift, specials->high) : specials->low;
    after = greater(after, specials->low);
    if (slope > 0.0) more = slope * (kept_part(search, before, after) - kept_part(search, before, specials->usual));
    return ranked->low + more + search->statistics.weights[RESERVED_TOTAL] * (after - specials->usual);
}

/* Return the share of a secondary in the deviation of the reservations. */
static double reserved_share(const struct pair_search *search, const struct secondary_side *s) {
    const double *weights = search->statistics.weights;
    struct deviation reserved = deviation_of(&search->statistics, RESERVED);
    reserved = replaced(search->statistics.count, reserved, s->before[KEPT], s->after[KEPT]);
    return weights[RESERVED] * sqrt(reserved.variance);
}

/* Return a lower bound of the score of a pair that is closer than the sum of the two bounds, and faster than the score.
 */
static double floor_of(struct engine *engine, int64_t primary, int64_t secondary, const struct secondary_side *s) {
    const double *weights = engine->weights;
    const struct pair_search *search = engine->pair_search;
    const struct primary_side *p = &search->sides->items[primary];
    const struct statistics *statistics = &search->statistics;
    double sum = score_primary(engine, primary)->alone + reserved_share(search, s) + weights[N1_COUNT] * s->n1_change +
                 weights[RESERVED_TOTAL] *
                     (statistics->sums[RESERVED_TOTAL] + (s->after[KEPT] - s->before[KEPT])) +
                 weights[LOCATION] * common_locations_of(engine, primary, secondary);
    for (int number = 0; number < search->distinct.shared; number++) {
        int place = search->distinct.places[number];
        double cross = 2.0 * ((p->after[place] - p->before[place]) * (s->after[place] - s->before[place]));
        double total = statistics->sums[PRIMARY_COMPONENTS[place]];
        double variance = search->bases[number] + (p->own[place] - total * p->slope[place]) +
                          (s->own[place] - total * s->slope[place]) - cross / search->squared_count;
        if (variance > 0.0) sum += search->distinct.weights[number] * sqrt(variance);
    }
    return sum;
}

static void look_at_special(struct engine *engine, int64_t primary, int64_t secondary, int64_t peer) {
    struct pair_search *search = engine->pair_search;
    struct secondary_side own;
    fill_secondary(engine, secondary, peer, &own);
    if (floor_of(engine, primary, secondary, &own) > limit_of(search)) return;
    keep_better(search, (struct pair){primary, secondary, sum_up(engine, primary, secondary, &own)});
}

static bool is_primary(const struct engine *engine, int64_t row) {
    const bool *wanted = engine->pair_search->wanted;
    return engine->outcomes->primary_codes[row] == FITS && (wanted == NULL || wanted[row]);
}

/* Score the special pairs whose bounds allow them to be the best. */
static void search_specials(struct engine *engine) {
    const double *weights = engine->weights;
    struct pair_search *search = engine->pair_search;
    double least_p = search->p.rows[search->p.best].low, slope = search->reserved_slope;
    double weight = weights[RESERVED_TOTAL] * search->squared_count * search->inverse_others;
    double shift = slope > 0.0 ? weight / (2.0 * slope) : 0.0;
    for (int64_t number = 0; number < search->s.count; number++) {
        const struct ranked *ranked = &search->s.rows[number];
        int64_t secondary = ranked->row;
        const struct shares *peers = &engine->peers[secondary];
        /* at the best, the reservation of a special pair lies where the chord begins */
        if (least_p + (ranked->low - ranked->alone) + search->reserved_root > limit_of(search)) continue;
        if (search->specials[secondary].count == 0) continue;
        if (least_p + bound_specials(search, number, shift) > limit_of(search)) continue;
        for (int64_t place = 0; place < peers->count; place++) {
            int64_t primary = peers->items[place].node, peer = peers->items[place].memory;
            if (primary == NOWHERE || !is_primary(engine, primary) || !special_pair(engine, secondary, peer)) continue;
            if (!pair_fits(engine, search->instance, primary, secondary)) continue;
            look_at_special(engine, primary, secondary, peer);
        }
    }
}

/* Keep the rows that can be part of the best pair by their bounds. Rows with equal sides (`size` bytes, which end with
 * a hash) become one: the last row, from which `next` leads to the earlier ones. */
static void keep_close(const struct pair_search *search, struct side_rows *side, double least_other, const char *sides,
                       size_t size) {
    double limit = limit_of(search) - least_other;
    side->close_count = 0;
    memset(side->slots, -1, (size_t)search->slot_count * sizeof *side->slots);
    for (int64_t number = 0; number < side->count; number++) {
        struct ranked ranked = side->rows[number];
        if (ranked.low > limit) continue;
        const char *own = sides + (size_t)ranked.row * size;
        uint64_t hash;
        memcpy(&hash, own + size - sizeof hash, sizeof hash);
        int64_t slot = (int64_t)(hash & (uint64_t)(search->slot_count - 1));
        while (side->slots[slot] != NOWHERE &&
               memcmp(sides + (size_t)side->close[side->slots[slot]].row * size, own, size) != 0) {
            slot = (slot + 1) & (search->slot_count - 1);
        }
        side->next[ranked.row] = NOWHERE;
        if (side->slots[slot] == NOWHERE) {
            side->slots[slot] = side->close_count++;
        } else {
            side->next[ranked.row] = side->close[side->slots[slot]].row;
        }
        side->close[side->slots[slot]] = ranked;
    }
}

static int by_bound(const void *left, const void *right) {
    const struct ranked *a = left, *b = right;
    return a->low != b->low ? (a->low < b->low ? -1 : 1) : (a->row > b->row ? -1 : a->row < b->row);
}

/* Find the last members of two classes of equal nodes that make a pair that is not special. */
static bool latest_members(const struct engine *engine, int64_t last_p, int64_t last_s, struct pair *pair) {
    const struct pair_search *search = engine->pair_search;
    for (int64_t primary = last_p; primary != NOWHERE; primary = search->p.next[primary]) {
        for (int64_t secondary = last_s; secondary != NOWHERE; secondary = search->s.next[secondary]) {
            if (primary == secondary) continue;
            if (special_pair(engine, secondary, peer_memory(engine, secondary, primary))) continue;
            pair->primary = primary;
            pair->secondary = secondary;
            return true;
        }
    }
    return false;
}

/* Keep the close rows that can be part of the best pair by their refined bounds, and sort them by bound. */
static void sort_close(const struct pair_search *search, struct side_rows *side, double least_other) {
    int64_t count = 0;
    for (int64_t place = 0; place < side->close_count; place++) {
        if (side->close[place].low + least_other <= limit_of(search)) side->close[count++] = side->close[place];
    }
    side->close_count = count;
    qsort(side->close, (size_t)count, sizeof *side->close, by_bound);
}

/* Return by how much a close row changes the variance of a component. */
static double close_part(const struct side_rows *side, int64_t place, int component, double sum) {
    int64_t column = side->column_of[side->close[place].row] + component * side->columns;
    return side->own[column] - sum * side->slope[column];
}

static struct range close_parts(const struct side_rows *side, int component, double sum) {
    struct range range = {INFINITY, -INFINITY};
    for (int64_t place = 0; place < side->close_count; place++) {
        widen(&range, close_part(side, place, component, sum));
    }
    return range;
}

static void climb_close(struct side_rows *side, int component, double sum, double slope, double from) {
    for (int64_t place = 0; place < side->close_count; place++) {
        side->close[place].low += slope * (close_part(side, place, component, sum) - from);
    }
}

/* Bound the close rows anew, and sort them by bound: the part of each bound that depends on one side alone has an exact
 * value, and the chords, which span the close rows only, lie closer to the roots. */
static void refine_bounds(struct engine *engine) {
    struct pair_search *search = engine->pair_search;
    struct side_rows *p = &search->p, *s = &search->s;
    double shared = engine->weights[RESERVED_TOTAL] * search->statistics.sums[RESERVED_TOTAL];
    for (int64_t place = 0; place < s->close_count; place++) {
        int64_t row = s->close[place].row;
        s->close[place].low = reserved_share(search, &search->secondaries[row]) + s->counts[s->column_of[row]];
    }
    for (int64_t place = 0; place < p->close_count; place++) {
        p->close[place].low = score_primary(engine, p->close[place].row)->alone;
    }
    for (int number = 0; number < search->distinct.shared; number++) {
        int place = search->distinct.places[number], component = PRIMARY_COMPONENTS[place];
        double weight = search->distinct.weights[number], widest = search->sides->widest[component], slope;
        double sum = search->statistics.sums[component];
        if (!isfinite(sum)) sum = 0.0;
        struct range of_p = close_parts(p, place, sum), of_s = close_parts(s, place, sum);
        double base = search->bases[number] + of_p.low + of_s.low - 2.0 * widest * widest / search->squared_count;
        shared += weight * lay_chord(base, of_p.high - of_p.low + (of_s.high - of_s.low), &slope);
        climb_close(p, place, sum, weight * slope, of_p.low);
        climb_close(s, place, sum, weight * slope, of_s.low);
    }
    double least_s = INFINITY;
    for (int64_t place = 0; place < p->close_count; place++) p->close[place].low += shared;
    for (int64_t place = 0; place < s->close_count; place++) least_s = lesser(s->close[place].low, least_s);
    sort_close(search, p, least_s);
    sort_close(search, s, p->close_count > 0 ? p->close[0].low : INFINITY);
}

/* Score the pairs, not special, that can be the best by their bounds, the likeliest first. */
static void search_close(struct engine *engine) {
    struct pair_search *search = engine->pair_search;
    struct side_rows *p = &search->p, *s = &search->s;
    keep_close(search, p, s->rows[s->best].low, (const char *)search->sides->items, sizeof *search->sides->items);
    keep_close(search, s, p->rows[p->best].low, (const char *)search->secondaries, sizeof *search->secondaries);
    refine_bounds(engine);
    for (int64_t i = 0, j = 0; i < p->close_count && !ended_after(engine, 1 + j / 8); i++) {
        int64_t primary = p->close[i].row;
        for (j = 0; j < s->close_count; j++) {
            int64_t secondary = s->close[j].row;
            if (p->close[i].low + s->close[j].low > limit_of(search)) break;
            const struct secondary_side *side = &search->secondaries[secondary];
            double near = engine->weights[LOCATION] * common_locations_of(engine, primary, secondary);
            if (p->close[i].low + s->close[j].low + near > limit_of(search)) continue;
            if (floor_of(engine, primary, secondary, side) > limit_of(search)) continue;
            struct pair pair = {NOWHERE, NOWHERE, sum_up(engine, primary, secondary, side)};
            if (search->best.primary != NOWHERE && pair.score > search->best.score) continue;
            if (latest_members(engine, primary, secondary, &pair)) keep_better(search, pair);
        }
    }
}

/* Score the pair with the lowest bound that `row` makes with a row of `others`. */
static void guess_with(struct engine *engine, int64_t row, const struct side_rows *others) {
    struct pair_search *search = engine->pair_search;
    struct pair best = {NOWHERE, NOWHERE, INFINITY};
    for (int64_t number = 0; number < others->count; number++) {
        struct pair pair = {row, others->rows[number].row, others->rows[number].low};
        if (pair.score >= best.score) continue;
        if (others == &search->p) pair = (struct pair){pair.secondary, row, pair.score};
        pair.score += engine->weights[LOCATION] * common_locations_of(engine, pair.primary, pair.secondary);
        if (pair.score < best.score && pair_fits(engine, search->instance, pair.primary, pair.secondary)) best = pair;
    }
    if (best.primary == NOWHERE) return;
    best.score = pair_score(engine, best.primary, best.secondary);
    keep_better(search, best);
}

/* Score the pairs of the two rows with the lowest bounds first: their scores then exclude most other pairs. */
static void guess(struct engine *engine) {
    const struct side_rows *p = &engine->pair_search->p, *s = &engine->pair_search->s;
    guess_with(engine, p->rows[p->best].row, s);
    guess_with(engine, s->rows[s->best].row, p);
}

/* Score all pairs: the bounds do not cover offline nodes, which count in other components. */
static void search_all(struct engine *engine) {
    struct pair_search *search = engine->pair_search;
    for (int64_t i = 0; i < search->p.count && !ended_after(engine, search->s.count); i++) {
        for (int64_t j = 0; j < search->s.count; j++) {
            int64_t primary = search->p.rows[i].row, secondary = search->s.rows[j].row;
            if (!pair_fits(engine, search->instance, primary, secondary)) continue;
            keep_better(search, (struct pair){primary, secondary, pair_score(engine, primary, secondary)});
        }
    }
}

bool pair_scores_are_undefined(const struct engine *engine) {
    return isnan(engine->pair_search->statistics.sums[RESERVED_TOTAL]);
}

/* If scores are NaN, choose the last primary with its first secondary (htools, AllocationSolution.hs). */
static void choose_undefined(struct engine *engine) {
    struct pair_search *search = engine->pair_search;
    for (int64_t i = search->p.count - 1; i >= 0; i--) {
        for (int64_t j = 0; j < search->s.count; j++) {
            int64_t primary = search->p.rows[i].row, secondary = search->s.rows[j].row;
            if (primary < search->best.primary || !pair_fits(engine, search->instance, primary, secondary)) continue;
            search->best = (struct pair){primary, secondary, NAN};
            return;
        }
    }
}

struct pair best_pair(struct engine *engine, const bool *wanted) {
    struct pair_search *search = engine->pair_search;
    struct side_rows *p = &search->p, *s = &search->s;
    search->best = (struct pair){NOWHERE, NOWHERE, 0.0};
    search->wanted = wanted;
    for (int64_t list = 0; list < engine->list_count && !failed(engine); list++) {
        p->count = s->count = 0;
        for (int64_t column = p->begin[list]; column < p->begin[list + 1]; column++) {
            int64_t row = p->row_of[column];
            if (row != NOWHERE && is_primary(engine, row)) p->rows[p->count++].row = row;
        }
        for (int64_t column = s->begin[list]; column < s->begin[list + 1]; column++) {
            int64_t row = s->row_of[column];
            if (row != NOWHERE && engine->outcomes->secondary_codes[row] == FITS) s->rows[s->count++].row = row;
        }
        if (p->count == 0 || s->count == 0) continue;
        if (pair_scores_are_undefined(engine)) {
            choose_undefined(engine);
            continue;
        }
        if (search->any_offline) {
            search_all(engine);
            continue;
        }
        bound_sides(engine, list);
        guess(engine);
        search_close(engine);
        search_specials(engine);
    }
    return search->best;
}
