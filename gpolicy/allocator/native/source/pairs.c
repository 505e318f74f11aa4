#include "pairs.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "node_changes.h"

enum { FEW_PAIRS = 64 }; /* so few are simply all computed */

static const int SHARED_COMPONENTS[SHARED] = {FREE_DISK, DISK_LOAD, SPINDLE_RATIO, FORTH_DISK, FORTH_SPINDLES};
enum { ALONE = 7 };
static const int ALONE_COMPONENTS[ALONE] = {FREE_MEMORY, CPU_RATIO,    CPU_LOAD, MEMORY_LOAD,
                                            NET_LOAD,    FORTH_MEMORY, FORTH_CPU};

/* The part of a variance's change that is this node's own. */
static double own_part(double count, double sum, double x, double y) {
    double change = y - x, square_change = (y - x) * (y + x);
    return (count * square_change - 2.0 * sum * change - change * change) / (count * count);
}

static void prepare_primary(const struct pair_search *search, int64_t row) {
    struct engine *engine = search->engine;
    const struct statistics *statistics = &search->statistics;
    const struct facts *facts = &engine->facts[row];
    struct primary_side *side = &search->primaries[row];
    const double *old = engine->nodes[row].values;
    struct node node = engine->nodes[row];
    with_primary(engine, row, search->instance, &node);
    const double *new = node.values;
    memset(side, 0, sizeof *side);
    memcpy(side->terms, search->terms, sizeof side->terms);
    for (int place = 0; place < SHARED; place++) {
        int component = SHARED_COMPONENTS[place];
        side->shared[place] = (struct deviation){statistics->sums[component], statistics->variances[component]};
    }
    side->n1_count = statistics->sums[N1_COUNT];
    side->offline_all = statistics->sums[OFFLINE_ALL];
    side->location = statistics->sums[LOCATION];
    side->location_class = (double)facts->location_class;
    side->terms[LOCATION_EXCLUSION] = WEIGHTS[LOCATION_EXCLUSION] * statistics->exclusions;
    if (facts->offline) {
        side->offline_all += new[OFFLINE_ALL] - old[OFFLINE_ALL];
        double primaries = statistics->sums[OFFLINE_PRIMARIES] + (new[OFFLINE_PRIMARIES] - old[OFFLINE_PRIMARIES]);
        side->terms[OFFLINE_PRIMARIES] = WEIGHTS[OFFLINE_PRIMARIES] * primaries;
        return;
    }
    for (int place = 0; place < ALONE; place++) {
        int component = ALONE_COMPONENTS[place];
        struct deviation before = {statistics->sums[component], statistics->variances[component]};
        struct deviation after = replaced(statistics->count, before, old[component], new[component]);
        side->terms[component] = WEIGHTS[component] * sqrt(after.variance);
    }
    for (int place = 0; place < SHARED; place++) {
        int component = SHARED_COMPONENTS[place];
        double x = old[component], y = new[component];
        side->shared[place] = replaced(statistics->count, side->shared[place], x, y);
        side->changes[place] = y - x;
        side->sizes[place] = y * y + x * x;
        side->parts[place] = own_part(statistics->count, statistics->sums[component], x, y);
    }
    side->n1_count += new[N1_COUNT] - old[N1_COUNT];
    double tags = statistics->sums[PRIMARY_TAGS] + (new[PRIMARY_TAGS] - old[PRIMARY_TAGS]);
    side->terms[PRIMARY_TAGS] = WEIGHTS[PRIMARY_TAGS] * tags;
    side->location += new[LOCATION] - old[LOCATION];
    if (search->instance->tag_count > 0) {
        double change = (double)exclusion_change(engine, row, search->instance, statistics->merged);
        side->terms[LOCATION_EXCLUSION] = WEIGHTS[LOCATION_EXCLUSION] * (statistics->exclusions + change);
    }
}

