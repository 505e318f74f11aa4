#include "node_changes.h"

/* Return the free spindles after adding the instance; -1 (which fails) if its own count is unknown. */
static int64_t spindles_after_adding(const struct facts *facts, const struct instance *instance, int64_t free) {
    if (!facts->exclusive) return 0;
    return instance->spindles == UNKNOWN_SPINDLES ? -1 : free - instance->spindles;
}

static int64_t spindles_after_removing(const struct facts *facts, const struct instance *instance, int64_t free) {
    if (!facts->exclusive) return 0;
    return instance->spindles == UNKNOWN_SPINDLES ? free : free + instance->spindles;
}

static double spindle_use_after(const struct facts *facts, const struct instance *instance, double used, int sign) {
    if (facts->exclusive) return 0.0;
    return instance->local ? used + (double)(sign * instance->spindle_use) : used;
}

static double disk_ratio(const struct facts *facts, int64_t spindles, int64_t disk) {
    if (facts->exclusive) return facts->spindles == 0 ? 1.0 : (double)spindles / (double)facts->spindles;
    return facts->total_disk == 0.0 ? 1.0 : (double)disk / facts->total_disk;
}

static bool too_many_cpus(const struct facts *facts, int64_t cpus) {
    return facts->vcpu_ratio >= 0.0 && facts->vcpu_ratio < (double)cpus / facts->total_cpus;
}

static enum reason forth_primary_reason(const struct facts *facts, const struct node *node,
                                        const struct instance *instance) {
    if (node->forth_memory - instance->memory <= 0) return MEM;
    if (instance->local) {
        int64_t disk = node->forth_disk - instance->disk;
        if (disk <= 0 || disk < facts->low_disk) return DISK;
        if (facts->exclusive && spindles_after_adding(facts, instance, node->forth_spindles) < 0) return SPINDLES;
        if (spindle_use_after(facts, instance, node->forth_spindle_use, 1) > facts->high_spindles) return DISK;
    }
    return too_many_cpus(facts, node->forth_cpus + cpus_used(instance)) ? CPU : FITS;
}

enum reason primary_reason(const struct engine *engine, int64_t row, const struct instance *instance, bool force) {
    const struct facts *facts = &engine->facts[row];
    const struct node *node = &engine->nodes[row];
    int64_t unallocated = node->unallocated - memory_used(instance);
    if (instance->forthcoming) return force ? FITS : forth_primary_reason(facts, node, instance);
    if (unallocated <= 0) return MEM;
    if (instance->local) {
        int64_t disk = node->disk - instance->disk;
        if (disk <= 0) return DISK;
        if (!force && disk < facts->low_disk) return DISK;
        if (facts->exclusive && spindles_after_adding(facts, instance, node->free_spindles) < 0) return SPINDLES;
    }
    if (force) return FITS;
    if (instance->local && spindle_use_after(facts, instance, node->spindle_use, 1) > facts->high_spindles) return DISK;
    if (unallocated <= node->reserved && !node->fails_n1) return MEM;
    if (too_many_cpus(facts, node->cpus + cpus_used(instance))) return CPU;
    for (int64_t place = 0; place < instance->tag_count; place++) {
        if (engine->tags[row * engine->tag_count + instance->tags[place]] > 0) return TAGS;
    }
    return forth_primary_reason(facts, node, instance);
}

bool keeps_vcpu_ratio(const struct engine *engine, int64_t row, const struct instance *instance) {
    return takes_cpus(engine, row, cpus_used(instance));
}

bool takes_cpus(const struct engine *engine, int64_t row, int64_t cpus) {
    return cpus <= 0 || !too_many_cpus(&engine->facts[row], engine->nodes[row].cpus + cpus);
}

static enum reason forth_secondary_reason(const struct facts *facts, const struct node *node,
                                          const struct instance *instance) {
    int64_t disk = node->forth_disk - instance->disk;
    if (disk <= 0 || disk < facts->low_disk) return DISK;
    if (facts->exclusive && spindles_after_adding(facts, instance, node->forth_spindles) < 0) return SPINDLES;
    if (spindle_use_after(facts, instance, node->forth_spindle_use, 1) > facts->high_spindles) return DISK;
    return memory_needed(instance) >= node->forth_memory ? MEM : FITS;
}

