#include "shrink.h"

int64_t possible_shrinks(const struct instance *instance, enum reason reason) {
    switch (reason) {
        case MEM:
            return most(0, instance->memory / MEMORY_UNIT - 1);
        case DISK:
            return most(0, instance->least_disk / DISK_UNIT - 1);
        case CPU:
            return most(0, instance->vcpus - 1);
        case SPINDLES:
            return instance->disks == 1 && instance->spindles != UNKNOWN_SPINDLES ? most(0, instance->spindles - 1) : 0;
        default:
            return 0;
    }
}

struct instance shrink(const struct instance *instance, enum reason reason, int64_t steps) {
    struct instance smaller = *instance;
    if (reason == MEM) smaller.memory -= MEMORY_UNIT * steps;
    if (reason == CPU) smaller.vcpus -= steps;
    if (reason == SPINDLES) smaller.spindles -= steps;
    if (reason == DISK) {
        smaller.least_disk -= DISK_UNIT * steps;
        smaller.most_disk -= DISK_UNIT * steps;
        smaller.disk -= DISK_UNIT * steps * instance->disks;
    }
    return smaller;
}

/* The greatest number at or below `value` at which some check of a demand changes its answer. */
struct boundary { int64_t value, highest; };
static void consider(struct boundary *boundary, int64_t number) {
    if (number <= boundary->value) boundary->highest = most(boundary->highest, number);
}

static void consider_nodes(const struct engine *engine, enum reason reason, struct boundary *boundary) {
    for (int64_t row = 0; row < engine->node_count; row++) {
        const struct node *node = &engine->nodes[row];
        if (reason == MEM) {
            consider(boundary, node->unallocated);
            consider(boundary, node->unallocated - node->reserved);
            consider(boundary, node->forth_memory);
            const struct shares *peers = &engine->peers[row];
            for (int64_t place = 0; engine->mirrored && place < peers->count; place++) {
                consider(boundary, node->unallocated - peers->items[place].memory);
            }
        } else {
            int64_t low = engine->facts[row].low_disk - 1;
            consider(boundary, node->disk);
            consider(boundary, node->disk - low);
            consider(boundary, node->forth_disk);
            consider(boundary, node->forth_disk - low);
        }
    }
}

static void consider_policies(const struct engine *engine, enum reason reason, struct boundary *boundary) {
    for (int64_t number = 0; number < engine->policy_count; number++) {
        const struct policy *policy = &engine->policies[number];
        for (int64_t place = 0; place < policy->count; place++) {
            const struct spec_pair *pair = &policy->pairs[place];
            consider(boundary, reason == MEM ? pair->min.memory : pair->min.disk_size);
            consider(boundary, (reason == MEM ? pair->max.memory : pair->max.disk_size) + 1);
        }
    }
}

static int64_t steps_to(const struct engine *engine, const struct instance *instance, enum reason reason, bool nodes) {
    struct boundary boundary = {reason == MEM ? instance->memory : instance->disk, INT64_MIN / 4};
    if (instance->disks != 1 || instance->least_disk != instance->disk) return 1;
    if (nodes) consider_nodes(engine, reason, &boundary);
    consider_policies(engine, reason, &boundary);
    return (boundary.value - boundary.highest) / unit_of(reason) + 1;
}

int64_t steps_until_change(const struct engine *engine, const struct instance *instance, enum reason reason) {
    return steps_to(engine, instance, reason, true);
}

int64_t steps_until_other_bounds(const struct engine *engine, const struct instance *instance, enum reason reason) {
    return steps_to(engine, instance, reason, false);
}