/* Fill in the side of a secondary that keeps `peer` MiB for the primary already. */
static void prepare_secondary(const struct pair_search *search, int64_t row, int64_t peer,
                              struct secondary_side *side) {
    const struct engine *engine = search->engine;
    const struct statistics *statistics = &search->statistics;
    const double *old = engine->nodes[row].values;
    struct node node = engine->nodes[row];
    with_secondary(engine, row, search->instance, peer, &node);
    memset(side, 0, sizeof *side);
    side->location_class = (double)engine->facts[row].location_class;
    side->reserved = node.reserved;
    if (engine->facts[row].offline) {
        side->offline = 1.0;
        side->offline_change = node.values[OFFLINE_ALL] - old[OFFLINE_ALL];
        return;
    }
    for (int place = 0; place < SHARED; place++) {
        int component = SHARED_COMPONENTS[place];
        double x = old[component], y = node.values[component];
        side->old[place] = x;
        side->after[place] = y;
        side->changes[place] = y - x;
        side->sizes[place] = y * y + x * x;
        side->parts[place] = own_part(statistics->count, statistics->sums[component], x, y);
    }
    side->n1_change = node.values[N1_COUNT] - old[N1_COUNT];
    side->reserved_old = old[RESERVED];
    side->reserved_after = node.values[RESERVED];
}

void prepare_pairs(struct engine *engine, const struct instance *instance, const int8_t *primary_codes,
                   const int8_t *secondary_codes, struct pair_search *search) {
    *search = (struct pair_search){.engine = engine, .instance = instance, .primary_codes = primary_codes,
                                   .secondary_codes = secondary_codes};
    const struct statistics *statistics = &search->statistics;
    take_statistics(engine, EVERYWHERE, &search->statistics);
    for (int place = 0; place < COMPONENTS; place++) {
        double value = AGGREGATES[place] == DEVIATION ? sqrt(statistics->variances[place]) : statistics->sums[place];
        search->terms[place] = WEIGHTS[place] * value;
    }
    search->primaries = scratch(engine, PAIR_PRIMARY, engine->node_count, sizeof *search->primaries);
    search->secondaries = scratch(engine, PAIR_SECONDARY, engine->node_count, sizeof *search->secondaries);
    for (int64_t row = 0; row < engine->node_count; row++) {
        if (primary_codes[row] == FITS) prepare_primary(search, row);
        if (secondary_codes[row] == FITS) prepare_secondary(search, row, 0, &search->secondaries[row]);
    }
}

bool special_pair(const struct pair_search *search, int64_t secondary, int64_t peer) {
    int64_t kept = memory_kept(search->instance);
    return peer > 0 && peer + kept > most(search->engine->nodes[secondary].reserved, kept);
}

static double common_locations_of(const struct engine *engine, const struct primary_side *p,
                                  const struct secondary_side *s) {
    int64_t row = (int64_t)p->location_class, column = (int64_t)s->location_class;
    return (double)engine->common_locations[row * engine->location_classes + column];
}

/* The twenty components, added up in their order. */
static double sum_up(const struct pair_search *search, const struct primary_side *p, const struct secondary_side *s) {
    const struct statistics *statistics = &search->statistics;
    double count = statistics->count, shared[SHARED], score = 0.0;
    if (count == 0.0) return 0.0; /* no node is online: there are no components */
    struct deviation reserved = {statistics->sums[RESERVED], statistics->variances[RESERVED]};
    double offline_all = p->offline_all, n1_count = p->n1_count, reserved_total = statistics->sums[RESERVED_TOTAL];
    bool online = s->offline == 0.0;
    for (int place = 0; place < SHARED; place++) {
        struct deviation after = p->shared[place];
        if (online) after = replaced(count, after, s->old[place], s->after[place]);
        shared[place] = WEIGHTS[SHARED_COMPONENTS[place]] * sqrt(after.variance);
    }
    if (online) {
        reserved = replaced(count, reserved, s->reserved_old, s->reserved_after);
        n1_count += s->n1_change;
        reserved_total += s->reserved_after - s->reserved_old;
    } else {
        offline_all += s->offline_change;
    }
    score += p->terms[FREE_MEMORY];
    score += shared[0];
    score += WEIGHTS[N1_COUNT] * n1_count;
    score += WEIGHTS[RESERVED] * sqrt(reserved.variance);
    score += WEIGHTS[OFFLINE_ALL] * offline_all;
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
    score += WEIGHTS[LOCATION] * (p->location + common_locations_of(search->engine, p, s));
    score += p->terms[LOCATION_EXCLUSION];
    score += WEIGHTS[RESERVED_TOTAL] * reserved_total;
    return score;
}

