/* The best pair of nodes for a mirrored instance, without looking at every pair.
 *
 * Most components of the score depend on the primary alone or on the secondary alone. For the five that depend on both,
 * the variance after the placement is a constant plus a number of the primary plus one of the secondary (up to a small
 * cross term that is bounded), and a square root lies above its chord. So a sum F(primary) + G(secondary) bounds every
 * pair's score from below, and only pairs whose bound does not exceed the best exact score are computed. Equal nodes
 * are computed once.
 */
#ifndef GPOLICY_PAIRS_H
#define GPOLICY_PAIRS_H

#include "cluster.h"
#include "score.h"

enum { SHARED = 5 }; /* deviations that the primary and the secondary both change */

/* A primary with the instance: shares of the components that no secondary changes, and the statistics of the others.
 * Everything before `low` decides scores; nodes that are alike in it give equal scores. */
struct primary_side {
    double terms[COMPONENTS], n1_count, offline_all, location, location_class;
    struct deviation shared[SHARED];
    double low, alone; /* the second without what depends on the secondary */
    double parts[SHARED], changes[SHARED], sizes[SHARED];
};

/* A secondary with the instance, keeping `reserved` MiB in all. */
struct secondary_side {
    double old[SHARED], after[SHARED], n1_change, reserved_old, reserved_after, offline_change, offline, location_class;
    double low, rest, alone; /* the last without what depends on the primary */
    double parts[SHARED], changes[SHARED], sizes[SHARED];
    int64_t reserved;
};

/* Codes are those of placement.h: `enum reason` per row, the secondary's where it keeps nothing for the primary. */
struct pair_search {
    struct engine *engine;
    const struct instance *instance;
    const int8_t *primary_codes, *secondary_codes;
    struct statistics statistics;
    double terms[COMPONENTS]; /* the shares of the components before anything is placed */
    double bases[SHARED], cross; /* the variances less what rounding may add; the factor of the cross terms */
    struct primary_side *primaries;     /* per row */
    struct secondary_side *secondaries; /* per row, without regard to what is kept for the primary already */
};

struct pair { int64_t primary, secondary; double score; };

void prepare_pairs(struct engine *engine, const struct instance *instance, const int8_t *primary_codes,
                   const int8_t *secondary_codes, struct pair_search *search);

/* Whether the reservation grows beyond the usual because the secondary keeps memory for the primary already. */
bool special_pair(const struct pair_search *search, int64_t secondary, int64_t peer);

/* Return the exact score of a pair that passes all checks. */
double pair_score(const struct pair_search *search, int64_t primary, int64_t secondary);

/* Return the best pair (of equals the later primary, then the later secondary) among the primaries that fit and, if
 * `wanted` is given, are wanted. `primary` is NOWHERE if there is none. */
struct pair best_pair(struct pair_search *search, const bool *wanted);

#endif
