/* Reading a cluster from the two streams of numbers that gpolicy/allocator/native/streams.py writes.
 *
 * Every number must lie in its range and every reference must lead to something. Otherwise the input is INVALID, and
 * the law answers instead.
 */
#ifndef GPOLICY_INPUT_H
#define GPOLICY_INPUT_H

#include "cluster.h"

struct numbers { const int64_t *integers; int64_t integer_count; const double *reals; int64_t real_count; };

/* Read a cluster into a zeroed engine. */
void read_cluster(struct engine *engine, const struct numbers *numbers);
/* Read the record of an instance, and rows of nodes after it unless `rows` is NULL. */
void read_instance(struct engine *engine, const struct numbers *numbers, struct list *rows, struct instance *instance);

#endif
