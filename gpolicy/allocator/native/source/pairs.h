/* The best pair of nodes for a mirrored instance, without a score for every pair.
 *
 * After a placement the variance of a component is the old one plus one term of the primary plus one of the secondary,
 * and a small cross term that is bounded. A square root lies above its chord. So a sum F(primary) + G(secondary) is a
 * lower bound of each pair's score. Only pairs whose bound does not exceed the best exact score are computed, and equal
 * nodes only once. The terms of a node are kept between placements and computed again only after the node has changed.
 */
#ifndef GPOLICY_PAIRS_H
#define GPOLICY_PAIRS_H

#include "cluster.h"

struct pair { int64_t primary, secondary; double score; };

bool open_pair_search(struct engine *engine);

/* Begin a search for an instance, after look_at_candidates(). */
void prepare_pairs(struct engine *engine, const struct instance *instance);

/* Whether the score of every pair is NaN: an online node without memory makes the sum of reservations NaN. */
bool pair_scores_are_undefined(const struct engine *engine);

/* Return the exact score of a pair that takes the instance. */
double pair_score(struct engine *engine, int64_t primary, int64_t secondary);

/* Return the best pair (of equals the later primary, then the later secondary) of the primaries that fit and, unless
 * `wanted` is NULL, are wanted. If there is none, its `primary` is NOWHERE. */
struct pair best_pair(struct engine *engine, const bool *wanted);

#endif