double pair_score(const struct pair_search *search, int64_t primary, int64_t secondary) {
    const struct primary_side *p = &search->primaries[primary];
    int64_t peer = peer_memory(search->engine, secondary, primary);
    if (!special_pair(search, secondary, peer)) return sum_up(search, p, &search->secondaries[secondary]);
    struct secondary_side own;
    prepare_secondary(search, secondary, peer, &own);
    return sum_up(search, p, &own);
}

static void keep_better(struct pair *best, struct pair other) {
    if (best->primary == NOWHERE || other.score < best->score) {
        *best = other;
    } else if (other.score == best->score) {
        if (other.primary > best->primary ||
            (other.primary == best->primary && other.secondary > best->secondary)) {
            *best = other;
        }
    }
}

/* The candidates of one list that fit. `classes` are rows of equal nodes: their members follow one another from the
 * last to the first in `next`. */
struct side_rows { int64_t *rows, count, *classes, class_count, *next; };

/* Bound the components that both nodes change by chords of the square roots, and add up the bounds of each side.
 * Return by how much rounding may falsify a bound. */
static double bound(struct pair_search *search, const struct side_rows *p, const struct side_rows *s) {
    const struct statistics *statistics = &search->statistics;
    double count = statistics->count, square = count * count;
    double greatest_p = 0.0, greatest_s = 0.0;
    search->cross = 2.0 / square;
    for (int64_t place = 0; place < p->count; place++) {
        struct primary_side *side = &search->primaries[p->rows[place]];
        side->low = WEIGHTS[N1_COUNT] * side->n1_count + WEIGHTS[OFFLINE_ALL] * side->offline_all +
                    side->terms[OFFLINE_PRIMARIES] + side->terms[PRIMARY_TAGS] + WEIGHTS[LOCATION] * side->location +
                    side->terms[LOCATION_EXCLUSION];
        for (int alone = 0; alone < ALONE; alone++) side->low += side->terms[ALONE_COMPONENTS[alone]];
        side->alone = side->low;
    }
    for (int64_t place = 0; place < s->count; place++) search->secondaries[s->rows[place]].rest = 0.0;
    for (int shared = 0; shared < SHARED; shared++) {
        int component = SHARED_COMPONENTS[shared];
        double least_p = INFINITY, most_p = -INFINITY, low_p = INFINITY, high_p = -INFINITY, size_p = 0.0;
        double least_s = INFINITY, most_s = -INFINITY, low_s = INFINITY, high_s = -INFINITY, size_s = 0.0;
        for (int64_t place = 0; place < p->count; place++) {
            const struct primary_side *side = &search->primaries[p->rows[place]];
            least_p = lesser(least_p, side->parts[shared]), most_p = greater(most_p, side->parts[shared]);
            low_p = lesser(low_p, side->changes[shared]), high_p = greater(high_p, side->changes[shared]);
            size_p = greater(size_p, side->sizes[shared]);
        }
        for (int64_t place = 0; place < s->count; place++) {
            const struct secondary_side *side = &search->secondaries[s->rows[place]];
            least_s = lesser(least_s, side->parts[shared]), most_s = greater(most_s, side->parts[shared]);
            low_s = lesser(low_s, side->changes[shared]), high_s = greater(high_s, side->changes[shared]);
            size_s = greater(size_s, side->sizes[shared]);
        }
        /* the greatest product of two changes bounds the cross term */
        double product = greater(greater(low_p * low_s, high_p * high_s), greater(low_p * high_s, high_p * low_s));
        double reach = greater(fabs(low_p), fabs(high_p)) + greater(fabs(low_s), fabs(high_s));
        double sum = statistics->sums[component], variance = statistics->variances[component];
        /* what the squares of the values, not only their differences, add to the error */
        double rounding =
            variance + (count * (size_p + size_s) + 2.0 * fabs(sum) * reach + reach * reach) / square;
        search->bases[shared] = variance - 64.0 * 0x1p-52 * rounding;
        double base = search->bases[shared] - 2.0 * product / square;
        double from = base + least_p + least_s, to = base + most_p + most_s;
        /* where the argument may fall to 0, the square root's share is bounded by 0 */
        if (!(from > 0.0)) continue;
        double low = sqrt(from), slope = to > from ? (sqrt(to) - low) / (to - from) : 0.0;
        for (int64_t place = 0; place < p->count; place++) {
            struct primary_side *side = &search->primaries[p->rows[place]];
            side->low += WEIGHTS[component] * (low + slope * (side->parts[shared] - least_p));
        }
        for (int64_t place = 0; place < s->count; place++) {
            struct secondary_side *side = &search->secondaries[s->rows[place]];
            side->rest += WEIGHTS[component] * slope * (side->parts[shared] - least_s);
        }
    }
    for (int64_t place = 0; place < p->count; place++) {
        greatest_p = greater(greatest_p, fabs(search->primaries[p->rows[place]].low));
    }
    for (int64_t place = 0; place < s->count; place++) {
        struct secondary_side *side = &search->secondaries[s->rows[place]];
        struct deviation reserved = {statistics->sums[RESERVED], statistics->variances[RESERVED]};
        reserved = replaced(count, reserved, side->reserved_old, side->reserved_after);
        side->alone = WEIGHTS[RESERVED] * sqrt(reserved.variance) + WEIGHTS[N1_COUNT] * side->n1_change +
                      WEIGHTS[RESERVED_TOTAL] *
                          (statistics->sums[RESERVED_TOTAL] + (side->reserved_after - side->reserved_old));
        side->low = side->rest + side->alone;
        greatest_s = greater(greatest_s, fabs(side->low));
    }
    return 1e-10 * (1.0 + greatest_p + greatest_s);
}

