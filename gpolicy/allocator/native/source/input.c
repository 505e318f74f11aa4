#include "input.h"

#include <math.h>
#include <string.h>

#include "statistics.h"

/* The positions in both streams. */
struct reader { struct engine *engine; const int64_t *integer, *integers_end; const double *real, *reals_end; };

static const int64_t ORDINARY = (int64_t)1 << 41; /* the greatest amount in MiB; see cluster.h */
static const int64_t MOST_NUMBERS = (int64_t)1 << 32;
enum { MOST_ITEMS = 1 << 20 /* nodes, and instances */, MOST_TAGS = 1 << 12 /* of an instance; Ganeti's own limit */ };
enum { MOST_WEIGHT = 1000 }; /* of a component of the score */
enum { MOST_LISTED = 2 };    /* how often a node may list an instance: hspace and hbal load what -I names twice */
enum { TEMPLATES = 9, DISKLESS = 0, SHARED_FILE = 2, PLAIN = 3, DRBD = 5, RBD = 6 };

/* Return the next number, which must be in its range. After an error it is `from`; for counts that is 0, so all loops
 * end. */
static int64_t integer(struct reader *reader, int64_t from, int64_t to) {
    if (reader->integer == reader->integers_end || from > to) fail(reader->engine, INVALID);
    if (failed(reader->engine)) return from;
    int64_t value = *reader->integer++;
    if (value >= from && value <= to) return value;
    fail(reader->engine, INVALID);
    return from;
}

static int64_t amount(struct reader *reader) { return integer(reader, 0, ORDINARY); }
static int64_t quantity(struct reader *reader) { return integer(reader, -ORDINARY, ORDINARY); }
static bool flag(struct reader *reader) { return integer(reader, 0, 1) == 1; }

/* Read a count of items, each at least `width` integers long. */
static int64_t count_of(struct reader *reader, int64_t width) {
    return integer(reader, 0, (reader->integers_end - reader->integer) / width);
}

/* Return the next `count` integers, which are used in place. */
static const int64_t *block(struct reader *reader, int64_t count, int64_t from, int64_t to) {
    const int64_t *start = reader->integer;
    if (count > reader->integers_end - start) fail(reader->engine, INVALID);
    for (int64_t place = 0; place < count && !failed(reader->engine); place++) integer(reader, from, to);
    return start;
}

static double real(struct reader *reader) {
    if (reader->real == reader->reals_end) fail(reader->engine, INVALID);
    return failed(reader->engine) ? 0.0 : *reader->real++;
}

static double finite(struct reader *reader) {
    double value = real(reader);
    if (!isfinite(value)) fail(reader->engine, INVALID);
    return value;
}

/* Whether a divisor is so small or so great that the square of a quotient could overflow. Division by 0 is allowed, as
 * htools does it; see statistics.h. */
static bool extreme(double divisor) { return divisor != 0.0 && !(fabs(divisor) > 0x1p-20 && fabs(divisor) < 0x1p60); }

static struct spec read_spec(struct reader *reader) {
    struct spec spec;
    spec.memory = quantity(reader);
    spec.cpus = quantity(reader);
    spec.disk_size = quantity(reader);
    spec.disk_count = quantity(reader);
    spec.spindle_use = quantity(reader);
    return spec;
}

static void read_policies(struct reader *reader) {
    struct engine *engine = reader->engine;
    int64_t pairs = count_of(reader, 10), used = 0;
    engine->policy_count = count_of(reader, 2);
    engine->pairs = zeroed(engine, pairs, sizeof *engine->pairs);
    engine->policies = zeroed(engine, engine->policy_count, sizeof *engine->policies);
    if (failed(engine)) return;
    for (int64_t number = 0; number < engine->policy_count; number++) {
        struct policy *policy = &engine->policies[number];
        policy->templates = integer(reader, 0, (1 << TEMPLATES) - 1);
        policy->count = integer(reader, 0, pairs - used);
        policy->pairs = &engine->pairs[used];
        for (int64_t place = 0; place < policy->count; place++) {
            engine->pairs[used].min = read_spec(reader);
            engine->pairs[used++].max = read_spec(reader);
        }
    }
}

/* Read the tables indexed by classes: the locations that two location classes have in common, whether instances may
 * migrate between two migration classes, and how many desired locations of a class a location class misses. */
static void read_tables(struct reader *reader) {
    struct engine *engine = reader->engine;
    int64_t locations = engine->location_classes = integer(reader, 1, 1 << 20);
    int64_t migrations = engine->migration_classes = integer(reader, 1, 1 << 20);
    engine->desired_classes = integer(reader, 1, 1 << 20);
    if (failed(engine)) return;
    engine->common_locations = block(reader, locations * locations, 0, ORDINARY);
    engine->may_migrate = block(reader, migrations * migrations, 0, 1);
    engine->desired_misses = block(reader, engine->desired_classes * locations, 0, ORDINARY);
    for (int64_t cell = 0; cell < migrations * migrations && !failed(engine); cell++) {
        if (engine->may_migrate[cell] == 0) engine->restricted_moves = true;
    }
}

