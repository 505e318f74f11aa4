#include "shrink.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MEMORY_UNIT = 64, DISK_UNIT = 256 };

int64_t possible_shrinks(const struct instance *instance, enum reason reason) {
    switch (reason) {
        case MEM:
            return most(0, instance->memory / MEMORY_UNIT - 1);
        case DISK:
            return instance->disks > 0 ? most(0, instance->least_disk / DISK_UNIT - 1) : 0;
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

enum { STEPS = 1 << 13 };

/* The shrinks by one reason at which some node changes its answer: bit n is set if the answer changes between n - 1 and
 * n units less than `top`. It holds for one state, in which it is needed many times. */
struct steps { int64_t version, top, unit; enum reason reason; bool known; uint64_t changes[STEPS / 64]; };

/* The resource that a shrink reduces, its unit, and the greatest number below which some check changes its answer. If
 * `steps` is given, all such numbers are recorded there. */
struct demand { int64_t value, unit, highest; struct steps *steps; };

static void consider(struct demand *demand, int64_t number) {
    if (number > demand->value) return;
    demand->highest = most(demand->highest, number);
    if (demand->steps == NULL) return;
    int64_t step = (demand->value - number) / demand->unit + 1;
    if (step < STEPS) demand->steps->changes[step / 64] |= (uint64_t)1 << (step % 64);
}

static struct demand demand_of(int64_t value, int64_t unit) { return (struct demand){value, unit, INT64_MIN, NULL}; }

static int64_t steps_below(const struct demand *demand) {
    return demand->highest == INT64_MIN ? INT64_MAX : (demand->value - demand->highest) / demand->unit + 1;
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

/* The check compares a quotient with the ratio, so the number at which it changes is near the product of ratio and
 * total. */
static void consider_cpus(const struct facts *facts, int64_t used, struct demand *demand) {
    double product = facts->vcpu_ratio * facts->total_cpus;
    if (facts->total_cpus == 0.0) product = 0.0; /* divided by 0, any number of CPUs is too many, except none */
    if (!(fabs(product) < 0x1p52)) return;       /* no number of CPUs is near it */
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

/* Return the recorded steps from `demand` to the next change, or 0 if that is unknown. */
static int64_t noted_steps(const struct engine *engine, const struct demand *demand, enum reason reason) {
    const struct steps *steps = engine->steps;
    bool same = steps->known && steps->version == engine->version && steps->reason == reason &&
                steps->unit == demand->unit && steps->top >= demand->value;
    if (!same || (steps->top - demand->value) % demand->unit != 0) return 0;
    int64_t from = (steps->top - demand->value) / demand->unit;
    for (int64_t step = from + 1; step < STEPS;) {
        uint64_t word = steps->changes[step / 64] >> (step % 64);
        if (word & 1) return step - from;
        step = word != 0 ? step + 1 : (step / 64 + 1) * 64;
    }
    return 0;
}

/* Return the number of steps until some node changes its answer. */
static int64_t steps_of_nodes(struct engine *engine, struct demand demand, enum reason reason) {
    if (engine->steps == NULL) engine->steps = zeroed(engine, 1, sizeof *engine->steps);
    if (failed(engine)) return 1;
    int64_t noted = noted_steps(engine, &demand, reason);
    if (noted > 0) return noted;
    struct steps *steps = demand.steps = engine->steps;
    memset(steps->changes, 0, sizeof steps->changes);
    for (int64_t row = 0; row < engine->node_count; row++) consider_node(engine, row, reason, &demand);
    steps->version = engine->version;
    steps->top = demand.value;
    steps->unit = demand.unit;
    steps->reason = reason;
    steps->known = true;
    return steps_below(&demand);
}

static int64_t bound_of(const struct spec *spec, enum reason reason) {
    if (reason == MEM) return spec->memory;
    if (reason == DISK) return spec->disk_size;
    return reason == CPU ? spec->cpus : spec->spindle_use;
}

/* The bounds of all policies on one resource, in order: the lower bounds, and the first numbers above the upper ones.
 */
struct bounds { int64_t count, *least_of, *most_of; };

static int by_number(const void *one, const void *other) {
    int64_t left = *(const int64_t *)one, right = *(const int64_t *)other;
    return (left > right) - (left < right);
}

/* Return the bounds for `reason`, computed once; NULL after fail(). */
static const struct bounds *bounds_for(struct engine *engine, enum reason reason) {
    if (engine->bounds == NULL) engine->bounds = zeroed(engine, REASONS, sizeof *engine->bounds);
    if (failed(engine)) return NULL;
    struct bounds *bounds = &engine->bounds[reason];
    if (bounds->least_of != NULL) return bounds;
    int64_t pairs = 0;
    for (int64_t number = 0; number < engine->policy_count; number++) pairs += engine->policies[number].count;
    bounds->least_of = zeroed(engine, most(2 * pairs, 1), sizeof *bounds->least_of);
    if (failed(engine)) return NULL;
    bounds->most_of = bounds->least_of + pairs;
    for (int64_t number = 0; number < engine->policy_count; number++) {
        const struct policy *policy = &engine->policies[number];
        for (int64_t place = 0; place < policy->count; place++) {
            bounds->least_of[bounds->count] = bound_of(&policy->pairs[place].min, reason);
            bounds->most_of[bounds->count++] = bound_of(&policy->pairs[place].max, reason) + 1;
        }
    }
    qsort(bounds->least_of, (size_t)pairs, sizeof *bounds->least_of, by_number);
    qsort(bounds->most_of, (size_t)pairs, sizeof *bounds->most_of, by_number);
    return bounds;
}

/* Consider the greatest of `count` ordered numbers that is not above the demand. */
static void consider_greatest(struct demand *demand, const int64_t *numbers, int64_t count) {
    int64_t low = 0, high = count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (numbers[middle] <= demand->value) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low > 0) consider(demand, numbers[low - 1]);
}

int64_t steps_until_other_bounds(struct engine *engine, const struct instance *instance, enum reason reason) {
    int64_t value = reason == MEM ? instance->memory : reason == CPU ? instance->vcpus : instance->spindles;
    int64_t unit = reason == MEM ? MEMORY_UNIT : 1;
    struct demand least_of = demand_of(value, unit), most_of = least_of;
    if (reason == DISK) { /* each disk counts */
        least_of = demand_of(instance->least_disk, DISK_UNIT);
        most_of = demand_of(instance->most_disk, DISK_UNIT);
    }
    const struct bounds *bounds = bounds_for(engine, reason);
    if (bounds == NULL) return 1;
    consider_greatest(&least_of, bounds->least_of, bounds->count);
    consider_greatest(&most_of, bounds->most_of, bounds->count);
    return least(steps_below(&least_of), steps_below(&most_of));
}

int64_t steps_until_change(struct engine *engine, const struct instance *instance, enum reason reason) {
    struct demand demand = demand_of(instance->spindles, 1);
    if (reason == MEM) demand = demand_of(instance->memory, MEMORY_UNIT);
    if (reason == DISK) demand = demand_of(instance->disk, DISK_UNIT * instance->disks); /* the sum counts */
    if (reason == CPU) demand = demand_of(instance->vcpus, 1);
    return least(steps_of_nodes(engine, demand, reason), steps_until_other_bounds(engine, instance, reason));
}