/* Bound the score of one pair from below: closer than the sum of both bounds, and sooner done than the score. */
static double floor_of(const struct pair_search *search, const struct primary_side *p, const struct secondary_side *s) {
    double sum = p->alone + s->alone + WEIGHTS[LOCATION] * common_locations_of(search->engine, p, s);
    for (int shared = 0; shared < SHARED; shared++) {
        double variance = search->bases[shared] + (p->parts[shared] + s->parts[shared]) -
                          search->cross * (p->changes[shared] * s->changes[shared]);
        sum += WEIGHTS[SHARED_COMPONENTS[shared]] * sqrt(greater(variance, 0.0));
    }
    return sum;
}

static uint64_t hash_of(const void *bytes, size_t size) {
    uint64_t hash = 0x9e3779b97f4a7c15u, word;
    const unsigned char *from = bytes;
    for (size_t place = 0; place < size; place += sizeof word) {
        memcpy(&word, from + place, sizeof word);
        hash = (hash ^ word) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
    }
    return hash;
}

/* Put rows together whose first `size` bytes of `sides` (one per row) are the same. */
static void classify(struct engine *engine, struct side_rows *side, const char *sides, size_t stride, size_t size) {
    int64_t slots = 16;
    while (slots < 2 * side->count) slots *= 2;
    int64_t *table = scratch(engine, PAIR_HASHES, slots, sizeof *table);
    for (int64_t slot = 0; slot < slots; slot++) table[slot] = NOWHERE;
    side->class_count = 0;
    for (int64_t place = 0; place < side->count; place++) {
        int64_t row = side->rows[place];
        const char *key = sides + (size_t)row * stride;
        int64_t slot = (int64_t)(hash_of(key, size) & (uint64_t)(slots - 1));
        while (table[slot] != NOWHERE && memcmp(sides + (size_t)side->classes[table[slot]] * stride, key, size) != 0) {
            slot = (slot + 1) & (slots - 1);
        }
        if (table[slot] == NOWHERE) {
            table[slot] = side->class_count++;
            side->next[row] = NOWHERE;
        } else {
            side->next[row] = side->classes[table[slot]];
        }
        side->classes[table[slot]] = row; /* the last one so far */
    }
}

