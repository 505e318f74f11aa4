#include "whole_score.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "node_changes.h"
#include "statistics.h"

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
struct whole_search {
    const struct engine *engine;
    struct statistics statistics;
    struct buffer candidates, table, lowest;
    int64_t *line_of; /* per row */
    int64_t count, lines;
    int width, columns[CHANGED], column_of[COMPONENTS];
    double weights[CHANGED], greatest[CHANGED];
};

bool open_whole_search(struct engine *engine) {
    struct whole_search *search = engine->whole_search = zeroed(engine, 1, sizeof *search);
    if (search == NULL) return false;
    search->engine = engine;
    search->line_of = zeroed(engine, engine->node_count, sizeof *search->line_of);
    return search->line_of != NULL;
}

void close_whole_search(struct engine *engine) {
    struct whole_search *search = engine->whole_search;
    if (search == NULL) return;
    free(search->candidates.items);
    free(search->table.items);
    free(search->lowest.items);
    free(search->line_of);
    free(search);
}

/* Add up the twenty components. */
static double sum_of(const struct statistics *statistics) {
    double score = 0.0;
    if (statistics->count == 0.0) return 0.0; /* no node is online: there are no components */
    for (int place = 0; place < COMPONENTS; place++) {
        double value = statistics->sums[place];
        if (AGGREGATES[place] == DEVIATION) value = sqrt(statistics->variances[place]);
        if (AGGREGATES[place] == TAG_MAP) value = statistics->exclusions;
        score += WEIGHTS[place] * value;
    }
    return score;
}

double whole_score(struct engine *engine, int64_t scope) {
    struct statistics statistics;
    take_statistics(engine, scope, &statistics);
    return sum_of(&statistics);
}

void take_baseline(struct engine *engine, int64_t scope, struct baseline *baseline) {
    *baseline = (struct baseline){.scope = scope};
    take_statistics(engine, scope, &baseline->statistics);
    for (int64_t row = 0; row < engine->node_count; row++) {
        if (engine->facts[row].offline || !in_scope(engine, scope, row)) continue;
        for (int place = 0; place < COMPONENTS; place++) {
            baseline->greatest[place] = greater(baseline->greatest[place], fabs(engine->nodes[row].values[place]));
        }
    }
}

/* Replace the values of one node in the statistics. */
static void replace_values(struct statistics *statistics, bool offline, const double *before, const double *after,
                           double *greatest) {
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
        greatest[place] = greater(greatest[place], fabs(after[place]));
    }
}

/* By how much two ways of computing a variance may differ: both round sums of as many numbers as there are nodes. The
 * root may magnify that near 0. */
static double root_error(double count, double greatest, double root) {
    double rounding = 4.0 * (count + 64.0) * 0x1p-52 * greatest * greatest, most_off = sqrt(rounding);
    return root > most_off ? rounding / root : most_off;
}

double estimate_score(const struct engine *engine, const struct baseline *baseline, struct mark before, double *error) {
    const struct journal *journal = &engine->journal;
    struct statistics statistics = baseline->statistics;
    double greatest[COMPONENTS], off = 0.0;
    memcpy(greatest, baseline->greatest, sizeof greatest);
    *error = INFINITY; /* exclusions are only counted exactly */
    if (engine->location_count * engine->tag_count > 0 || statistics.count == 0.0) return 0.0;
    for (int64_t place = before.nodes; place < journal->top.nodes; place++) {
        const struct saved_node *saved = &journal->nodes[place];
        bool first = in_scope(engine, baseline->scope, saved->row);
        for (int64_t other = before.nodes; other < place && first; other++) {
            first = journal->nodes[other].row != saved->row;
        }
        if (!first) continue;
        replace_values(&statistics, engine->facts[saved->row].offline, saved->node.values,
                       engine->nodes[saved->row].values, greatest);
    }
    for (int place = 0; place < COMPONENTS; place++) {
        if (AGGREGATES[place] != DEVIATION) continue;
        /* a few nodes are replaced, each of which rounds once more */
        off += WEIGHTS[place] * 4.0 * root_error(statistics.count, greatest[place], sqrt(statistics.variances[place]));
    }
    double score = sum_of(&statistics);
    *error = off + 1e-12 * (1.0 + fabs(score));
    return score;
}

