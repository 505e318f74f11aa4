/* The state of a cluster in the engine, its changes, and how changes are undone.
 *
 * Names are those of the law (gpolicy/allocator/cluster_data.py). A node is known by its row; rows are in
 * ascending order of node index. Sizes are MiB. No amount is above 2^41 and there are at most 2^21 items of a kind, so
 * sums fit in 64 bits, and sums of a few amounts are exact as doubles.
 *
 * An error is a status that stays until the call ends: the function that finds it calls fail() and returns a
 * meaningless value. A function reserves memory in the journal before it changes the state. So take_back() can restore
 * the state of the beginning of a call after any error, lack of memory included.
 */
#ifndef GPOLICY_CLUSTER_H
#define GPOLICY_CLUSTER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Why a node cannot take an instance, in the order of FailReason. */
enum reason { MEM, DISK, CPU, N1, TAGS, MIG, DISK_COUNT, SPINDLES, INTERNAL, FITS };
enum { REASONS = FITS };

/* The components of the score, in the order in which they are added. */
enum component {
    FREE_MEMORY, FREE_DISK, N1_COUNT, RESERVED, OFFLINE_ALL, OFFLINE_PRIMARIES, CPU_RATIO, CPU_LOAD, MEMORY_LOAD,
    DISK_LOAD, NET_LOAD, PRIMARY_TAGS, SPINDLE_RATIO, FORTH_MEMORY, FORTH_DISK, FORTH_CPU, FORTH_SPINDLES, LOCATION,
    LOCATION_EXCLUSION, RESERVED_TOTAL, COMPONENTS
};

/* How a call ended. */
enum status {
    DONE, OUT_OF_MEMORY, INVALID, STOPPED, DIVISION_BY_ZERO, MISSING_NODE, ASK_THE_LAW, TOO_MANY_PLACED, TOO_DEEP, TOO_LONG
};

/* How the N+1 test treats an instance: fail over, move, or place a copy elsewhere. */
enum evacuation { FAIL_OVER, MOVE, COPY };

enum { NOWHERE = -1, UNKNOWN_SPINDLES = -1 };

struct spec { int64_t memory, cpus, disk_size, disk_count, spindle_use; };
struct spec_pair { struct spec min, max; };
struct policy { const struct spec_pair *pairs; int64_t count, templates; /* a bit for each template */ };

/* An instance, existing or wanted. `index` is its name in the lists of nodes; `primary` and `secondary` are rows. */
struct instance {
    int64_t index, memory, disk, vcpus, spindle_use, spindles, disks, least_disk, most_disk;
    int64_t primary, secondary, secondary_index, location_score, desired, disk_template;
    enum evacuation evacuation;
    bool diskless, online, uses_memory, needs_secondary_memory, local;
    bool forthcoming;    /* not created yet: it counts only in the `forth_*` fields of nodes, and in no list */
    bool ignores_policy; /* no policy is held against it (beyond htools) */
    bool no_primary_entry, no_secondary_entry; /* the lists of its nodes do not have it under its own number */
    const int64_t *tags;
    int64_t tag_count;
    double load[4];
};

/* The properties of a node that no placement changes. */
struct facts {
    int64_t group, policy, location_class, migration_class, low_disk, spindles;
    bool exclusive, offline, examined, undefined; /* undefined: online, and its score divides by 0 */
    double total_memory, total_disk, total_cpus, cpu_speed, vcpu_ratio, high_spindles;
    const int64_t *locations;
    int64_t location_count;
};

/* The properties of a node that placements change; `values` is its share of each component of the score. */
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

/* Memory that a secondary reserves for the failure of the primary `node`. */
struct share { int64_t node, memory; };
struct shares { struct share *items; int64_t count, capacity; };

/* Entries of the journal, from which take_back() restores the state. */
struct saved_node { int64_t row, shares, shares_from; struct node node; };
struct saved_tag { int64_t row, tag; int32_t before; bool located; };

/* A length of the journal, to which take_back() can return. */
struct mark { int64_t nodes, shares, tags; };

struct journal {
    struct saved_node *nodes;
    struct share *shares;
    struct saved_tag *tags;
    int64_t node_capacity, share_capacity, tag_capacity;
    struct mark top;
};

/* For each location and tag the number of primaries of online nodes that have the tag; the sum of these counts, and how
 * many of them are above 0. */
struct exclusions { int64_t *counts, sum, above; };

/* Instances in the order of their numbers in the cluster's table; those placed by the engine come last. `replaced`
 * counts how often a record has replaced another one. */
struct table {
    struct instance *items;
    int64_t *numbers;
    int64_t count, capacity, given, replaced;
};

