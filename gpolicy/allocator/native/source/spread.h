/* Estimates of the score after the values of a few nodes change: sums of what each node contributes.
 *
 * With all values taken relative to the mean at the beginning, a variance is (Q - S*S/n)/n, where S is the sum and Q the
 * sum of the squares. Both are sums over nodes, so the changes of several nodes add up. The error has a bound: a few
 * rounding errors for each node, of the size of the squares; and a root is off by at most the root of that.
 */
#ifndef GPOLICY_SPREAD_H
#define GPOLICY_SPREAD_H

#include "cluster.h"
#include "statistics.h"

enum { SPREADS = 13 };
extern const int SPREAD_COMPONENTS[SPREADS]; /* the deviations */

/* What changed nodes add to sums and sums of squares, to the other components (weighted, without the location
 * exclusions), and to the bound of the error: weighted squares. */
struct change { double sums[SPREADS], squares[SPREADS], others, size; };

/* The state before any change. `sizes` is the weighted sum of all squares, `other_sizes` that of the absolute values of
 * the other components; `rounding` and `least` turn sizes into errors. */
struct spread {
    double count, means[SPREADS], sums[SPREADS], squares[SPREADS], weights[SPREADS];
    double others, other_sizes, sizes, rounding, least;
    const double *all_weights;
};

struct bounds_of_score { double low, high; };

/* Take the present state of all nodes; there is an online one, and no score is undefined. */
void begin_spread(struct engine *engine, struct spread *spread);
/* Add the change of the node at `row`. */
void add_change(const struct engine *engine, const struct spread *spread, int64_t row, const struct node *before,
                const struct node *after, struct change *change);
/* Bound the score after two changes together; `more` is added to the other components. */
struct bounds_of_score bound_score_after(const struct spread *spread, const struct change *one,
                                         const struct change *other, double more);

#endif
