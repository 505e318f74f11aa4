#include "dedicated.h"

#include <string.h>

#include "node_changes.h"
#include "policy_check.h"

enum { MOST_SLOTS = 1 << 20 };

/* The minimal sizes of all policies as instances (`sizes`, `width` for each policy), and how many of them fit on each
 * node now (`slots`, `width` for each row, counted when they are first needed: `known`). `lost`, `lost_of_primary` and
 * `least_lost` are losses by size. */
struct dedicated {
    struct engine *engine;
    const struct instance *instance;
    int64_t width, *slots, *lost, *lost_of_primary, *least_lost, disk_left;
    struct instance *sizes;
    bool *known;
};

/* Make plain instances of a policy's minimal sizes, the biggest disk first. They have no list of disks and so use no
 * spindles (htools, Dedicated.hs). */
static void make_sizes(const struct policy *policy, struct instance *sizes) {
    for (int64_t count = 0; count < policy->count; count++) {
        const struct spec *spec = &policy->pairs[count].min;
        int64_t to = count;
        for (; to > 0 && sizes[to - 1].disk < spec->disk_size; to--) sizes[to] = sizes[to - 1];
        sizes[to] = (struct instance){
            .index = NOWHERE, .memory = spec->memory, .disk = spec->disk_size, .vcpus = spec->cpus, .spindle_use = 1,
            .primary = NOWHERE, .secondary = NOWHERE, .evacuation = COPY, .online = true, .uses_memory = true,
            .local = true, .load = {1.0, 1.0, 1.0, 1.0},
        };
    }
}

/* Return how many instances of a size fit on a node. */
static int64_t slots_on(struct engine *engine, int64_t row, struct node node, const struct instance *size) {
    int64_t count = 0;
    struct node before = engine->nodes[row];
    for (;; count++) {
        engine->nodes[row] = node;
        enum reason reason = primary_reason(engine, row, size, false);
        if (reason != FITS || count == MOST_SLOTS) break;
        with_primary(engine, row, size, &node);
    }
    engine->nodes[row] = before;
    if (count == MOST_SLOTS) fail(engine, TOO_MANY_PLACED);
    return count;
}

/* Add the slots that a node loses, by the sizes of `policy`, when it becomes `after`. */
static void add_loss(struct dedicated *dedicated, int64_t policy, int64_t row, const struct node *after) {
    struct engine *engine = dedicated->engine;
    int64_t *slots = &dedicated->slots[row * dedicated->width];
    const struct instance *sizes = &dedicated->sizes[policy * dedicated->width];
    for (int64_t size = 0; size < engine->policies[policy].count && !ended(engine); size++) {
        if (!dedicated->known[row]) slots[size] = slots_on(engine, row, engine->nodes[row], &sizes[size]);
        dedicated->lost[size] += slots[size] - slots_on(engine, row, *after, &sizes[size]);
    }
    dedicated->known[row] = true;
}

/* Whether the best loss so far, or for equal losses the disk that is left, is less than that of the present candidate.
 */
static bool best_is_less(const struct dedicated *dedicated, int64_t disk_left) {
    for (int64_t size = 0; size < dedicated->width; size++) {
        int64_t best = dedicated->least_lost[size], own = dedicated->lost[size];
        if (best != own) return best < own;
    }
    return dedicated->disk_left < disk_left;
}

/* Count a candidate, and keep it unless an earlier one is better. */
static void judge_loss(struct dedicated *dedicated, struct attempt *attempt, int64_t primary, int64_t secondary,
                       int64_t disk_left) {
    attempt->counts.successes++;
    if (attempt->primary != NOWHERE && best_is_less(dedicated, disk_left)) return;
    attempt->primary = primary;
    attempt->secondary = secondary;
    dedicated->disk_left = disk_left;
    memcpy(dedicated->least_lost, dedicated->lost, (size_t)dedicated->width * sizeof *dedicated->lost);
}

