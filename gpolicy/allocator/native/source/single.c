#include "single.h"

#include <math.h>
#include <string.h>

#include "node_changes.h"
#include "score.h"

/* The deviations that a new primary changes. Where there are no instances of the second book only, and all loads are
 * alike, the `TWINS` are the same numbers as the components at the same place of `ORIGINALS`. */
enum { CHANGED = 12, TWIN_COUNT = 7 };
static const int CHANGES[CHANGED] = {
    FREE_MEMORY, FREE_DISK,     CPU_RATIO,    CPU_LOAD,   MEMORY_LOAD, DISK_LOAD,
    NET_LOAD,    SPINDLE_RATIO, FORTH_MEMORY, FORTH_DISK, FORTH_CPU,   FORTH_SPINDLES,
};
static const int TWINS[TWIN_COUNT] = {
    FORTH_MEMORY, FORTH_DISK, FORTH_CPU, FORTH_SPINDLES, MEMORY_LOAD, DISK_LOAD, NET_LOAD,
};
static const int ORIGINALS[TWIN_COUNT] = {
    FREE_MEMORY, FREE_DISK, CPU_RATIO, SPINDLE_RATIO, CPU_LOAD, CPU_LOAD, CPU_LOAD,
};

/* What becomes of a candidate: its values with the instance, and its place among the online nodes. */
struct candidate { double after[COMPONENTS], exclusions; int64_t row, line; };

/* A search: the candidates, and the columns that have to be added up, `width` doubles for each of `lines` nodes. */
struct search {
    struct engine *engine;
    struct statistics statistics;
    struct candidate *candidates;
    int64_t count, lines;
    int width, columns[CHANGED], column_of[COMPONENTS];
    double *table, weights[CHANGED], greatest[CHANGED];
};

static bool twins(const double *values) {
    for (int pair = 0; pair < TWIN_COUNT; pair++) {
        if (values[TWINS[pair]] != values[ORIGINALS[pair]]) return false;
    }
    return true;
}

/* Choose the columns: one for each component that may change, and one for two components that are the same numbers. */
static void choose_columns(struct search *search, bool alike) {
    search->width = 0;
    for (int place = 0; place < COMPONENTS; place++) search->column_of[place] = NOWHERE;
    for (int change = 0; change < CHANGED; change++) {
        int component = CHANGES[change], original = component;
        for (int pair = 0; alike && pair < TWIN_COUNT; pair++) {
            if (TWINS[pair] == component) original = ORIGINALS[pair];
        }
        if (search->column_of[original] == NOWHERE) {
            search->weights[search->width] = 0.0;
            search->columns[search->width] = original;
            search->column_of[original] = search->width++;
        }
        search->column_of[component] = search->column_of[original];
        search->weights[search->column_of[component]] += WEIGHTS[component];
    }
}

static void prepare(struct search *search, struct engine *engine, int64_t scope, const struct instance *instance,
                    const int64_t *rows, int64_t count) {
    int64_t *line_of = scratch(engine, SINGLE_LINES, engine->node_count, sizeof *line_of);
    bool alike = true;
    search->engine = engine;
    search->count = count;
    search->lines = 0;
    take_statistics(engine, scope, &search->statistics);
    search->candidates = scratch(engine, SINGLE_AFTER, count, sizeof *search->candidates);
    for (int64_t row = 0; row < engine->node_count; row++) {
        const struct facts *facts = &engine->facts[row];
        if (facts->offline || (scope != EVERYWHERE && facts->group != scope)) continue;
        line_of[row] = search->lines++;
        alike = alike && twins(engine->nodes[row].values);
    }
    for (int64_t place = 0; place < count; place++) {
        struct candidate *candidate = &search->candidates[place];
        int64_t row = rows[place];
        struct node node = engine->nodes[row];
        with_primary(engine, row, instance, &node);
        memcpy(candidate->after, node.values, sizeof node.values);
        bool online = !engine->facts[row].offline;
        candidate->row = row;
        candidate->line = online ? line_of[row] : NOWHERE;
        candidate->exclusions = search->statistics.exclusions;
        if (online && instance->tag_count > 0) {
            candidate->exclusions += (double)exclusion_change(engine, row, instance, search->statistics.merged);
        }
        alike = alike && (!online || twins(candidate->after));
    }
    choose_columns(search, alike);
    int width = search->width;
    search->table = scratch(engine, SINGLE_TABLE, search->lines * width, sizeof(double));
    for (int column = 0; column < width; column++) search->greatest[column] = 0.0;
    double *line = search->table;
    for (int64_t row = 0; row < engine->node_count; row++) {
        const struct facts *facts = &engine->facts[row];
        if (facts->offline || (scope != EVERYWHERE && facts->group != scope)) continue;
        for (int column = 0; column < width; column++) {
            line[column] = engine->nodes[row].values[search->columns[column]];
            search->greatest[column] = greater(search->greatest[column], fabs(line[column]));
        }
        line += width;
    }
    for (int64_t place = 0; place < count; place++) {
        const struct candidate *candidate = &search->candidates[place];
        if (candidate->line == NOWHERE) continue;
        for (int column = 0; column < width; column++) {
            double value = fabs(candidate->after[search->columns[column]]);
            search->greatest[column] = greater(search->greatest[column], value);
        }
    }
}