static void read_facts(struct reader *reader, int64_t row) {
    struct engine *engine = reader->engine;
    struct facts *facts = &engine->facts[row];
    facts->group = integer(reader, 0, engine->group_count - 1);
    facts->policy = integer(reader, 0, engine->policy_count - 1);
    facts->location_class = integer(reader, 0, engine->location_classes - 1);
    facts->migration_class = integer(reader, 0, engine->migration_classes - 1);
    facts->low_disk = quantity(reader);
    facts->spindles = quantity(reader);
    facts->exclusive = flag(reader);
    facts->offline = flag(reader);
    facts->examined = flag(reader);
    engine->any_exclusive = engine->any_exclusive || facts->exclusive;
    engine->list_of_primary[row] = integer(reader, NOWHERE, engine->list_count - 1);
    engine->list_of_secondary[row] = integer(reader, NOWHERE, engine->list_count - 1);
    facts->location_count = count_of(reader, 1);
    if (failed(engine)) return;
    facts->locations = block(reader, facts->location_count, 0, engine->location_count - 1);
    facts->total_memory = finite(reader);
    facts->total_disk = finite(reader);
    facts->total_cpus = finite(reader);
    facts->cpu_speed = finite(reader);
    facts->vcpu_ratio = real(reader); /* infinite and NaN are limits that nothing exceeds, as in htools */
    facts->high_spindles = finite(reader);
    bool strange = extreme(facts->total_memory) || extreme(facts->total_cpus) || extreme(facts->cpu_speed) ||
                   extreme(facts->high_spindles) || extreme(facts->total_disk);
    if (strange && !facts->offline) fail(engine, INVALID);
    bool divides_by_0 = facts->total_memory == 0.0 || facts->total_cpus == 0.0 || facts->cpu_speed == 0.0 ||
                        facts->high_spindles == 0.0;
    facts->undefined = divides_by_0 && !facts->offline;
    engine->any_undefined = engine->any_undefined || facts->undefined;
}

static void read_tags(struct reader *reader, int64_t row, struct node *node) {
    struct engine *engine = reader->engine;
    for (int64_t count = count_of(reader, 3); count > 0; count--) {
        int64_t tag = integer(reader, 0, engine->tag_count - 1), cell = row * engine->tag_count + tag;
        if (failed(engine)) return;
        engine->tags[cell] = (int32_t)integer(reader, 0, 1 << 30);
        count_exclusions(engine, row, tag, -(int64_t)engine->located_tags[cell]);
        engine->located_tags[cell] = (int32_t)integer(reader, 0, 1 << 30);
        count_exclusions(engine, row, tag, engine->located_tags[cell]);
        node->tags += engine->tags[cell];
        node->distinct_tags += engine->tags[cell] > 0;
    }
}

static void read_node(struct reader *reader, int64_t row) {
    struct engine *engine = reader->engine;
    struct node *node = &engine->nodes[row];
    read_facts(reader, row);
    if (failed(engine)) return;
    int64_t *const quantities[] = {&node->unallocated, &node->reserved, &node->forth_memory, &node->disk,
                                   &node->forth_disk, &node->free_spindles, &node->forth_spindles, &node->cpus,
                                   &node->forth_cpus, &node->secondaries, &node->location_score};
    for (size_t place = 0; place < sizeof quantities / sizeof *quantities; place++) {
        *quantities[place] = quantity(reader);
    }
    node->fails_n1 = flag(reader);
    struct list *primaries = &engine->primaries[row];
    int64_t count = count_of(reader, 1);
    if (!grow(engine, &primaries->items, &primaries->capacity, count, sizeof *primaries->items)) return;
    node->primaries = primaries->count = count;
    for (int64_t place = 0; place < count; place++) {
        primaries->items[place] = integer(reader, 0, engine->table.count - 1);
    }
    struct shares *peers = &engine->peers[row];
    count = count_of(reader, 2);
    if (!grow(engine, &peers->items, &peers->capacity, count, sizeof *peers->items)) return;
    peers->count = count;
    for (int64_t place = 0; place < count; place++) {
        peers->items[place].node = integer(reader, NOWHERE, engine->node_count - 1);
        peers->items[place].memory = amount(reader);
    }
    read_tags(reader, row, node);
    node->spindle_use = finite(reader);
    node->forth_spindle_use = finite(reader);
    for (int place = 0; place < COMPONENTS; place++) {
        node->values[place] = real(reader);
        bool quotient = (AGGREGATES[place] == DEVIATION || place == RESERVED_TOTAL) && !isfinite(node->values[place]);
        if (!engine->facts[row].offline && !quotient && !(fabs(node->values[place]) < 0x1p100)) fail(engine, INVALID);
    }
}

