/* What becomes of a node with an instance as a new primary, kept from placement to placement: only nodes that have
 * changed are worked out anew. And how that bounds scores from below.
 */
#ifndef GPOLICY_SIDES_H
#define GPOLICY_SIDES_H

#include "cluster.h"
#include "statistics.h"

/* The deviations that a primary changes; the first five a secondary changes, too. */
enum { SHARED = 5, OF_PRIMARY = 12 };
extern const int PRIMARY_COMPONENTS[OF_PRIMARY];

/* A node with the instance. Per component its value before and after, and the two numbers that its variance's change is
 * made of: the variance grows by `own` - sum of all values * `slope`. The changes are those of sums. All of it decides
 * scores. */
struct primary_side {
    double before[OF_PRIMARY], after[OF_PRIMARY], own[OF_PRIMARY], slope[OF_PRIMARY];
    double n1_change, tags_change, location_change, offline_all_change, offline_primaries_change;
    int64_t location_class;
    uint64_t hash; /* of all before it, where sides are compared */
};

/* The sides of one instance. `compared`: they have hashes. `count` is how many online nodes count in the score;
 * `greatest` and `widest` are bounds, per component, of the sums of two squares (before and after) and of the changes
 * without their sign. */
struct sides {
    struct instance demand;
    bool known, compared;
    double count, squared_count, inverse_square;
    int64_t *as_of; /* per row: the engine's clock when it was made, plus 1 */
    struct primary_side *items;
    double greatest[COMPONENTS], widest[COMPONENTS];
};

/* Return sides of no instance yet, or NULL after fail(). */
struct sides *open_sides(struct engine *engine, bool compared);

/* Begin to ask for sides of an instance. Return whether it is another one than before. */
bool begin_sides(const struct engine *engine, struct sides *sides, const struct instance *instance, double count);
const struct primary_side *primary_side(const struct engine *engine, struct sides *sides, int64_t row);

/* Return a number made of some words of memory. */
uint64_t hash_of(const void *words, size_t size);

/* Work out what replacing x by y does to a variance. */
void work_out_change(struct sides *sides, int component, double x, double y, double *own, double *slope);
/* Note values before and after, for the bounds. */
void note_size(struct sides *sides, int component, double x, double y);

/* Return what is left of a variance after all that rounding may have added; the values change by `reach` at most. */
double safe_variance(const struct sides *sides, const struct statistics *statistics, int component, double reach);
/* Lay a chord under the square root of a variance, which is `base` and more, by what lies in a range. Where it may fall
 * to 0, the root is bounded by 0. Return the root at the lower end. */
double lay_chord(double base, double range, double *slope);

#endif