static void try_secondaries(struct dedicated *dedicated, int64_t primary, const struct node *with,
                            struct attempt *attempt) {
    struct engine *engine = dedicated->engine;
    const struct instance *instance = dedicated->instance;
    int64_t policy = engine->facts[primary].policy;
    for (int64_t row = 0; row < engine->node_count && !ended(engine); row++) {
        if (row == primary || engine->list_of_secondary[row] != engine->list_of_primary[primary]) continue;
        if (engine->facts[row].policy != policy) fail(engine, ASK_THE_LAW);
        int64_t peer = peer_memory(engine, row, primary);
        enum reason reason = secondary_reason(engine, row, instance, peer, false, false);
        if (reason != FITS) {
            attempt->counts.failures[reason]++;
            continue;
        }
        struct node node = engine->nodes[row];
        with_secondary(engine, row, instance, peer, &node);
        memcpy(dedicated->lost, dedicated->lost_of_primary, (size_t)dedicated->width * sizeof *dedicated->lost);
        add_loss(dedicated, policy, row, &node);
        judge_loss(dedicated, attempt, primary, row, with->disk + node.disk);
    }
}

static void try_primary(struct dedicated *dedicated, int64_t row, struct attempt *attempt) {
    struct engine *engine = dedicated->engine;
    const struct instance *instance = dedicated->instance;
    int64_t others = 1;
    if (engine->mirrored) {
        others = 0;
        for (int64_t other = 0; other < engine->node_count; other++) {
            others += other != row && engine->list_of_secondary[other] == engine->list_of_primary[row];
        }
    }
    enum reason reason = check_ipolicy(engine, row, instance, 0);
    if (reason == FITS) reason = primary_reason(engine, row, instance, engine->force);
    if (reason != FITS) {
        attempt->counts.failures[reason] += others;
        return;
    }
    struct node node = engine->nodes[row];
    with_primary(engine, row, instance, &node);
    memset(dedicated->lost, 0, (size_t)dedicated->width * sizeof *dedicated->lost);
    add_loss(dedicated, engine->facts[row].policy, row, &node);
    if (engine->mirrored) {
        memcpy(dedicated->lost_of_primary, dedicated->lost, (size_t)dedicated->width * sizeof *dedicated->lost);
        try_secondaries(dedicated, row, &node, attempt);
        return;
    }
    judge_loss(dedicated, attempt, row, NOWHERE, node.disk);
}

/* Make the sizes of all policies. The law answers if a size is negative or takes nothing, so that any number fits. */
static void make_all_sizes(struct dedicated *dedicated) {
    struct engine *engine = dedicated->engine;
    for (int64_t number = 0; number < engine->policy_count; number++) {
        const struct policy *policy = &engine->policies[number];
        make_sizes(policy, &dedicated->sizes[number * dedicated->width]);
        for (int64_t place = 0; place < policy->count; place++) {
            const struct spec *spec = &policy->pairs[place].min;
            bool nothing = spec->memory == 0 && spec->disk_size == 0 && spec->cpus == 0;
            if (nothing || spec->memory < 0 || spec->disk_size < 0 || spec->cpus < 0) fail(engine, ASK_THE_LAW);
        }
    }
}

void try_dedicated(struct engine *engine, const struct instance *instance, struct attempt *attempt) {
    struct dedicated dedicated = {.engine = engine, .instance = instance};
    *attempt = (struct attempt){.primary = NOWHERE, .secondary = NOWHERE};
    for (int64_t number = 0; number < engine->policy_count; number++) {
        dedicated.width = most(dedicated.width, engine->policies[number].count);
    }
    int64_t width = dedicated.width, slots = width * engine->node_count;
    dedicated.sizes = zeroed(engine, width * engine->policy_count, sizeof *dedicated.sizes);
    dedicated.slots = zeroed(engine, slots + 3 * width, sizeof *dedicated.slots);
    dedicated.known = zeroed(engine, engine->node_count, sizeof *dedicated.known);
    if (!failed(engine)) {
        dedicated.lost = dedicated.slots + slots;
        dedicated.lost_of_primary = dedicated.lost + width;
        dedicated.least_lost = dedicated.lost_of_primary + width;
        make_all_sizes(&dedicated);
    }
    for (int64_t row = 0; row < engine->node_count && !ended(engine); row++) {
        if (engine->list_of_primary[row] != NOWHERE) try_primary(&dedicated, row, attempt);
    }
    release(engine, dedicated.sizes);
    release(engine, dedicated.slots);
    release(engine, dedicated.known);
}
