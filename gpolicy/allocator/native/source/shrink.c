#include "shrink.h"

#include <math.h>

enum { MEMORY_UNIT = 64, DISK_UNIT = 256 };

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

/* What a shrink makes smaller, by how much, and the shrinks until some check of it changes its answer. */
struct demand { int64_t value, unit, steps; };

/* Some check changes its answer where the demand falls below `number`. */
static void consider(struct demand *demand, int64_t number) {
    if (number > demand->value) return;
    demand->steps = least(demand->steps, (demand->value - number) / demand->unit + 1);
}

static void consider_memory(const struct engine *engine, int64_t row, struct demand *demand) {
    const struct node *node = &engine->nodes[row];
    const struct shares *peers = &engine->peers[row];
    consider(demand, node->unallocated);
    consider(demand, node->unallocated - node->reserved);
    consider(demand, node->forth_memory);
    for (int64_t place = 0; engine->mirrored && place < peers->count; place++) {
        consider(demand, node->unallocated - peers->items[place].memory);
    }
}

static void consider_disk(const struct engine *engine, int64_t row, struct demand *demand) {
    const struct node *node = &engine->nodes[row];
    int64_t low = engine->facts[row].low_disk - 1;
    consider(demand, node->disk);
    consider(demand, node->disk - low);
    consider(demand, node->forth_disk);
    consider(demand, node->forth_disk - low);
}

/* The check compares a quotient with the ratio, so the number at which it changes is looked for near their product. */
static void consider_cpus(const struct facts *facts, int64_t used, struct demand *demand) {
    double product = facts->vcpu_ratio * facts->total_cpus;
    if (facts->total_cpus == 0.0) product = 0.0; /* any number of CPUs, divided by 0, is too many; none is not */
    if (!(fabs(product) < 0x1p52)) return;       /* no number of CPUs comes near it */
    int64_t number = (int64_t)product - used;
    for (int64_t near = -2; near <= 2; near++) consider(demand, number + near);
}

static void consider_node(const struct engine *engine, int64_t row, enum reason reason, struct demand *demand) {
    const struct node *node = &engine->nodes[row];
    if (reason == MEM) consider_memory(engine, row, demand);
    if (reason == DISK) consider_disk(engine, row, demand);
    if (reason == CPU && engine->facts[row].vcpu_ratio >= 0.0) {
        consider_cpus(&engine->facts[row], node->cpus, demand);
        consider_cpus(&engine->facts[row], node->forth_cpus, demand);
    }
    if (reason == SPINDLES && engine->facts[row].exclusive) {
        consider(demand, node->free_spindles + 1);
        consider(demand, node->forth_spindles + 1);
    }
}

static int64_t bound_of(const struct spec *spec, enum reason reason) {
    if (reason == MEM) return spec->memory;
    if (reason == DISK) return spec->disk_size;
    return reason == CPU ? spec->cpus : spec->spindle_use;
}

static void consider_policies(const struct engine *engine, enum reason reason, struct demand *least_of,
                              struct demand *most_of) {
    for (int64_t number = 0; number < engine->policy_count; number++) {
        const struct policy *policy = &engine->policies[number];
        for (int64_t place = 0; place < policy->count; place++) {
            consider(least_of, bound_of(&policy->pairs[place].min, reason));
            consider(most_of, bound_of(&policy->pairs[place].max, reason) + 1);
        }
    }
}

static int64_t steps_to(const struct engine *engine, const struct instance *instance, enum reason reason, bool nodes) {
    struct demand of_nodes, least_of, most_of;
    switch (reason) {
        case MEM:
            of_nodes = least_of = most_of = (struct demand){instance->memory, MEMORY_UNIT, INT64_MAX};
            break;
        case DISK:
            /* a policy looks at each disk, a node at all together */
            of_nodes = (struct demand){instance->disk, DISK_UNIT * instance->disks, INT64_MAX};
            least_of = (struct demand){instance->least_disk, DISK_UNIT, INT64_MAX};
            most_of = (struct demand){instance->most_disk, DISK_UNIT, INT64_MAX};
            break;
        case CPU:
            of_nodes = least_of = most_of = (struct demand){instance->vcpus, 1, INT64_MAX};
            break;
        default:
            of_nodes = least_of = most_of = (struct demand){instance->spindles, 1, INT64_MAX};
    }
    for (int64_t row = 0; nodes && row < engine->node_count; row++) consider_node(engine, row, reason, &of_nodes);
    consider_policies(engine, reason, &least_of, &most_of);
    return least(of_nodes.steps, least(least_of.steps, most_of.steps));
}

int64_t steps_until_change(const struct engine *engine, const struct instance *instance, enum reason reason) {
    return steps_to(engine, instance, reason, true);
}

int64_t steps_until_other_bounds(const struct engine *engine, const struct instance *instance, enum reason reason) {
    return steps_to(engine, instance, reason, false);
}