bool score_is_undefined(const struct engine *engine, int64_t scope) {
    for (int64_t row = 0; row < engine->node_count; row++) {
        const struct facts *facts = &engine->facts[row];
        bool divided_by_0 = facts->total_memory == 0.0 || facts->total_cpus == 0.0 || facts->cpu_speed == 0.0 ||
                            facts->high_spindles == 0.0;
        if (divided_by_0 && !facts->offline && in_scope(engine, scope, row)) return true;
    }
    return false;
}

static bool twins(const double *values) {
    for (int pair = 0; pair < TWIN_COUNT; pair++) {
        if (values[TWINS[pair]] != values[ORIGINALS[pair]]) return false;
    }
    return true;
}

/* Choose the columns: one for each component that may change, and one for two components that are the same numbers. */
static void choose_columns(struct whole_search *search, bool alike) {
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

/* Fill in the candidates and what becomes of them; return whether twins are the same numbers everywhere. */
static bool list_candidates(struct engine *engine, const struct instance *instance, const int64_t *rows) {
    struct whole_search *search = engine->whole_search;
    struct candidate *candidates = search->candidates.items;
    bool alike = true;
    for (int64_t place = 0; place < search->count; place++) {
        struct candidate *candidate = &candidates[place];
        int64_t row = rows[place];
        struct node node = engine->nodes[row];
        with_primary(engine, row, instance, &node);
        memcpy(candidate->after, node.values, sizeof node.values);
        bool online = !engine->facts[row].offline;
        candidate->row = row;
        candidate->line = online ? search->line_of[row] : NOWHERE;
        candidate->exclusions = search->statistics.exclusions;
        if (online && instance->tag_count > 0) {
            candidate->exclusions += (double)exclusion_change(engine, row, instance, search->statistics.merged);
        }
        alike = alike && (!online || twins(candidate->after));
    }
    return alike;
}

/* Write the columns of all online nodes into the table, and find the greatest number of each. */
static void fill_table(struct engine *engine, int64_t scope) {
    struct whole_search *search = engine->whole_search;
    const struct candidate *candidates = search->candidates.items;
    double *line = search->table.items;
    int width = search->width;
    for (int column = 0; column < width; column++) search->greatest[column] = 0.0;
    for (int64_t row = 0; row < engine->node_count; row++) {
        if (engine->facts[row].offline || !in_scope(engine, scope, row)) continue;
        for (int column = 0; column < width; column++) {
            line[column] = engine->nodes[row].values[search->columns[column]];
            search->greatest[column] = greater(search->greatest[column], fabs(line[column]));
        }
        line += width;
    }
    for (int64_t place = 0; place < search->count; place++) {
        if (candidates[place].line == NOWHERE) continue;
        for (int column = 0; column < width; column++) {
            double value = fabs(candidates[place].after[search->columns[column]]);
            search->greatest[column] = greater(search->greatest[column], value);
        }
    }
}

static bool prepare(struct engine *engine, int64_t scope, const struct instance *instance, const int64_t *rows,
                    int64_t count) {
    struct whole_search *search = engine->whole_search;
    bool alike = true;
    search->count = count;
    search->lines = 0;
    take_statistics(engine, scope, &search->statistics);
    if (reserve(engine, &search->candidates, count, sizeof(struct candidate)) == NULL) return false;
    for (int64_t row = 0; row < engine->node_count; row++) {
        if (engine->facts[row].offline || !in_scope(engine, scope, row)) continue;
        search->line_of[row] = search->lines++;
        alike = alike && twins(engine->nodes[row].values);
    }
    alike = list_candidates(engine, instance, rows) && alike;
    choose_columns(search, alike);
    if (reserve(engine, &search->table, search->lines * search->width, sizeof(double)) == NULL) return false;
    fill_table(engine, scope);
    return !failed(engine);
}

/* Add up the twenty components, given the roots of the variances of the columns. */
static double total(const struct whole_search *search, const struct candidate *candidate, const double *roots) {
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

static double exact(const struct whole_search *search, const struct candidate *candidate) {
    int width = search->width;
    double sums[CHANGED] = {0.0}, squares[CHANGED] = {0.0}, own[CHANGED];
    const double *table = search->table.items;
    if (search->lines == 0) return 0.0; /* no node is online: there are no components */
    if (candidate->line == NOWHERE) return total(search, candidate, squares);
    for (int column = 0; column < width; column++) own[column] = candidate->after[search->columns[column]];
    for (int64_t number = 0; number < search->lines; number++) {
        const double *line = number == candidate->line ? own : &table[number * width];
        for (int column = 0; column < width; column++) sums[column] += line[column];
    }
    for (int column = 0; column < width; column++) sums[column] /= search->statistics.count;
    for (int64_t number = 0; number < search->lines; number++) {
        const double *line = number == candidate->line ? own : &table[number * width];
        for (int column = 0; column < width; column++) {
            double difference = line[column] - sums[column];
            squares[column] += difference * difference;
        }
    }
    for (int column = 0; column < width; column++) squares[column] = sqrt(squares[column] / search->statistics.count);
    return total(search, candidate, squares);
}

/* Estimate the score by replacing one value in the existing statistics; `error` is how far off it may be. */
static double estimate(const struct whole_search *search, const struct candidate *candidate, double *error) {
    const struct statistics *statistics = &search->statistics;
    const double *before = search->engine->nodes[candidate->row].values;
    double roots[CHANGED], off = 0.0;
    for (int column = 0; column < search->width && candidate->line != NOWHERE; column++) {
        int place = search->columns[column];
        struct deviation old = {statistics->sums[place], statistics->variances[place]};
        double root = sqrt(replaced(statistics->count, old, before[place], candidate->after[place]).variance);
        off += search->weights[column] * root_error(statistics->count, search->greatest[column], root);
        roots[column] = root;
    }
    double score = total(search, candidate, roots);
    *error = off + 1e-12 * (1.0 + fabs(score));
    return score;
}

struct choice best_single(struct engine *engine, int64_t scope, const struct instance *instance, const int64_t *rows,
                          int64_t count) {
    struct whole_search *search = engine->whole_search;
    struct choice best = {NOWHERE, 0.0};
    if (score_is_undefined(engine, scope)) return (struct choice){rows[0], NAN};
    double *lowest = reserve(engine, &search->lowest, count, sizeof *lowest), limit = INFINITY;
    if (lowest == NULL || !prepare(engine, scope, instance, rows, count)) return (struct choice){rows[0], 0.0};
    const struct candidate *candidates = search->candidates.items;
    for (int64_t place = 0; place < count; place++) {
        double error = 0.0, score = search->lines > 0 ? estimate(search, &candidates[place], &error) : 0.0;
        lowest[place] = score - error;
        limit = lesser(limit, score + error);
    }
    for (int64_t place = 0; place < count; place++) {
        if (lowest[place] > limit) continue;
        double score = exact(search, &candidates[place]);
        if (best.row == NOWHERE || score <= best.score) best = (struct choice){rows[place], score};
    }
    return best;
}

void all_singles(struct engine *engine, const struct instance *instance, const int64_t *rows, int64_t count,
                 double *scores) {
    bool undefined = score_is_undefined(engine, EVERYWHERE);
    if (!undefined && !prepare(engine, EVERYWHERE, instance, rows, count)) return;
    const struct candidate *candidates = engine->whole_search->candidates.items;
    for (int64_t place = 0; place < count && !ended(engine); place++) {
        scores[place] = undefined ? NAN : exact(engine->whole_search, &candidates[place]);
    }
}
