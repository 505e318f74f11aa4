#include "policy_check.h"

/* `sign` is -1 for a lower bound and 1 for an upper one. */
static enum reason check_bound(const struct spec *bound, const struct instance *instance, bool exclusive, int sign,
                               unsigned unbounded) {
    if (!(unbounded & 1u << MEM) && (instance->memory - bound->memory) * sign > 0) return MEM;
    if (!(unbounded & 1u << DISK) && instance->disks > 0) {
        int64_t disk = sign < 0 ? instance->least_disk : instance->most_disk;
        if ((disk - bound->disk_size) * sign > 0) return DISK;
    }
    if (!(unbounded & 1u << CPU) && (instance->vcpus - bound->cpus) * sign > 0) return CPU;
    int64_t spindles = exclusive ? instance->spindles : instance->spindle_use;
    if (exclusive && spindles == UNKNOWN_SPINDLES) return SPINDLES;
    if (!(unbounded & 1u << SPINDLES) && (spindles - bound->spindle_use) * sign > 0) return SPINDLES;
    if (!instance->diskless && (instance->disks - bound->disk_count) * sign > 0) return DISK_COUNT;
    return FITS;
}

static enum reason check_pair(const struct spec_pair *pair, const struct instance *instance, bool exclusive,
                              unsigned unbounded) {
    enum reason verdict = check_bound(&pair->min, instance, exclusive, -1, unbounded);
    return verdict == FITS ? check_bound(&pair->max, instance, exclusive, 1, unbounded) : verdict;
}

/* If no pair takes the instance, the reason is that of the first pair. */
enum reason check_ipolicy(const struct engine *engine, int64_t row, const struct instance *instance,
                         unsigned unbounded) {
    const struct facts *facts = &engine->facts[row];
    const struct policy *policy = &engine->policies[facts->policy];
    enum reason verdict = FITS;
    if (instance->ignores_policy) return FITS;
    for (int64_t place = policy->count - 1; place >= 0; place--) {
        const struct spec_pair *pair = &policy->pairs[place];
        bool memory_alone = instance->memory < pair->min.memory || instance->memory > pair->max.memory;
        if (memory_alone && place > 0 && !(unbounded & 1u << MEM)) continue; /* a fast way to skip most pairs */
        verdict = check_pair(pair, instance, facts->exclusive, unbounded);
        if (verdict == FITS) break;
    }
    if (verdict == FITS && !(policy->templates >> instance->disk_template & 1)) return DISK;
    return verdict;
}