/* Add up the twenty components, given the roots of the variances of the columns. */
static double total(const struct search *search, const struct candidate *candidate, const double *roots) {
    const struct statistics *statistics = &search->statistics;
    const double *before = search->engine->nodes[candidate->row].values;
    bool online = candidate->line != NOWHERE;
    double score = 0.0;
    for (int place = 0; place < COMPONENTS; place++) {
        double value = statistics->sums[place];
        int column = search->column_of[place];
        switch (AGGREGATES[place]) {
            case DEVIATION:
                value = online && column != NOWHERE ? roots[column] : sqrt(statistics->variances[place]);
                break;
            case SUM:
                /* whole numbers, so no order matters, save for the last one, which a primary does not change */
                if (online && place != RESERVED_TOTAL) value += candidate->after[place] - before[place];
                break;
            case OFFLINE_SUM:
                if (!online) value += candidate->after[place] - before[place];
                break;
            case TAG_MAP:
                value = candidate->exclusions;
                break;
        }
        score += WEIGHTS[place] * value;
    }
    return score;
}

static double exact(const struct search *search, const struct candidate *candidate) {
    int width = search->width;
    double sums[CHANGED] = {0.0}, squares[CHANGED] = {0.0}, own[CHANGED];
    if (search->lines == 0) return 0.0; /* no node is online: there are no components */
    if (candidate->line == NOWHERE) return total(search, candidate, squares);
    for (int column = 0; column < width; column++) own[column] = candidate->after[search->columns[column]];
    for (int64_t number = 0; number < search->lines; number++) {
        const double *line = number == candidate->line ? own : &search->table[number * width];
        for (int column = 0; column < width; column++) sums[column] += line[column];
    }
    for (int column = 0; column < width; column++) sums[column] /= search->statistics.count;
    for (int64_t number = 0; number < search->lines; number++) {
        const double *line = number == candidate->line ? own : &search->table[number * width];
        for (int column = 0; column < width; column++) {
            double difference = line[column] - sums[column];
            squares[column] += difference * difference;
        }
    }
    for (int column = 0; column < width; column++) squares[column] = sqrt(squares[column] / search->statistics.count);
    return total(search, candidate, squares);
}

/* Estimate the score by replacing one value in the existing statistics; `error` is how far off it may be. */
static double estimate(const struct search *search, const struct candidate *candidate, double *error) {
    const struct statistics *statistics = &search->statistics;
    const double *before = search->engine->nodes[candidate->row].values;
    double roots[CHANGED], off = 0.0;
    for (int column = 0; column < search->width && candidate->line != NOWHERE; column++) {
        int place = search->columns[column];
        struct deviation old = {statistics->sums[place], statistics->variances[place]};
        double root = sqrt(replaced(statistics->count, old, before[place], candidate->after[place]).variance);
        /* both ways round sums of as many numbers as there are nodes; a root may magnify that near 0 */
        double greatest = search->greatest[column];
        double rounding = 4.0 * (statistics->count + 64.0) * 0x1p-52 * greatest * greatest;
        double most_off = sqrt(rounding);
        off += search->weights[column] * (root > most_off ? rounding / root : most_off);
        roots[column] = root;
    }
    double score = total(search, candidate, roots);
    *error = off + 1e-12 * (1.0 + fabs(score));
    return score;
}

struct choice best_single(struct engine *engine, int64_t scope, const struct instance *instance, const int64_t *rows,
                          int64_t count) {
    struct search search;
    struct choice best = {NOWHERE, 0.0};
    prepare(&search, engine, scope, instance, rows, count);
    double *lowest = scratch(engine, SINGLE_KEEP, count, sizeof *lowest), limit = INFINITY;
    for (int64_t place = 0; place < count; place++) {
        double error = 0.0, score = search.lines > 0 ? estimate(&search, &search.candidates[place], &error) : 0.0;
        lowest[place] = score - error;
        limit = lesser(limit, score + error);
    }
    for (int64_t place = 0; place < count; place++) {
        if (lowest[place] > limit) continue;
        double score = exact(&search, &search.candidates[place]);
        if (best.row == NOWHERE || score <= best.score) best = (struct choice){rows[place], score};
    }
    return best;
}

void all_singles(struct engine *engine, const struct instance *instance, const int64_t *rows, int64_t count,
                 double *scores) {
    struct search search;
    prepare(&search, engine, EVERYWHERE, instance, rows, count);
    for (int64_t place = 0; place < count; place++) {
        scores[place] = exact(&search, &search.candidates[place]);
        if (place % 64 == 0) look_at_stop(engine);
    }
}
