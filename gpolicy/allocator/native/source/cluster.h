/* The state of a cluster as the engine keeps it, and how it is changed and taken back.
 *
 * Names are those of the law (gpolicy/allocator/node.py, cluster_data.py). Nodes are rows, in ascending index order;
 * sizes are MiB. No amount is above 2^41, and there are at most 2^21 of anything, so sums fit in 64 bits; sums of a few
 * are exact as doubles.
 *
 * An error is a status that stays until the call ends: a function that meets one calls fail() and returns a value that
 * means nothing. Before a function changes the state, it makes room in the journal, so that after
 * any error, lack of memory included, the state can be taken back to where the call found it.
 */
#ifndef GPOLICY_CLUSTER_H
#define GPOLICY_CLUSTER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Why a placement is not possible, in the order of FailReason. */
enum reason { MEM, DISK, CPU, N1, TAGS, MIG, DISK_COUNT, SPINDLES, INTERNAL, FITS };
enum { REASONS = FITS };

/* The components of the score, in the order of the sum. */
enum component {
    FREE_MEMORY, FREE_DISK, N1_COUNT, RESERVED, OFFLINE_ALL, OFFLINE_PRIMARIES, CPU_RATIO, CPU_LOAD, MEMORY_LOAD,
    DISK_LOAD, NET_LOAD, PRIMARY_TAGS, SPINDLE_RATIO, FORTH_MEMORY, FORTH_DISK, FORTH_CPU, FORTH_SPINDLES, LOCATION,
    LOCATION_EXCLUSION, RESERVED_TOTAL, COMPONENTS
};

/* How a call ended. */
enum status {
    DONE, OUT_OF_MEMORY, INVALID, STOPPED, DIVISION_BY_ZERO, MISSING_NODE, ASK_THE_LAW, TOO_MANY_PLACED, TOO_DEEP
};

/* How the N+1 test treats an instance: fail over, move, or place a copy. */
enum evacuation { FAIL_OVER, MOVE, COPY };

enum { NOWHERE = -1, UNKNOWN_SPINDLES = -1 };

struct spec { int64_t memory, cpus, disk_size, disk_count, spindle_use; };
struct spec_pair { struct spec min, max; };
struct policy { const struct spec_pair *pairs; int64_t count, templates; /* bit per template */ };

/* An instance, existing or wanted. `index` is what node lists call it; `primary` and `secondary` are rows. */
struct instance {
    int64_t index, memory, disk, vcpus, spindle_use, spindles, disks, least_disk, most_disk;
    int64_t primary, secondary, secondary_index, location_score, desired, disk_template;
    enum evacuation evacuation;
    bool diskless, online, uses_memory, needs_secondary_memory, local;
    const int64_t *tags;
    int64_t tag_count;
    double load[4];
};

/* What no placement changes about a node. */
struct facts {
    int64_t group, policy, location_class, migration_class, low_disk, spindles;
    bool exclusive, offline, examined, undefined; /* the last: it is online, and its score divides by 0 */
    double total_memory, total_disk, total_cpus, cpu_speed, vcpu_ratio, high_spindles;
    const int64_t *locations;
    int64_t location_count;
};

/* What placements change; `values` is the node's share of each component of the score. */
struct node {
    int64_t unallocated, reserved, forth_memory, disk, forth_disk, free_spindles, forth_spindles, cpus, forth_cpus;
    int64_t primaries, secondaries, tags, distinct_tags, location_score;
    bool fails_n1;
    double spindle_use, forth_spindle_use;
    double values[COMPONENTS];
};

/* An array that grows; see reserve(). */
struct buffer { void *items; int64_t capacity; };

struct list { int64_t *items; int64_t count, capacity; };

struct pieces { void **items; int64_t count, capacity; };

/* Memory kept for the failure of `node`. */
struct share { int64_t node, memory; };
struct shares { struct share *items; int64_t count, capacity; };

/* What take_back() restores. */
struct saved_node { int64_t row, shares, shares_from; struct node node; };
struct saved_tag { int64_t row, tag; int32_t before; bool located; };

/* Where the journal stands. */
struct mark { int64_t nodes, shares, tags; };

struct journal {
    struct saved_node *nodes;
    struct share *shares;
    struct saved_tag *tags;
    int64_t node_capacity, share_capacity, tag_capacity;
    struct mark top;
};

/* Per location and tag, how many primaries of online nodes have it; the sum of all, and how many are above 0. */
struct exclusions { int64_t *counts, sum, above; };

/* Instances in the order of their numbers in the cluster's table; those placed by us come last. `replaced` counts how
 * often a record has taken the place of another one. */
struct table {
    struct instance *items;
    int64_t *numbers;
    int64_t count, capacity, given, replaced;
};