/* One instance placed by the engine: the slot of its record, and the state before it. */
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
    bool open;  /* a cluster has been read */
    bool moved; /* an instance was moved: lists, and records unless balanced, no longer show where it is */
    bool balanced; /* moves of balancing were taken, and nothing else */
    enum status status;
    atomic_int stop; /* set by another thread */
    int64_t allowed, steps_left; /* steps of work: of each call, and of this one; one takes about 0.2 µs */
    int64_t missing_index;
    int64_t last_failing;   /* the node that could not be evacuated in the last failed test */
    bool last_was_simulated; /* whether that took a simulation */
    bool refused; /* in this run the N+1 test kept an instance off a candidate that would take it */
    bool any_alike, undecided; /* of best_row(): whether any of nodes that are alike will do; one was not found so */

    int64_t node_count, group_count, policy_count, list_count, tag_count, location_count;
    int64_t location_classes, migration_classes, desired_classes;
    struct facts *facts;
    struct policy *policies;
    struct spec_pair *pairs;
    const int64_t *common_locations, *may_migrate, *desired_misses; /* tables indexed by classes */
    int64_t *list_of_primary, *list_of_secondary; /* for each row its list of candidates, or NOWHERE */
    int64_t *integers; /* the input, into which tables, locations and tags point */
    bool mirrored;     /* candidates are pairs of nodes */
    bool force, capacity_checks, restricted_moves, any_exclusive;
    int64_t failures; /* nodes of a group that may fail at once in the N+1 test; htools: 1 */
    bool cpus;        /* nodes that take over must keep their vcpu-ratio; htools: no */
    bool each;        /* every placement of a run is tested; htools: not those of mirrored instances */
    bool any_undefined; /* a node makes the score NaN */
    double weights[COMPONENTS]; /* of the components of the score */

    struct node *nodes;
    struct list *primaries; /* for each node slots of `table`, the newest last; see MOST_LISTED of input.c */
    struct shares *peers;
    int32_t *tags, *located_tags; /* primaries by node and tag; the second without forthcoming ones */
    struct exclusions exclusions; /* computed from `located_tags` */
    struct table table;
    int64_t unmirrored; /* instances of the input that are not mirrored */
    int64_t missing;    /* mirrored instances that have a primary but no secondary */
    bool clashing;      /* two instances share a number: N+1 must be simulated */
    bool doubled;       /* a node lists an instance twice: its moves in the N+1 test must be simulated */
    int64_t *changed;   /* for each row the value of `clock` at its last change */
    int64_t clock;
    struct journal journal;
    struct placements placements;
    int64_t version, versions; /* the number of the present state, and the count of states so far */
    const int64_t *kept_tags; /* of the last wanted instance; valid as long as the engine lives */
    int64_t kept_tag_count;
    struct pieces pieces; /* all memory of the engine */

    struct outcomes *outcomes;
    struct pair_search *pair_search;
    struct whole_search *whole_search;
    struct evacuating *evacuating;
    struct room *room;
    struct memo *memo;
    struct steps *steps;
    struct bounds *bounds;
    struct buffer levels, rows, flags, scored, scores, moving, merged, contenders, chains;
};

enum { MOST_FAILURES = 8 };
/* Whether the N+1 test is stricter than that of htools. */
static inline bool is_strict(const struct engine *engine) { return engine->failures > 1 || engine->cpus; }

void fail(struct engine *engine, enum status status);
static inline bool failed(const struct engine *engine) { return engine->status != DONE; }
/* Whether the call must end, now that so many steps come: the caller has stopped it, there is an error, or none are left. */
bool ended_after(struct engine *engine, int64_t steps);
static inline bool ended(struct engine *engine) { return ended_after(engine, 1); }

/* Return zeroed memory for `count` items, or NULL after fail(). It lives until release() or the end of the engine. */
void *zeroed(struct engine *engine, int64_t count, size_t size);
/* Return `buffer` with room for `count` items of `size`, or NULL after fail(). Its content stays. */
void *reserve(struct engine *engine, struct buffer *buffer, int64_t count, size_t size);
/* Make room for `count` items in a growing array; false after fail(). */
bool grow(struct engine *engine, void *items, int64_t *capacity, int64_t count, size_t size);
void release(struct engine *engine, void *piece);
void release_all(struct engine *engine);

/* Save the node at `row` for take_back(). After false (and fail()) the node must not be changed. */
bool save_node(struct engine *engine, int64_t row);
/* Set the number of primaries of a node with a tag: in `tags`, or in `located_tags` and `exclusions`. */
void set_tag(struct engine *engine, int64_t row, int64_t tag, bool located, int32_t count);
/* Count `change` more primaries with a tag in all locations of a node. */
void count_exclusions(struct engine *engine, int64_t row, int64_t tag, int64_t change);
void take_back(struct engine *engine, struct mark to);

int64_t peer_memory(const struct engine *engine, int64_t row, int64_t peer);
/* Make room for one more peer of a node. */
bool reserve_peer(struct engine *engine, int64_t row);
/* Set the memory that a node reserves for a peer, or drop the peer without `keep`. Call reserve_peer() first. */
void set_peer_memory(struct engine *engine, int64_t row, int64_t peer, int64_t memory, bool keep);
int64_t most_peer_memory(const struct engine *engine, int64_t row);
static inline int64_t common_locations(const struct engine *engine, int64_t row, int64_t other) {
    return engine->common_locations[engine->facts[row].location_class * engine->location_classes +
                                    engine->facts[other].location_class];
}
bool may_migrate(const struct engine *engine, int64_t source, int64_t target);

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

#endif
