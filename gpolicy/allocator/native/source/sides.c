#include "sides.h"

#include <math.h>
#include <string.h>

#include "node_changes.h"

const int PRIMARY_COMPONENTS[OF_PRIMARY] = {
    FREE_DISK, DISK_LOAD, SPINDLE_RATIO, FORTH_DISK,  FORTH_SPINDLES, FREE_MEMORY,
    CPU_RATIO, CPU_LOAD,  MEMORY_LOAD,   NET_LOAD,    FORTH_MEMORY,   FORTH_CPU,
};

const int TWIN_OF[OF_PRIMARY] = {
    NOWHERE, NOWHERE, NOWHERE, 0, 2, NOWHERE, NOWHERE, NOWHERE, 7, 7, 5, 6,
};

struct sides *open_sides(struct engine *engine, bool compared) {
    struct sides *sides = zeroed(engine, 1, sizeof *sides);
    if (sides == NULL) return NULL;
    sides->compared = compared;
    sides->as_of = zeroed(engine, engine->node_count, sizeof *sides->as_of);
    sides->items = zeroed(engine, engine->node_count, sizeof *sides->items);
    return sides;
}

static bool same_tags(const struct instance *a, const struct instance *b) {
    if (a->tag_count != b->tag_count) return false;
    return a->tags == b->tags || memcmp(a->tags, b->tags, (size_t)a->tag_count * sizeof *a->tags) == 0;
}

bool same_change(const struct instance *a, const struct instance *b) {
    return a->memory == b->memory && a->disk == b->disk && a->vcpus == b->vcpus && a->spindle_use == b->spindle_use &&
           a->spindles == b->spindles && a->desired == b->desired && a->online == b->online && a->local == b->local &&
           a->location_score == b->location_score && a->uses_memory == b->uses_memory &&
           a->needs_secondary_memory == b->needs_secondary_memory && a->forthcoming == b->forthcoming &&
           same_tags(a, b) && memcmp(a->load, b->load, sizeof a->load) == 0;
}

bool begin_sides(const struct engine *engine, struct sides *sides, const struct instance *instance, double count) {
    bool other = !sides->known || sides->count != count || !same_change(&sides->demand, instance);
    if (other) {
        memset(sides->as_of, 0, (size_t)engine->node_count * sizeof *sides->as_of);
        memset(sides->greatest, 0, sizeof sides->greatest);
        memset(sides->widest, 0, sizeof sides->widest);
        memset(sides->differs, 0, sizeof sides->differs);
    }
    sides->demand = *instance;
    sides->count = count;
    sides->squared_count = count * count;
    sides->inverse_square = 1.0 / sides->squared_count;
    sides->known = true;
    return other;
}

void note_size(struct sides *sides, int component, double x, double y) {
    sides->greatest[component] = greater(sides->greatest[component], y * y + x * x);
    sides->widest[component] = greater(sides->widest[component], fabs(y - x));
}

void work_out_change(struct sides *sides, int component, double x, double y, double *own, double *slope) {
    double change = y - x;
    *own = (sides->count * ((y - x) * (y + x)) - change * change) * sides->inverse_square;
    *slope = 2.0 * change * sides->inverse_square;
    if (isfinite(*own) && isfinite(*slope)) {
        note_size(sides, component, x, y);
    } else {
        *own = *slope = 0.0; /* NaN makes the deviation NaN, which gets no bound */
    }
}

void note_twins(struct sides *sides, int components, const double *before, const double *after) {
    for (int place = 0; place < components; place++) {
        int twin = TWIN_OF[place];
        if (twin != NOWHERE && !(before[place] == before[twin] && after[place] == after[twin])) {
            sides->differs[place] = true;
        }
    }
}

