/* Adding an instance to a node and removing it (gpolicy/allocator/node_changes.py). */
#ifndef GPOLICY_NODE_CHANGES_H
#define GPOLICY_NODE_CHANGES_H

#include "cluster.h"

/* Return the first reason against `instance` as a new primary of the node at `row`, or FITS. */
enum reason primary_reason(const struct engine *engine, int64_t row, const struct instance *instance, bool force);
/* Whether the node keeps its vcpu-ratio with `instance` as a new primary; an instance without CPUs breaks none. */
bool keeps_vcpu_ratio(const struct engine *engine, int64_t row, const struct instance *instance);
bool takes_cpus(const struct engine *engine, int64_t row, int64_t cpus);
/* The same for a secondary; `peer` is the memory that the node reserves for the primary already. */
enum reason secondary_reason(const struct engine *engine, int64_t row, const struct instance *instance, int64_t peer,
                             bool force, bool ignore_disk);
/* The same without the checks that count forthcoming instances, which come last. */
enum reason first_secondary_reason(const struct engine *engine, int64_t row, const struct instance *instance,
                                   int64_t peer, bool force, bool ignore_disk);

/* Change the copy `node` of the node at `row` as if `instance` were added; `peer` as above. */
void with_primary(const struct engine *engine, int64_t row, const struct instance *instance, struct node *node);
void with_secondary(const struct engine *engine, int64_t row, const struct instance *instance, int64_t peer,
                    struct node *node);

/* Change the node at `row` itself, after save_node(). */
void add_primary(struct engine *engine, int64_t row, const struct instance *instance);
void add_secondary(struct engine *engine, int64_t row, const struct instance *instance, int64_t primary);
void remove_primary(struct engine *engine, int64_t row, const struct instance *instance);
void remove_secondary(struct engine *engine, int64_t row, const struct instance *instance);

/* Return how often the tag at `place` occurs in the instance's list before it. */
static inline int64_t earlier_in_list(const struct instance *instance, int64_t place) {
    int64_t count = 0;
    for (int64_t other = 0; other < place; other++) count += instance->tags[other] == instance->tags[place];
    return count;
}

static inline int64_t memory_used(const struct instance *instance) {
    return instance->uses_memory ? instance->memory : 0;
}
/* What a secondary must have free, and what it reserves. */
static inline int64_t memory_needed(const struct instance *instance) {
    return instance->needs_secondary_memory ? instance->memory : 0;
}
static inline int64_t memory_kept(const struct instance *instance) {
    return instance->forthcoming ? 0 : memory_needed(instance);
}
static inline int64_t cpus_used(const struct instance *instance) { return instance->online ? instance->vcpus : 0; }

#endif
