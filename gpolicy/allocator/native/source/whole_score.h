/* Scores that htools computes in full, over all nodes, for every candidate (htools, AllocationSolution: single nodes;
 * Evacuation: all moves). Equal nodes do not get equal scores here, since the order of the sums differs. */
#ifndef GPOLICY_WHOLE_SCORE_H
#define GPOLICY_WHOLE_SCORE_H

#include "cluster.h"
#include "statistics.h"

/* The score of the nodes in scope as they are. */
double whole_score(struct engine *engine, int64_t scope);

/* Estimate the score of the present state, which has come from one with the given statistics of `scope` by what the
 * journal holds since `before`; `error` is how far off it may be at most. */
double estimate_score(const struct engine *engine, int64_t scope, const struct statistics *statistics,
                      struct mark before, double *error);

/* A candidate and the score after the instance is put there. */
struct choice { int64_t row; double score; };

bool open_whole_search(struct engine *engine);

/* Return the best of `count` candidate rows (ascending, at least one; the instance fits on each), the later one of
 * equals, by the score of all nodes, or of those of group `scope`. Where it is undefined, the best is the first: so
 * sorts GHC what cannot be compared. */
int64_t best_row(struct engine *engine, int64_t scope, const struct instance *instance, const int64_t *rows,
                 int64_t count);
/* The same, by the score of all nodes, which is returned as well. */
struct choice best_single(struct engine *engine, const struct instance *instance, const int64_t *rows, int64_t count);
/* Compute the scores of all candidates. */
void all_singles(struct engine *engine, const struct instance *instance, const int64_t *rows, int64_t count,
                 double *scores);

#endif
