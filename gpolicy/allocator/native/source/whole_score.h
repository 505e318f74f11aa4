/* Scores that htools computes from all nodes for every candidate: single nodes (AllocationSolution.hs) and moves
 * (Evacuation). Equal nodes do not get equal scores, since the order of the sums differs. */
#ifndef GPOLICY_WHOLE_SCORE_H
#define GPOLICY_WHOLE_SCORE_H

#include "cluster.h"
#include "statistics.h"

/* Return the score of the nodes in scope in the present state. */
double whole_score(struct engine *engine, int64_t scope);

/* Estimate the score of the present state. `statistics` of `scope` are those of the state at `before`, a mark of the
 * journal. `error` is the greatest possible error. */
double estimate_score(const struct engine *engine, int64_t scope, const struct statistics *statistics,
                      struct mark before, double *error);

bool open_whole_search(struct engine *engine);

/* Return the best of `count` candidate rows, of equals the later one, by the score of all nodes or of group `scope`.
 * There is at least one row, rows ascend, and the instance fits on each. If scores are NaN, the first one is the best,
 * as GHC sorts them.
 *
 * With `any_alike`, the row may be another one like it: then all that follows is the same but for the names of nodes,
 * and the last bits of scores. Where these would decide, `undecided` is set, and the row is of no use. */
int64_t best_row(struct engine *engine, int64_t scope, const struct instance *instance, const int64_t *rows,
                 int64_t count);
/* Return the score of all nodes with the instance on the node at `row`. */
double single_score(struct engine *engine, const struct instance *instance, int64_t row);
/* Compute the scores of all candidates. */
void all_singles(struct engine *engine, const struct instance *instance, const int64_t *rows, int64_t count,
                 double *scores);

#endif