enum reason first_secondary_reason(const struct engine *engine, int64_t row, const struct instance *instance,
                                   int64_t peer, bool force, bool ignore_disk) {
    const struct facts *facts = &engine->facts[row];
    const struct node *node = &engine->nodes[row];
    int64_t disk = node->disk - instance->disk;
    if (instance->evacuation != FAIL_OVER) return DISK;
    if (instance->forthcoming) return FITS;
    if (!ignore_disk && disk <= 0) return DISK;
    if (!force && disk < facts->low_disk) return DISK;
    if (facts->exclusive && spindles_after_adding(facts, instance, node->free_spindles) < 0) return SPINDLES;
    if (force) return FITS;
    if (spindle_use_after(facts, instance, node->spindle_use, 1) > facts->high_spindles) return DISK;
    if (memory_kept(instance) >= node->unallocated) return MEM;
    int64_t reserved = most(node->reserved, peer + memory_kept(instance));
    return node->unallocated <= reserved && !node->fails_n1 ? MEM : FITS;
}

enum reason secondary_reason(const struct engine *engine, int64_t row, const struct instance *instance, int64_t peer,
                             bool force, bool ignore_disk) {
    enum reason reason = first_secondary_reason(engine, row, instance, peer, force, ignore_disk);
    if (reason != FITS || force) return reason;
    return forth_secondary_reason(&engine->facts[row], &engine->nodes[row], instance);
}

/* Update the values that depend on the number of instances. */
static void count_instances(struct node *node) {
    double instances = (double)(node->primaries + node->secondaries);
    node->values[N1_COUNT] = node->fails_n1 ? instances : 0.0;
    node->values[OFFLINE_ALL] = instances;
    node->values[OFFLINE_PRIMARIES] = (double)node->primaries;
}

static void set_disk_values(const struct facts *facts, struct node *node) {
    node->values[FREE_DISK] = disk_ratio(facts, node->free_spindles, node->disk);
    node->values[FORTH_DISK] = disk_ratio(facts, node->forth_spindles, node->forth_disk);
    node->values[SPINDLE_RATIO] = node->spindle_use / facts->high_spindles;
    node->values[FORTH_SPINDLES] = node->forth_spindle_use / facts->high_spindles;
}

static void set_primary_values(const struct facts *facts, struct node *node) {
    node->values[FREE_MEMORY] = (double)node->unallocated / facts->total_memory;
    node->values[CPU_RATIO] = (double)node->cpus / facts->total_cpus / facts->cpu_speed;
    node->values[FORTH_MEMORY] = (double)node->forth_memory / facts->total_memory;
    node->values[FORTH_CPU] = (double)node->forth_cpus / facts->total_cpus / facts->cpu_speed;
    node->values[PRIMARY_TAGS] = (double)(node->tags - node->distinct_tags);
    node->values[LOCATION] = (double)node->location_score;
    set_disk_values(facts, node);
    count_instances(node);
}

static void set_reserved(const struct facts *facts, struct node *node, int64_t reserved) {
    node->reserved = reserved;
    node->fails_n1 = node->unallocated <= reserved;
    node->values[RESERVED] = node->values[RESERVED_TOTAL] = (double)reserved / facts->total_memory;
    set_disk_values(facts, node);
    count_instances(node);
}

static int64_t desired_misses(const struct engine *engine, int64_t row, const struct instance *instance) {
    return engine->desired_misses[instance->desired * engine->location_classes + engine->facts[row].location_class];
}

static void take(const struct facts *facts, const struct instance *instance, struct node *node) {
    int64_t disk = instance->local ? instance->disk : 0;
    node->forth_disk -= disk;
    node->forth_spindles = spindles_after_adding(facts, instance, node->forth_spindles);
    node->forth_spindle_use = spindle_use_after(facts, instance, node->forth_spindle_use, 1);
    if (instance->forthcoming) return;
    node->disk -= disk;
    node->free_spindles = spindles_after_adding(facts, instance, node->free_spindles);
    node->spindle_use = spindle_use_after(facts, instance, node->spindle_use, 1);
}

static void give_back(const struct facts *facts, const struct instance *instance, struct node *node) {
    int64_t disk = instance->local ? instance->disk : 0;
    node->forth_disk += disk;
    node->forth_spindles = spindles_after_removing(facts, instance, node->forth_spindles);
    node->forth_spindle_use = spindle_use_after(facts, instance, node->forth_spindle_use, -1);
    if (instance->forthcoming) return;
    node->disk += disk;
    node->free_spindles = spindles_after_removing(facts, instance, node->free_spindles);
    node->spindle_use = spindle_use_after(facts, instance, node->spindle_use, -1);
}