struct ranked { double low; int64_t row; };

/* Bring the class with the least bound to the front. Most often that is enough of an order: the first score is close to
 * the best, and nearly all bounds are above it. */
static void least_first(struct ranked *classes, int64_t count) {
    int64_t first = 0;
    for (int64_t place = 1; place < count; place++) {
        if (classes[place].low < classes[first].low) first = place;
    }
    struct ranked other = classes[0];
    classes[0] = classes[first];
    classes[first] = other;
}

/* Find the latest two members of two classes that make an ordinary pair. */
static bool latest_members(const struct pair_search *search, const struct side_rows *p, int64_t last_p,
                           const struct side_rows *s, int64_t last_s, struct pair *pair) {
    for (int64_t primary = last_p; primary != NOWHERE; primary = p->next[primary]) {
        for (int64_t secondary = last_s; secondary != NOWHERE; secondary = s->next[secondary]) {
            if (primary == secondary) continue;
            int64_t peer = peer_memory(search->engine, secondary, primary);
            if (special_pair(search, secondary, peer)) continue;
            pair->primary = primary;
            pair->secondary = secondary;
            return true;
        }
    }
    return false;
}

/* Compute the pairs of classes of nodes whose bound is not above the best score. */
static void search_classes(const struct pair_search *search, struct side_rows *p, struct side_rows *s,
                           double margin, struct pair *best) {
    struct engine *engine = search->engine;
    classify(engine, p, (const char *)search->primaries, sizeof *search->primaries,
             offsetof(struct primary_side, low));
    classify(engine, s, (const char *)search->secondaries, sizeof *search->secondaries,
             offsetof(struct secondary_side, low));
    struct ranked *order = scratch(engine, PAIR_ORDER, p->class_count + s->class_count, sizeof *order);
    struct ranked *order_s = order + p->class_count;
    for (int64_t place = 0; place < p->class_count; place++) {
        order[place] = (struct ranked){search->primaries[p->classes[place]].low, p->classes[place]};
    }
    for (int64_t place = 0; place < s->class_count; place++) {
        order_s[place] = (struct ranked){search->secondaries[s->classes[place]].low, s->classes[place]};
    }
    least_first(order, p->class_count);
    least_first(order_s, s->class_count);
    for (int64_t i = 0; i < p->class_count; i++) {
        const struct primary_side *side = &search->primaries[order[i].row];
        look_at_stop(engine);
        if (best->primary != NOWHERE && order[i].low + order_s[0].low > best->score + margin) continue;
        for (int64_t j = 0; j < s->class_count; j++) {
            if (best->primary != NOWHERE && order[i].low + order_s[j].low > best->score + margin) continue;
            const struct secondary_side *other = &search->secondaries[order_s[j].row];
            if (best->primary != NOWHERE && floor_of(search, side, other) > best->score + margin) continue;
            struct pair pair = {NOWHERE, NOWHERE, sum_up(search, side, other)};
            if (best->primary != NOWHERE && pair.score > best->score) continue;
            if (latest_members(search, p, order[i].row, s, order_s[j].row, &pair)) keep_better(best, pair);
        }
    }
}

