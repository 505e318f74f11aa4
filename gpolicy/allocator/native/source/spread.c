#include "spread.h"

#include <math.h>
#include <string.h>

const int SPREAD_COMPONENTS[SPREADS] = {
    FREE_MEMORY, FREE_DISK, RESERVED,      CPU_RATIO,    CPU_LOAD,   MEMORY_LOAD, DISK_LOAD,
    NET_LOAD,    SPINDLE_RATIO, FORTH_MEMORY, FORTH_DISK, FORTH_CPU,  FORTH_SPINDLES,
};
enum { OTHERS = 4, OFFLINES = 2 };
static const int OTHER_COMPONENTS[OTHERS] = {N1_COUNT, PRIMARY_TAGS, LOCATION, RESERVED_TOTAL};
static const int OFFLINE_COMPONENTS[OFFLINES] = {OFFLINE_ALL, OFFLINE_PRIMARIES};

static void add_node(struct spread *spread, const double *values) {
    for (int place = 0; place < SPREADS; place++) {
        double off = values[SPREAD_COMPONENTS[place]] - spread->means[place];
        spread->sums[place] += off;
        spread->squares[place] += off * off;
    }
}

void begin_spread(struct engine *engine, struct spread *spread) {
    struct statistics statistics;
    memset(spread, 0, sizeof *spread);
    add_up(engine, EVERYWHERE, NOWHERE, NULL, &statistics);
    double count = spread->count = statistics.count, means = 0.0;
    spread->all_weights = engine->weights;
    for (int place = 0; place < SPREADS; place++) {
        spread->means[place] = statistics.sums[SPREAD_COMPONENTS[place]] / count;
        spread->weights[place] = engine->weights[SPREAD_COMPONENTS[place]];
    }
    for (int64_t row = 0; row < engine->node_count; row++) {
        if (!engine->facts[row].offline) add_node(spread, engine->nodes[row].values);
    }
    for (int place = 0; place < SPREADS; place++) {
        double square = spread->weights[place] * spread->weights[place];
        spread->sizes += square * spread->squares[place];
        means += square * spread->means[place] * spread->means[place];
    }
    for (int place = 0; place < OTHERS + OFFLINES; place++) {
        int component = place < OTHERS ? OTHER_COMPONENTS[place] : OFFLINE_COMPONENTS[place - OTHERS];
        double value = engine->weights[component] * statistics.sums[component];
        spread->others += value;
        spread->other_sizes += fabs(value);
    }
    /* the mean itself is rounded, and its error counts squared */
    double unit = (count + 64.0) * 0x1p-52;
    spread->rounding = 16.0 * SPREADS * unit / count;
    spread->least = 16.0 * SPREADS * unit * unit * means;
}

void add_change(const struct engine *engine, const struct spread *spread, int64_t row, const struct node *before,
                const struct node *after, struct change *change) {
    const double *old = before->values, *new = after->values, *weights = spread->all_weights;
    if (engine->facts[row].offline) {
        for (int place = 0; place < OFFLINES; place++) {
            int component = OFFLINE_COMPONENTS[place];
            change->others += weights[component] * (new[component] - old[component]);
        }
        return;
    }
    for (int place = 0; place < SPREADS; place++) {
        int component = SPREAD_COMPONENTS[place];
        double x = old[component] - spread->means[place], y = new[component] - spread->means[place];
        double weight = spread->weights[place];
        change->sums[place] += y - x;
        change->squares[place] += y * y - x * x;
        change->size += weight * weight * (y * y + x * x);
    }
    for (int place = 0; place < OTHERS; place++) {
        int component = OTHER_COMPONENTS[place];
        change->others += weights[component] * (new[component] - old[component]);
    }
}


struct bounds_of_score bound_score_after(const struct spread *spread, const struct change *one,
                                         const struct change *other, double more) {
    double roots = 0.0, inverse = 1.0 / spread->count;
    double variances[SPREADS];
    for (int place = 0; place < SPREADS; place++) {
        double sum = spread->sums[place] + (one->sums[place] + other->sums[place]);
        double squares = spread->squares[place] + (one->squares[place] + other->squares[place]);
        double variance = (squares - sum * sum * inverse) * inverse;
        variances[place] = variance > 0.0 ? variance : 0.0;
    }
    for (int place = 0; place < SPREADS; place++) roots += spread->weights[place] * sqrt(variances[place]);
    double changed = one->others + other->others + more;
    double score = roots + (spread->others + changed);
    double size = spread->sizes + one->size + other->size;
    double error = sqrt(spread->rounding * size + spread->least) +
                   64.0 * (spread->count + 64.0) * 0x1p-52 * (1.0 + roots + spread->other_sizes + fabs(changed));
    return (struct bounds_of_score){score - error, score + error};
}