struct distinct distinct_components(const struct sides *sides, const struct statistics *statistics) {
    struct distinct distinct = {0};
    int number_of[OF_PRIMARY];
    for (int place = 0; place < OF_PRIMARY; place++) {
        int component = PRIMARY_COMPONENTS[place], twin = TWIN_OF[place];
        if (twin != NOWHERE && !sides->differs[place]) {
            int other = PRIMARY_COMPONENTS[twin];
            if (statistics->sums[component] == statistics->sums[other] &&
                statistics->variances[component] == statistics->variances[other]) {
                distinct.weights[number_of[twin]] += statistics->weights[component];
                continue;
            }
        }
        number_of[place] = distinct.count++;
        distinct.places[number_of[place]] = place;
        distinct.weights[number_of[place]] = statistics->weights[component];
        if (place < SHARED) distinct.shared = distinct.count;
    }
    return distinct;
}

uint64_t hash_of(const void *words, size_t size) {
    uint64_t hash = 0x9e3779b97f4a7c15u, word;
    const unsigned char *from = words;
    for (size_t place = 0; place < size; place += sizeof word) {
        memcpy(&word, from + place, sizeof word);
        hash = (hash ^ word) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
    }
    return hash;
}

const struct primary_side *primary_side(const struct engine *engine, struct sides *sides, int64_t row) {
    struct primary_side *side = &sides->items[row];
    if (sides->as_of[row] > engine->changed[row]) return side;
    struct node node = engine->nodes[row];
    const double *old = engine->nodes[row].values, *new = node.values;
    with_primary(engine, row, &sides->demand, &node);
    memset(side, 0, sizeof *side);
    side->location_class = engine->facts[row].location_class;
    for (int place = 0; place < OF_PRIMARY; place++) {
        int component = PRIMARY_COMPONENTS[place];
        double x = side->before[place] = old[component], y = side->after[place] = new[component];
        work_out_change(sides, component, x, y, &side->own[place], &side->slope[place]);
    }
    note_twins(sides, OF_PRIMARY, side->before, side->after);
    side->n1_change = new[N1_COUNT] - old[N1_COUNT];
    side->tags_change = new[PRIMARY_TAGS] - old[PRIMARY_TAGS];
    side->location_change = new[LOCATION] - old[LOCATION];
    side->offline_all_change = new[OFFLINE_ALL] - old[OFFLINE_ALL];
    side->offline_primaries_change = new[OFFLINE_PRIMARIES] - old[OFFLINE_PRIMARIES];
    if (sides->compared) side->hash = hash_of(side, offsetof(struct primary_side, hash));
    sides->as_of[row] = engine->clock + 1;
    return side;
}

void move_reach(struct reach *reach, bool anew, double change) {
    double one = change * reach->slopes.low, other = change * reach->slopes.high;
    double rounding = 0x1p-50 * (fabs(reach->parts.low) + fabs(reach->parts.high) + fabs(one) + fabs(other));
    if (anew) {
        *reach = (struct reach){{INFINITY, -INFINITY}, {INFINITY, -INFINITY}};
    } else if (reach->parts.low <= reach->parts.high) {
        reach->parts.low -= greater(one, other) + rounding;
        reach->parts.high -= lesser(one, other) - rounding;
    }
}

double finite_sum(const struct statistics *statistics, int component) {
    return isfinite(statistics->sums[component]) ? statistics->sums[component] : 0.0;
}

double safe_variance(const struct sides *sides, const struct statistics *statistics, int component, double reach) {
    double variance = statistics->variances[component], sum = statistics->sums[component];
    double size = 2.0 * sides->greatest[component];
    /* the error depends on the squares of the values, not only on their differences */
    double rounding =
        variance + (statistics->count * size + 2.0 * fabs(sum) * reach + reach * reach) / sides->squared_count;
    return variance - 64.0 * 0x1p-52 * rounding;
}

double lay_chord(double base, double range, double *slope) {
    double low = base > 0.0 ? sqrt(base) : 0.0;
    *slope = base > 0.0 && range > 0.0 ? (sqrt(base + range) - low) / range : 0.0;
    return low;
}
