#include "score.h"

#include <string.h>

const double WEIGHTS[COMPONENTS] = {
    0.5, 0.5, 1.0, 1.0, 4.0, 16.0, 0.5, 1.0, 1.0, 1.0, 1.0, 2.0, 0.5, 0.5, 0.5, 0.5, 0.5, 1.0, 1.0, 0.25,
};
const enum aggregate AGGREGATES[COMPONENTS] = {
    DEVIATION, DEVIATION, SUM,       DEVIATION, OFFLINE_SUM, OFFLINE_SUM, DEVIATION, DEVIATION, DEVIATION, DEVIATION,
    DEVIATION, SUM,       DEVIATION, DEVIATION, DEVIATION,   DEVIATION,   DEVIATION, SUM,       TAG_MAP,   SUM,
};

/* Add up the location exclusions of the online nodes in scope: how often each tag occurs in each location. */
static void merge_exclusions(struct engine *engine, int64_t scope, struct statistics *statistics) {
    int64_t tags = engine->tag_count, cells = engine->location_count * tags, sum = 0, above = 0;
    if (scope == EVERYWHERE) {
        statistics->merged = engine->exclusions.counts;
        statistics->exclusions = (double)(engine->exclusions.sum - engine->exclusions.above);
        return;
    }
    int64_t *merged = scratch(engine, MERGED_TAGS, cells, sizeof *merged);
    memset(merged, 0, (size_t)cells * sizeof *merged);
    for (int64_t row = 0; row < engine->node_count; row++) {
        const struct facts *facts = &engine->facts[row];
        if (facts->offline || facts->group != scope) continue;
        for (int64_t location = 0; location < facts->location_count; location++) {
            int64_t *counts = &merged[facts->locations[location] * tags];
            for (int64_t tag = 0; tag < tags; tag++) counts[tag] += engine->located_tags[row * tags + tag];
        }
    }
    for (int64_t cell = 0; cell < cells; cell++) {
        sum += merged[cell];
        above += merged[cell] > 0;
    }
    statistics->merged = merged;
    statistics->exclusions = (double)(sum - above);
}

void take_statistics(struct engine *engine, int64_t scope, struct statistics *statistics) {
    double count = 0.0, offline_all = 0.0, offline_primaries = 0.0;
    double sums[COMPONENTS] = {0.0}, squares[COMPONENTS] = {0.0}, means[COMPONENTS];
    for (int64_t row = 0; row < engine->node_count; row++) {
        const struct facts *facts = &engine->facts[row];
        const double *values = engine->nodes[row].values;
        if (scope != EVERYWHERE && facts->group != scope) continue;
        if (facts->offline) {
            offline_all += values[OFFLINE_ALL];
            offline_primaries += values[OFFLINE_PRIMARIES];
            continue;
        }
        count += 1.0;
        for (int place = 0; place < COMPONENTS; place++) sums[place] += values[place];
    }
    for (int place = 0; place < COMPONENTS; place++) means[place] = sums[place] / count;
    for (int64_t row = 0; row < engine->node_count; row++) {
        const struct facts *facts = &engine->facts[row];
        const double *values = engine->nodes[row].values;
        if (facts->offline || (scope != EVERYWHERE && facts->group != scope)) continue;
        for (int place = 0; place < COMPONENTS; place++) {
            double difference = values[place] - means[place];
            squares[place] += difference * difference;
        }
    }
    sums[OFFLINE_ALL] = offline_all;
    sums[OFFLINE_PRIMARIES] = offline_primaries;
    statistics->count = count;
    for (int place = 0; place < COMPONENTS; place++) {
        statistics->sums[place] = sums[place];
        statistics->variances[place] = squares[place] / count;
    }
    merge_exclusions(engine, scope, statistics);
}
