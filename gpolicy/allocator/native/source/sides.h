/* The change of a node by an instance as a new primary, kept from placement to placement: only changed nodes are
 * computed again. And lower bounds of scores that follow from it. */
#ifndef GPOLICY_SIDES_H
#define GPOLICY_SIDES_H

#include "cluster.h"
#include "statistics.h"

/* The deviations that a primary changes; a secondary changes the first five, too. */
enum { SHARED = 5, OF_PRIMARY = 12 };
extern const int PRIMARY_COMPONENTS[OF_PRIMARY];
/* The place of the component that mostly has the same values on all nodes, or NOWHERE. */
extern const int TWIN_OF[OF_PRIMARY];

/* A node with the instance. For each component: its value before and after, and two numbers by which its variance
 * changes: it grows by `own` - sum of all values * `slope`. The `_change` fields are changes of sums. */
struct primary_side {
    double before[OF_PRIMARY], after[OF_PRIMARY], own[OF_PRIMARY], slope[OF_PRIMARY];
    double n1_change, tags_change, location_change, offline_all_change, offline_primaries_change;
    int64_t location_class;
    uint64_t hash; /* of all fields before it, if sides are compared */
};

/* The sides of one instance. `compared`: they have hashes. `count` is the number of online nodes. For each component,
 * `greatest` bounds the sums of the squares before and after, and `widest` the absolute changes. `differs`: a node has
 * other values there than in the component's twin (see distinct_components()). */
struct sides {
    struct instance demand;
    bool known, compared, differs[OF_PRIMARY];
    double count, squared_count, inverse_square;
    int64_t *as_of; /* for each row, the engine's clock when its side was made, plus 1 */
    struct primary_side *items;
    double greatest[COMPONENTS], widest[COMPONENTS];
};

/* Between which numbers a variance changes. */
struct range { double low, high; };
static inline void widen(struct range *range, double value) {
    range->low = lesser(value, range->low); /* NaN changes nothing */
    range->high = greater(value, range->high);
}

/* By how much sides change the variance of a component: the range of `own` - sum of all values * `slope`, and that of
 * `slope`. From search to search it moves with the sum, and only changed sides are added: it may be wider than needed,
 * and is made anew after SEARCHES_OF_REACH. */
struct reach { struct range parts, slopes; };
enum { SEARCHES_OF_REACH = 32 };
/* Begin with no reach, or move one by as much as the sum has changed. */
void move_reach(struct reach *reach, bool anew, double change);
/* Add the numbers of a side to a reach. */
static inline void extend_reach(struct reach *reach, double own, double slope, double sum) {
    widen(&reach->parts, own - sum * slope);
    widen(&reach->slopes, slope);
}
/* The sum of a component's values; 0 if it is not finite, as its deviation gets no bound then. */
double finite_sum(const struct statistics *statistics, int component);

/* Return empty sides, or NULL after fail(). */
struct sides *open_sides(struct engine *engine, bool compared);

/* Whether two instances change nodes in the same way. */
bool same_change(const struct instance *a, const struct instance *b);
/* Prepare the sides of an instance. Return whether it differs from the one before. */
bool begin_sides(const struct engine *engine, struct sides *sides, const struct instance *instance, double count);
const struct primary_side *primary_side(const struct engine *engine, struct sides *sides, int64_t row);

/* Return a hash of `size` bytes, a multiple of 8. */
uint64_t hash_of(const void *words, size_t size);

/* Compute how replacing x by y changes a variance. */
void work_out_change(struct sides *sides, int component, double x, double y, double *own, double *slope);
/* Update `greatest` and `widest` by the values before and after. */
void note_size(struct sides *sides, int component, double x, double y);

/* Note the values of a node before and after, of the first `components`, for twins. */
void note_twins(struct sides *sides, int components, const double *before, const double *after);

/* The deviations that are to be bounded, by their places in PRIMARY_COMPONENTS; the first `shared` change with a
 * secondary, too. Twins, such as the use of disk with and without forthcoming instances, mostly have the same values on
 * all nodes; then one stands for all of them, with the sum of their weights. */
struct distinct { int count, shared, places[OF_PRIMARY]; double weights[OF_PRIMARY]; };
struct distinct distinct_components(const struct sides *sides, const struct statistics *statistics);

/* Return a variance less its possible rounding error, if values change by at most `reach`. */
double safe_variance(const struct sides *sides, const struct statistics *statistics, int component, double reach);
/* Lay a chord under the square root of a variance between `base` and `base` + `range`, and return the root at `base`.
 * If the variance may fall to 0, the bound is 0. */
double lay_chord(double base, double range, double *slope);

#endif
