/* Scores of putting an instance on single nodes: a full computation over all nodes for every candidate, as the law has
 * it. Equal nodes do not get equal scores here, since the order of the sums differs. */
#ifndef GPOLICY_SINGLE_H
#define GPOLICY_SINGLE_H

#include "cluster.h"

/* A candidate and the score after the instance is put there. */
struct choice { int64_t row; double score; };

/* Return the best of `count` candidate rows (ascending, at least one; the instance fits on each), the later one of
 * equals. The score is that of all nodes, or of those of group `scope`. */
struct choice best_single(struct engine *engine, int64_t scope, const struct instance *instance, const int64_t *rows,
                          int64_t count);
/* Compute the scores of all candidates. */
void all_singles(struct engine *engine, const struct instance *instance, const int64_t *rows, int64_t count,
                 double *scores);

#endif