/* Change what a primary, other than a forthcoming one, changes: `sign` is 1 if it is added, -1 if it is removed. */
static void count_primary(const struct engine *engine, int64_t row, const struct instance *instance, int sign,
                          struct node *node) {
    node->unallocated -= sign * memory_used(instance);
    node->cpus += sign * cpus_used(instance);
    for (int load = 0; load < 4; load++) node->values[CPU_LOAD + load] += sign * instance->load[load];
    node->location_score += sign * (instance->location_score + desired_misses(engine, row, instance));
    node->fails_n1 = node->unallocated <= node->reserved;
}

void with_primary(const struct engine *engine, int64_t row, const struct instance *instance, struct node *node) {
    const struct facts *facts = &engine->facts[row];
    node->forth_memory -= instance->memory;
    node->forth_cpus += cpus_used(instance);
    node->primaries += !instance->forthcoming;
    if (!instance->forthcoming) count_primary(engine, row, instance, 1, node);
    for (int64_t place = 0; place < instance->tag_count; place++) {
        node->tags++;
        if (engine->tags[row * engine->tag_count + instance->tags[place]] + earlier_in_list(instance, place) == 0) {
            node->distinct_tags++;
        }
    }
    take(facts, instance, node);
    set_primary_values(facts, node);
}

void with_secondary(const struct engine *engine, int64_t row, const struct instance *instance, int64_t peer,
                    struct node *node) {
    const struct facts *facts = &engine->facts[row];
    take(facts, instance, node);
    if (instance->forthcoming) {
        set_disk_values(facts, node);
        return;
    }
    node->secondaries++;
    node->values[DISK_LOAD] += instance->load[2];
    set_reserved(facts, node, most(node->reserved, peer + memory_kept(instance)));
}

void add_primary(struct engine *engine, int64_t row, const struct instance *instance) {
    if (!save_node(engine, row)) return;
    with_primary(engine, row, instance, &engine->nodes[row]);
    for (int64_t place = 0; place < instance->tag_count; place++) {
        int64_t tag = instance->tags[place], cell = row * engine->tag_count + tag;
        set_tag(engine, row, tag, false, engine->tags[cell] + 1);
        if (!instance->forthcoming) set_tag(engine, row, tag, true, engine->located_tags[cell] + 1);
    }
}

void add_secondary(struct engine *engine, int64_t row, const struct instance *instance, int64_t primary) {
    int64_t peer = peer_memory(engine, row, primary);
    if (!reserve_peer(engine, row) || !save_node(engine, row)) return;
    with_secondary(engine, row, instance, peer, &engine->nodes[row]);
    if (!instance->forthcoming) set_peer_memory(engine, row, primary, peer + memory_kept(instance), true);
}

void remove_primary(struct engine *engine, int64_t row, const struct instance *instance) {
    const struct facts *facts = &engine->facts[row];
    struct node *node = &engine->nodes[row];
    if (!save_node(engine, row)) return;
    node->forth_memory += instance->memory;
    node->forth_cpus -= cpus_used(instance);
    node->primaries -= !instance->forthcoming && !instance->no_primary_entry;
    if (!instance->forthcoming) count_primary(engine, row, instance, -1, node);
    for (int64_t place = 0; place < instance->tag_count; place++) {
        int64_t tag = instance->tags[place], cell = row * engine->tag_count + tag;
        /* a count never falls below 0 */
        if (engine->tags[cell] > 0) {
            set_tag(engine, row, tag, false, engine->tags[cell] - 1);
            node->tags--;
            if (engine->tags[cell] == 0) node->distinct_tags--;
        }
        int32_t located = engine->located_tags[cell];
        if (located > 0 && !instance->forthcoming) set_tag(engine, row, tag, true, located - 1);
    }
    give_back(facts, instance, node);
    set_primary_values(facts, node);
}

void remove_secondary(struct engine *engine, int64_t row, const struct instance *instance) {
    const struct facts *facts = &engine->facts[row];
    struct node *node = &engine->nodes[row];
    int64_t old = peer_memory(engine, row, instance->primary);
    int64_t left = old - memory_kept(instance);
    if (!reserve_peer(engine, row) || !save_node(engine, row)) return;
    give_back(facts, instance, node);
    if (instance->forthcoming) {
        set_disk_values(facts, node);
        return;
    }
    node->secondaries -= !instance->no_secondary_entry;
    node->values[DISK_LOAD] -= instance->load[2];
    set_peer_memory(engine, row, instance->primary, left, left > 0);
    set_reserved(facts, node, old >= node->reserved ? most_peer_memory(engine, row) : node->reserved);
}
