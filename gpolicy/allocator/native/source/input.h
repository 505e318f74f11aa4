/* Reading a cluster from the two streams of numbers that gpolicy/allocator/native/streams.py writes.
 *
 * Nothing is taken on trust: every number has to lie in its range, every reference has to lead somewhere. What does not
 * is refused (INVALID), and the law answers instead.
 */
#ifndef GPOLICY_INPUT_H
#define GPOLICY_INPUT_H

#include "cluster.h"

struct numbers { const int64_t *integers; int64_t integer_count; const double *reals; int64_t real_count; };

/* Read a whole cluster into an engine that is all zero. */
void read_cluster(struct engine *engine, const struct numbers *numbers);
/* Read the record of an instance, and rows of nodes after it if they are asked for. */
void read_instance(struct engine *engine, const struct numbers *numbers, struct list *rows, struct instance *instance);

#endif
