/* The cluster score (gpolicy/allocator/score.py): the same sums in the same order, to the last bit. */
#ifndef GPOLICY_SCORE_H
#define GPOLICY_SCORE_H

#include "cluster.h"

enum { EVERYWHERE = -1 };

/* How a component's values become one number. */
enum aggregate { DEVIATION, SUM, OFFLINE_SUM, TAG_MAP };

extern const double WEIGHTS[COMPONENTS];
extern const enum aggregate AGGREGATES[COMPONENTS];

/* Count of online nodes; per component the sum and, for deviations, the variance. `exclusions` is the value of the
 * location exclusion component, `merged` the counts it is made of: per location and tag. */
struct statistics {
    double count, sums[COMPONENTS], variances[COMPONENTS], exclusions;
    const int64_t *merged;
};

/* Fill in the full statistics of all nodes, or of those of group `scope`. */
void take_statistics(struct engine *engine, int64_t scope, struct statistics *statistics);

/* The greater or lesser of two numbers that are not NaN. The functions of libm are calls. */
static inline double greater(double a, double b) { return a > b ? a : b; }
static inline double lesser(double a, double b) { return a < b ? a : b; }

/* A deviation's sum and variance after a value x is replaced by y. */
struct deviation { double sum, variance; };
static inline struct deviation replaced(double count, struct deviation old, double x, double y) {
    double change = y - x;
    double square_change = y * y - x * x;
    double step = (count * square_change - (2.0 * old.sum) * change) - change * change;
    double moved = old.variance + step / (count * count);
    return (struct deviation){old.sum + change, moved >= 0.0 ? moved : 0.0};
}

#endif
