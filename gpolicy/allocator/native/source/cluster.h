/* The state of a cluster as the engine keeps it, and how it is changed and taken back.
 *
 * Names are those of the law (gpolicy/allocator/node.py, model.py). Nodes are rows, in ascending index order; sizes are
 * MiB. Everything is finite and below 2^51 in size, so sums of a few of them fit in 64 bits and are exact as doubles.
 */
#ifndef GPOLICY_CLUSTER_H
#define GPOLICY_CLUSTER_H

#include <setjmp.h>
#include <stdbool.h>
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

/* How a call ended. After anything but DONE the state is as before the call. */
enum status { DONE, OUT_OF_MEMORY, INVALID, STOPPED, DIVISION_BY_ZERO, MISSING_NODE, ASK_THE_LAW };

/* How the N+1 test treats an instance: fail over, move, or place a copy. */
enum evacuation { FAIL_OVER, MOVE, COPY };

enum { NOWHERE = -1, UNKNOWN_SPINDLES = -1 };

struct spec { int64_t memory, cpus, disk_size, disk_count, spindle_use; };
struct spec_pair { struct spec min, max; };
struct policy { const struct spec_pair *pairs; int64_t count, templates; /* bit per template */ };

/* An instance, existing or wished for. `index` is what node lists call it; `primary` and `secondary` are rows. */
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
    bool exclusive, offline, examined;
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

struct list { int64_t *items; int64_t count, capacity; };

/* Memory kept for the failure of `node`. */
struct share { int64_t node, memory; };
struct shares { struct share *items; int64_t count, capacity; };

struct saved_node { int64_t row, shares, shares_from; struct node node; };
struct saved_tag { int64_t row, tag; int32_t before; bool located; };

/* Per location and tag, how many primaries of online nodes have it; the sum of all, and how many are above 0. */
struct exclusions { int64_t *counts, sum, above; };

/* Rows that have changed since the list was emptied; not kept where `changed` is NULL. */
struct changes { int64_t *rows, count; bool *changed; };

/* Where the journals stood. */
struct mark { int64_t nodes, shares, tags; };

/* One instance placed by us. */
struct placed {
    int64_t primary, secondary, slot, version;
    bool clashing;
    struct instance instance, replaced;
    struct mark before;
};

/* Places of working memory, one per use, so that nothing is overwritten while it is needed. */
enum {
    TRIAL_PRIMARY, TRIAL_SECONDARY, TRIAL_POLICIES, LAST_TRIAL, SINGLE_AFTER, SINGLE_TABLE, SINGLE_LINES,
    SINGLE_SCORES, SINGLE_KEEP, PAIR_PRIMARY, PAIR_SECONDARY, PAIR_ROWS, PAIR_MEMBERS, PAIR_HASHES, PAIR_ORDER,
    CHECKED_ROWS, CHECKED_MOVING, CHECKED_BROKEN, EVACUATION_RESIDENTS, EVACUATION_TARGETS, ROOM_RESIDENTS,
    ROOM_NODES, ROOM_SIZES, MERGED_TAGS, ROWS, MOST_MOVING, REDUNDANCY_ROWS, LEVELS, SHARES_OF_MOVES, SCRATCHES
};

struct memo;
struct room;
struct tag_block;

struct engine {
    int64_t node_count, group_count, policy_count, list_count, tag_count, location_count;
    int64_t location_classes, migration_classes, desired_classes;
    struct facts *facts;
    struct node *nodes;
    struct list *primaries; /* slots of `instances` per node, the newest last */
    struct shares *peers;
    int32_t *tags, *located_tags; /* per node and tag: primaries that have it; the second without forthcoming ones */
    struct exclusions exclusions; /* made of `located_tags` */
    struct changes changes;       /* for room.c */
    struct instance *instances;
    int64_t *keys; /* the number of each instance in the cluster's table */
    int64_t instance_count, instance_capacity, given_instances;
    struct policy *policies;
    struct spec_pair *pairs;
    const int64_t *common_locations, *may_migrate, *desired_misses; /* tables over classes */
    int64_t *list_of_primary, *list_of_secondary;             /* per row: its list of candidates, or NOWHERE */
    int64_t *integers;                                        /* the tables as given, which others point into */
    bool mirrored;                                            /* candidates are pairs */
    bool tried; /* whether there is a last trial (placement.c) */
    bool force, capacity_checks, restricted_moves, any_exclusive, only_mirrored, any_missing;
    bool clashing; /* a placement's number is not its own: no arithmetic, only simulation */

    struct saved_node *saved_nodes;
    struct share *saved_shares;
    struct saved_tag *saved_tags;
    int64_t saved_node_capacity, saved_share_capacity, saved_tag_capacity;
    struct mark top, settled; /* where the journals stand, and where they stood before the present call */
    struct placed *placements;
    int64_t placement_count, placement_capacity, placed_before;
    int64_t version, versions; /* a number of the present state, and how many states there were */

    int64_t redundant_version, last_failing;
    bool redundant_answer;
    struct memo *memo;
    struct room *room;
    struct tag_block *tag_blocks; /* the tags of instances wished for */
    void *scratch[SCRATCHES]; /* working memory of the modules, see scratch() */
    int64_t scratch_size[SCRATCHES];
    int64_t missing_index;
    volatile int32_t *stop;
    jmp_buf failure;
};

/* Leave the call with `status`. All memory belongs to the engine, so nothing is lost. */
_Noreturn void fail(struct engine *engine, enum status status);
/* Leave the call if the caller asked for it. */
void look_at_stop(struct engine *engine);

/* Return working memory number `place` with room for `count` items; what was in it is kept as far as it fits. */
void *scratch(struct engine *engine, int place, int64_t count, int64_t size);
/* Make room for `count` items in an array that grows. */
void *grown(struct engine *engine, void *items, int64_t *capacity, int64_t count, int64_t size);

/* Save the node at `row` so that take_back() can restore it. */
void save_node(struct engine *engine, int64_t row);
/* Set how many primaries of a node have a tag: in `tags`, or in `located_tags` and what is made of them. */
void set_tag(struct engine *engine, int64_t row, int64_t tag, bool located, int32_t count);
/* Count `change` more primaries with a tag in the locations of a node. */
void count_exclusions(struct engine *engine, int64_t row, int64_t tag, int64_t change);
void take_back(struct engine *engine, struct mark to);

/* Put `instance` on its nodes; `number` is its number in the table of instances. The checks must have passed. */
void place(struct engine *engine, const struct instance *instance, int64_t number);
/* Whether a new instance's number is its own: no other instance has it, and node lists call it by no other one. */
bool own_number(const struct engine *engine, const struct instance *instance, int64_t number);
/* Take back the last placements until `count` are left. */
void unplace(struct engine *engine, int64_t count);

int64_t peer_memory(const struct engine *engine, int64_t row, int64_t peer);
void set_peer_memory(struct engine *engine, int64_t row, int64_t peer, int64_t memory, bool keep);
int64_t most_peer_memory(const struct engine *engine, int64_t row);
int64_t common_locations(const struct engine *engine, int64_t row, int64_t other);
bool may_migrate(const struct engine *engine, int64_t source, int64_t target);

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

#endif
