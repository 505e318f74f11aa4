/* The cluster score (gpolicy/allocator/cluster_score.py): the same sums in the same order, to the last bit.
 *
 * A node without spindles, memory or CPUs makes htools divide by 0, and a deviation of values that are not finite is
 * NaN. A full computation then gives NaN. If only one node's values are replaced, htools takes the greater of 0 and the
 * new variance, which turns NaN into 0 (htools, Statistics.hs, `updateStatistics`).
 */
#ifndef GPOLICY_STATISTICS_H
#define GPOLICY_STATISTICS_H

#include "cluster.h"

enum { EVERYWHERE = -1 };

/* How a component's values become one number. */
enum aggregate { DEVIATION, SUM, OFFLINE_SUM, TAG_MAP };

extern const enum aggregate AGGREGATES[COMPONENTS];

/* The count of online nodes; for each component the sum and, for deviations, the variance. `exclusions` is the value of
 * the location exclusion component, `merged` the counts behind it, by location and tag. `weights` are those of the
 * components. */
struct statistics {
    double count, sums[COMPONENTS], variances[COMPONENTS], exclusions;
    const double *weights;
    const int64_t *merged;
};

/* Fill in the full statistics of all nodes, or of those of group `scope`. */
void take_statistics(struct engine *engine, int64_t scope, struct statistics *statistics);
/* Compute the location exclusion component: how often a tag occurs at a location beyond the first time. */
void take_exclusions(struct engine *engine, int64_t scope, struct statistics *statistics);
/* The same without the location exclusions, with `changed_values` as the values of the node at `changed`. */
void add_up(const struct engine *engine, int64_t scope, int64_t changed, const double *changed_values,
            struct statistics *statistics);

/* Return the score: the weighted sum of all components, in their order. */
double sum_of(const struct statistics *statistics);
/* Whether the score of `scope` is NaN after any placement: an online node makes htools divide by 0. */
bool score_is_undefined(const struct engine *engine, int64_t scope);

/* Return what a new primary adds to the location exclusion component, given the counts of all nodes. */
int64_t exclusion_change(const struct engine *engine, int64_t row, const struct instance *instance,
                         const int64_t *merged);

/* Whether a node, online or offline, counts in the score of `scope`. */
static inline bool in_scope(const struct engine *engine, int64_t scope, int64_t row) {
    return scope == EVERYWHERE || engine->facts[row].group == scope;
}

/* The greater and the lesser of two numbers, not NaN, without a call of libm. */
static inline double greater(double a, double b) { return a > b ? a : b; }
static inline double lesser(double a, double b) { return a < b ? a : b; }

/* The sum and variance of a deviation; replaced() computes them after a value x is replaced by y. */
struct deviation { double sum, variance; };
static inline struct deviation replaced(double count, struct deviation old, double x, double y) {
    double change = y - x;
    double square_change = y * y - x * x;
    double step = (count * square_change - (2.0 * old.sum) * change) - change * change;
    double moved = old.variance + step / (count * count);
    return (struct deviation){old.sum + change, moved >= 0.0 ? moved : 0.0};
}

#endif