/* One instance placed by us: where its record is, and what was before. */
struct placed { int64_t slot, version, missing; bool clashing; struct mark before; };
struct placements { struct placed *items; int64_t count, capacity, before; struct buffer replaced; };

struct outcomes;
struct pair_search;
struct whole_search;
struct evacuating;
struct room;
struct memo;
struct bounds;
struct steps;

struct engine {
    bool open;  /* a cluster was read */
    bool moved; /* an instance was moved away: lists and records no longer say where it is */
    enum status status;
    atomic_int stop; /* set by another thread */
    int64_t missing_index;
    int64_t last_failing;   /* the node that could not be evacuated last time */
    bool last_was_simulated; /* whether only a simulation could tell */

    int64_t node_count, group_count, policy_count, list_count, tag_count, location_count;
    int64_t location_classes, migration_classes, desired_classes;
    struct facts *facts;
    struct policy *policies;
    struct spec_pair *pairs;
    const int64_t *common_locations, *may_migrate, *desired_misses; /* tables over classes */
    int64_t *list_of_primary, *list_of_secondary;                   /* per row: its list of candidates, or NOWHERE */
    int64_t *integers; /* the numbers as given, which tables, locations and tags point into */
    bool mirrored;     /* candidates are pairs */
    bool force, capacity_checks, restricted_moves, any_exclusive;
    bool any_undefined; /* some node makes the score NaN */

    struct node *nodes;
    struct list *primaries; /* slots of `table` per node, the newest last */
    struct shares *peers;
    int32_t *tags, *located_tags; /* per node and tag: primaries that have it; the second without forthcoming ones */
    struct exclusions exclusions; /* made of `located_tags` */
    struct table table;
    int64_t unmirrored; /* given instances that are not mirrored */
    int64_t missing;    /* mirrored instances on some node that have no secondary */
    bool clashing;      /* a placement's number is not its own: no arithmetic, only simulation */
    int64_t *changed;   /* per row: `clock` when it changed last */
    int64_t clock;
    struct journal journal;
    struct placements placements;
    int64_t version, versions; /* a number of the present state, and how many states there were */
    const int64_t *kept_tags; /* of the last instance wanted; copies of it may use them as long as the engine lives */
    int64_t kept_tag_count;
    struct pieces pieces; /* of memory: all that the engine has */

    /* working memory of the modules */
    struct outcomes *outcomes;
    struct pair_search *pair_search;
    struct whole_search *whole_search;
    struct evacuating *evacuating;
    struct room *room;
    struct memo *memo;
    struct steps *steps;
    struct bounds *bounds;
    struct buffer levels, rows, flags, scored, scores, moving, merged;
};

void fail(struct engine *engine, enum status status);
static inline bool failed(const struct engine *engine) { return engine->status != DONE; }
/* Whether the caller no longer wants an answer, or there is trouble. */
bool ended(struct engine *engine);

/* Return zeroed memory for `count` items, or NULL after fail(). It lasts until release() or the end of the engine. */
void *zeroed(struct engine *engine, int64_t count, size_t size);
/* Return `buffer` with room for `count` items of `size`, or NULL after fail(). What was in it stays. */
void *reserve(struct engine *engine, struct buffer *buffer, int64_t count, size_t size);
/* Make room for `count` items in an array that grows; false after fail(). */
bool grow(struct engine *engine, void *items, int64_t *capacity, int64_t count, size_t size);
void release(struct engine *engine, void *piece);
void release_all(struct engine *engine);

/* Save the node at `row`, so that take_back() can restore it; false after fail(): the node must not be changed. */
bool save_node(struct engine *engine, int64_t row);
/* Set how many primaries of a node have a tag: in `tags`, or in `located_tags` and what is made of them. */
void set_tag(struct engine *engine, int64_t row, int64_t tag, bool located, int32_t count);
/* Count `change` more primaries with a tag in the locations of a node. */
void count_exclusions(struct engine *engine, int64_t row, int64_t tag, int64_t change);
void take_back(struct engine *engine, struct mark to);

int64_t peer_memory(const struct engine *engine, int64_t row, int64_t peer);
/* Make room for one more peer of a node. */
bool reserve_peer(struct engine *engine, int64_t row);
/* Set or, without `keep`, drop what a node keeps for a peer; there must be room for it. */
void set_peer_memory(struct engine *engine, int64_t row, int64_t peer, int64_t memory, bool keep);
int64_t most_peer_memory(const struct engine *engine, int64_t row);
int64_t common_locations(const struct engine *engine, int64_t row, int64_t other);
bool may_migrate(const struct engine *engine, int64_t source, int64_t target);

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

#endif
