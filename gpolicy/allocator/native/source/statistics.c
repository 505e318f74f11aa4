#include "statistics.h"

#include <math.h>
#include <string.h>

#include "node_changes.h"

const enum aggregate AGGREGATES[COMPONENTS] = {
    DEVIATION, DEVIATION, SUM,       DEVIATION, OFFLINE_SUM, OFFLINE_SUM, DEVIATION, DEVIATION, DEVIATION, DEVIATION,
    DEVIATION, SUM,       DEVIATION, DEVIATION, DEVIATION,   DEVIATION,   DEVIATION, SUM,       TAG_MAP,   SUM,
};

void take_exclusions(struct engine *engine, int64_t scope, struct statistics *statistics) {
    int64_t tags = engine->tag_count, cells = engine->location_count * tags, sum = 0, above = 0;
    if (scope == EVERYWHERE) {
        statistics->merged = engine->exclusions.counts;
        statistics->exclusions = (double)(engine->exclusions.sum - engine->exclusions.above);
        return;
    }
    int64_t *merged = reserve(engine, &engine->merged, cells, sizeof *merged);
    statistics->merged = merged;
    statistics->exclusions = 0.0;
    if (merged == NULL || cells == 0) return;
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
    statistics->exclusions = (double)(sum - above);
}

void add_up(const struct engine *engine, int64_t scope, int64_t changed, const double *changed_values,
            struct statistics *statistics) {
    double count = 0.0, offline_all = 0.0, offline_primaries = 0.0;
    double sums[COMPONENTS] = {0.0}, squares[COMPONENTS] = {0.0}, means[COMPONENTS];
    for (int64_t row = 0; row < engine->node_count; row++) {
        const double *values = row == changed ? changed_values : engine->nodes[row].values;
        if (!in_scope(engine, scope, row)) continue;
        if (engine->facts[row].offline) {
            offline_all += values[OFFLINE_ALL];
            offline_primaries += values[OFFLINE_PRIMARIES];
            continue;
        }
        count += 1.0;
        for (int place = 0; place < COMPONENTS; place++) sums[place] += values[place];
    }
    for (int place = 0; place < COMPONENTS; place++) means[place] = sums[place] / count;
    for (int64_t row = 0; row < engine->node_count; row++) {
        const double *values = row == changed ? changed_values : engine->nodes[row].values;
        if (engine->facts[row].offline || !in_scope(engine, scope, row)) continue;
        for (int place = 0; place < COMPONENTS; place++) {
            double difference = values[place] - means[place];
            squares[place] += difference * difference;
        }
    }
    sums[OFFLINE_ALL] = offline_all;
    sums[OFFLINE_PRIMARIES] = offline_primaries;
    statistics->count = count;
    statistics->weights = engine->weights;
    for (int place = 0; place < COMPONENTS; place++) {
        statistics->sums[place] = sums[place];
        statistics->variances[place] = squares[place] / count;
    }
}

void take_statistics(struct engine *engine, int64_t scope, struct statistics *statistics) {
    add_up(engine, scope, NOWHERE, NULL, statistics);
    take_exclusions(engine, scope, statistics);
}

double sum_of(const struct statistics *statistics) {
    double score = 0.0;
    if (statistics->count == 0.0) return 0.0; /* htools has no components then */
    for (int place = 0; place < COMPONENTS; place++) {
        double value = statistics->sums[place];
        if (AGGREGATES[place] == DEVIATION) value = sqrt(statistics->variances[place]);
        if (AGGREGATES[place] == TAG_MAP) value = statistics->exclusions;
        score += statistics->weights[place] * value;
    }
    return score;
}

bool score_is_undefined(const struct engine *engine, int64_t scope) {
    for (int64_t row = 0; engine->any_undefined && row < engine->node_count; row++) {
        if (engine->facts[row].undefined && in_scope(engine, scope, row)) return true;
    }
    return false;
}

int64_t exclusion_change(const struct engine *engine, int64_t row, const struct instance *instance,
                         const int64_t *merged) {
    const struct facts *facts = &engine->facts[row];
    int64_t change = 0;
    if (instance->forthcoming) return 0;
    for (int64_t location = 0; location < facts->location_count; location++) {
        for (int64_t place = 0; place < instance->tag_count; place++) {
            int64_t key = facts->locations[location] * engine->tag_count + instance->tags[place];
            /* the first of a kind adds a count and a key, which cancel out */
            if (merged[key] + earlier_in_list(instance, place) > 0) change++;
        }
    }
    return change;
}