static void read_record(struct reader *reader, struct instance *instance) {
    struct engine *engine = reader->engine;
    instance->index = integer(reader, NOWHERE, ORDINARY);
    instance->memory = amount(reader);
    instance->disk = amount(reader);
    instance->vcpus = amount(reader);
    instance->spindle_use = amount(reader);
    instance->spindles = integer(reader, UNKNOWN_SPINDLES, ORDINARY);
    instance->disks = amount(reader);
    instance->least_disk = amount(reader);
    instance->most_disk = amount(reader);
    if (instance->disks > 0 && instance->least_disk > ORDINARY / instance->disks) fail(engine, INVALID);
    instance->primary = integer(reader, NOWHERE, engine->node_count - 1);
    instance->secondary = integer(reader, NOWHERE, engine->node_count - 1);
    instance->secondary_index = integer(reader, INT64_MIN, INT64_MAX);
    instance->location_score = quantity(reader);
    instance->desired = integer(reader, 0, engine->desired_classes - 1);
    int64_t kind = instance->disk_template = integer(reader, 0, TEMPLATES - 1);
    instance->online = flag(reader);
    instance->uses_memory = flag(reader);
    instance->needs_secondary_memory = flag(reader);
    instance->ignores_policy = flag(reader);
    instance->forthcoming = flag(reader);
    instance->tag_count = integer(reader, 0, MOST_TAGS);
    if (failed(engine)) return;
    instance->tags = block(reader, instance->tag_count, 0, engine->tag_count - 1);
    for (int load = 0; load < 4; load++) instance->load[load] = finite(reader);
    instance->diskless = kind == DISKLESS;
    instance->local = kind == PLAIN || kind == DRBD;
    instance->evacuation =
        kind == DRBD ? FAIL_OVER : kind == DISKLESS || kind == SHARED_FILE || kind >= RBD ? MOVE : COPY;
    if (instance->evacuation == FAIL_OVER && instance->primary != NOWHERE && instance->primary == instance->secondary) {
        fail(engine, INVALID);
    }
}

static void read_instances(struct reader *reader) {
    struct engine *engine = reader->engine;
    struct table *table = &engine->table;
    int64_t before = NOWHERE;
    for (int64_t slot = 0; slot < table->count && !failed(engine); slot++) {
        struct instance *instance = &table->items[slot];
        before = table->numbers[slot] = integer(reader, before + 1, ORDINARY);
        read_record(reader, instance);
        bool mirrored = instance->evacuation == FAIL_OVER && instance->primary != NOWHERE;
        engine->unmirrored += !mirrored;
        engine->missing += mirrored && instance->secondary == NOWHERE;
    }
    int *listed = zeroed(engine, table->count, sizeof *listed);
    for (int64_t row = 0; row < engine->node_count && !failed(engine); row++) {
        const struct list *primaries = &engine->primaries[row];
        for (int64_t place = 0; place < primaries->count; place++) {
            int64_t slot = primaries->items[place];
            const struct instance *instance = &table->items[slot];
            bool sound = instance->primary == row && !instance->forthcoming && listed[slot] < MOST_LISTED;
            if (!sound) fail(engine, INVALID);
            engine->doubled = engine->doubled || listed[slot] > 0;
            listed[slot] += sound;
        }
    }
    release(engine, listed);
}

/* Nodes of a group must have the same policy. */
static void check_groups(struct engine *engine) {
    int64_t *policies = zeroed(engine, engine->group_count, sizeof *policies);
    for (int64_t row = 0; row < engine->node_count && !failed(engine); row++) {
        int64_t *policy = &policies[engine->facts[row].group], own = engine->facts[row].policy + 1;
        if (*policy != 0 && *policy != own) fail(engine, INVALID);
        *policy = own;
    }
    release(engine, policies);
}