/* Compute the pairs whose secondary keeps memory for the primary already, as far as their bounds ask for it. */
static void search_special(const struct pair_search *search, const struct side_rows *s, const bool *is_primary,
                           double margin, struct pair *best) {
    const struct engine *engine = search->engine;
    const struct statistics *statistics = &search->statistics;
    for (int64_t place = 0; place < s->count; place++) {
        int64_t secondary = s->rows[place];
        const struct shares *peers = &engine->peers[secondary];
        for (int64_t share = 0; share < peers->count; share++) {
            int64_t primary = peers->items[share].node, peer = peers->items[share].memory;
            if (primary == NOWHERE || primary == secondary || !is_primary[primary]) continue;
            if (!special_pair(search, secondary, peer)) continue;
            if (secondary_reason(engine, secondary, search->instance, peer, false, false) != FITS) continue;
            struct secondary_side own;
            prepare_secondary(search, secondary, peer, &own);
            if (best->primary != NOWHERE && margin > 0.0) {
                struct deviation reserved = {statistics->sums[RESERVED], statistics->variances[RESERVED]};
                reserved = replaced(statistics->count, reserved, own.reserved_old, own.reserved_after);
                double total = statistics->sums[RESERVED_TOTAL] + (own.reserved_after - own.reserved_old);
                double low = search->primaries[primary].low + search->secondaries[secondary].rest +
                             WEIGHTS[RESERVED] * sqrt(reserved.variance) + WEIGHTS[N1_COUNT] * own.n1_change +
                             WEIGHTS[RESERVED_TOTAL] * total;
                if (low > best->score + 2.0 * margin) continue;
            }
            keep_better(best, (struct pair){primary, secondary, sum_up(search, &search->primaries[primary], &own)});
        }
    }
}

/* Compute all ordinary pairs. */
static void search_all(const struct pair_search *search, const struct side_rows *p, const struct side_rows *s,
                       struct pair *best) {
    for (int64_t i = 0; i < p->count; i++) {
        look_at_stop(search->engine);
        for (int64_t j = 0; j < s->count; j++) {
            int64_t primary = p->rows[i], secondary = s->rows[j];
            int64_t peer = peer_memory(search->engine, secondary, primary);
            if (primary == secondary || special_pair(search, secondary, peer)) continue;
            double score = sum_up(search, &search->primaries[primary], &search->secondaries[secondary]);
            keep_better(best, (struct pair){primary, secondary, score});
        }
    }
}

struct pair best_pair(struct pair_search *search, const bool *wanted) {
    struct engine *engine = search->engine;
    int64_t nodes = engine->node_count;
    int64_t *rows = scratch(engine, PAIR_ROWS, 6 * nodes, sizeof *rows);
    bool *is_primary = scratch(engine, PAIR_MEMBERS, nodes, sizeof *is_primary);
    struct pair best = {NOWHERE, NOWHERE, 0.0};
    for (int64_t list = 0; list < engine->list_count; list++) {
        struct side_rows p = {rows, 0, rows + nodes, 0, rows + 2 * nodes};
        struct side_rows s = {rows + 3 * nodes, 0, rows + 4 * nodes, 0, rows + 5 * nodes};
        bool offline = false;
        for (int64_t row = 0; row < nodes; row++) {
            is_primary[row] = engine->list_of_primary[row] == list && search->primary_codes[row] == FITS &&
                              (wanted == NULL || wanted[row]);
            bool secondary = engine->list_of_secondary[row] == list && search->secondary_codes[row] == FITS;
            if (is_primary[row]) p.rows[p.count++] = row;
            if (secondary) s.rows[s.count++] = row;
            offline = offline || (engine->facts[row].offline && (is_primary[row] || secondary));
        }
        if (p.count == 0 || s.count == 0) continue;
        double margin = 0.0;
        if (offline || p.count * s.count <= FEW_PAIRS) {
            search_all(search, &p, &s, &best);
        } else {
            margin = bound(search, &p, &s);
            search_classes(search, &p, &s, margin, &best);
        }
        search_special(search, &s, is_primary, margin, &best);
    }
    return best;
}