static void reserve_tables(struct engine *engine) {
    int64_t nodes = engine->node_count, cells = nodes * engine->tag_count;
    int64_t located = engine->location_count * engine->tag_count;
    if (cells > (int64_t)1 << 27 || located > (int64_t)1 << 24) fail(engine, INVALID);
    if (failed(engine)) return;
    engine->facts = zeroed(engine, nodes, sizeof *engine->facts);
    engine->nodes = zeroed(engine, nodes, sizeof *engine->nodes);
    engine->primaries = zeroed(engine, nodes, sizeof *engine->primaries);
    engine->peers = zeroed(engine, nodes, sizeof *engine->peers);
    engine->tags = zeroed(engine, cells, sizeof *engine->tags);
    engine->located_tags = zeroed(engine, cells, sizeof *engine->located_tags);
    engine->exclusions.counts = zeroed(engine, located, sizeof *engine->exclusions.counts);
    engine->changed = zeroed(engine, nodes, sizeof *engine->changed);
    engine->list_of_primary = zeroed(engine, nodes, sizeof *engine->list_of_primary);
    engine->list_of_secondary = zeroed(engine, nodes, sizeof *engine->list_of_secondary);
    engine->table.items = zeroed(engine, engine->table.count, sizeof *engine->table.items);
    engine->table.numbers = zeroed(engine, engine->table.count, sizeof *engine->table.numbers);
    engine->table.capacity = engine->table.count;
}

void read_cluster(struct engine *engine, const struct numbers *numbers) {
    int64_t count = numbers->integer_count;
    if (count < 0 || count > MOST_NUMBERS || numbers->real_count < 0 || numbers->real_count > MOST_NUMBERS) {
        fail(engine, INVALID);
        return;
    }
    engine->integers = zeroed(engine, count, sizeof *engine->integers);
    if (failed(engine)) return;
    if (count > 0) memcpy(engine->integers, numbers->integers, (size_t)count * sizeof *engine->integers);
    struct reader reader = {engine, engine->integers, engine->integers + count, numbers->reals,
                            numbers->reals + numbers->real_count};
    int64_t nodes = count_of(&reader, 20);
    engine->table.count = engine->table.given = count_of(&reader, 15);
    engine->group_count = count_of(&reader, 1);
    engine->list_count = integer(&reader, 0, nodes);
    engine->location_count = integer(&reader, 0, 1 << 20);
    engine->tag_count = integer(&reader, 0, 1 << 20);
    engine->mirrored = flag(&reader);
    engine->force = flag(&reader);
    engine->capacity_checks = flag(&reader);
    engine->failures = integer(&reader, 1, MOST_FAILURES);
    engine->cpus = flag(&reader);
    engine->each = flag(&reader);
    engine->placements.before = amount(&reader);
    if (nodes > MOST_ITEMS || engine->table.count > MOST_ITEMS) fail(engine, INVALID);
    if (failed(engine)) return;
    engine->node_count = nodes;
    for (int place = 0; place < COMPONENTS; place++) {
        engine->weights[place] = finite(&reader);
        if (!(engine->weights[place] >= 0.0 && engine->weights[place] <= MOST_WEIGHT)) fail(engine, INVALID);
    }
    reserve_tables(engine);
    read_policies(&reader);
    read_tables(&reader);
    for (int64_t row = 0; row < nodes && !failed(engine); row++) read_node(&reader, row);
    read_instances(&reader);
    if (reader.integer != reader.integers_end || reader.real != reader.reals_end) fail(engine, INVALID);
    check_groups(engine);
}

static void keep_tags(struct engine *engine, struct instance *instance) {
    if (failed(engine) || instance->tag_count == 0) return;
    size_t size = (size_t)instance->tag_count * sizeof *instance->tags;
    bool same = engine->kept_tag_count == instance->tag_count && memcmp(engine->kept_tags, instance->tags, size) == 0;
    if (!same) {
        int64_t *tags = zeroed(engine, instance->tag_count, sizeof *tags);
        if (tags == NULL) return;
        engine->kept_tags = memcpy(tags, instance->tags, size);
        engine->kept_tag_count = instance->tag_count;
    }
    instance->tags = engine->kept_tags;
}

static void read_rows(struct reader *reader, struct list *rows) {
    int64_t count = count_of(reader, 1), before = NOWHERE;
    if (!grow(reader->engine, &rows->items, &rows->capacity, count, sizeof *rows->items)) return;
    rows->count = count;
    for (int64_t place = 0; place < count && !failed(reader->engine); place++) {
        before = rows->items[place] = integer(reader, before + 1, reader->engine->node_count - 1);
    }
}

void read_instance(struct engine *engine, const struct numbers *numbers, struct list *rows, struct instance *instance) {
    memset(instance, 0, sizeof *instance);
    if (numbers->integer_count < 0 || numbers->real_count < 0) {
        fail(engine, INVALID);
        return;
    }
    struct reader reader = {engine, numbers->integers, numbers->integers + numbers->integer_count, numbers->reals,
                            numbers->reals + numbers->real_count};
    read_record(&reader, instance);
    if (rows != NULL) read_rows(&reader, rows);
    if (reader.integer != reader.integers_end || reader.real != reader.reals_end) fail(engine, INVALID);
    keep_tags(engine, instance);
}
