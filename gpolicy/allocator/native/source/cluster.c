#include "cluster.h"

#include <stdlib.h>
#include <string.h>

#include "node_changes.h"
#include "room.h"

_Noreturn void fail(struct engine *engine, enum status status) { longjmp(engine->failure, (int)status); }

void look_at_stop(struct engine *engine) {
    if (*engine->stop) fail(engine, STOPPED);
}

void *scratch(struct engine *engine, int place, int64_t count, int64_t size) {
    int64_t wanted = most(count, 1) * size;
    if (engine->scratch_size[place] < wanted) {
        void *memory = realloc(engine->scratch[place], (size_t)wanted);
        if (memory == NULL) fail(engine, OUT_OF_MEMORY);
        engine->scratch[place] = memory;
        engine->scratch_size[place] = wanted;
    }
    return engine->scratch[place];
}

void *grown(struct engine *engine, void *items, int64_t *capacity, int64_t count, int64_t size) {
    if (count <= *capacity) return items;
    int64_t wanted = most(count, 2 * *capacity + 8);
    void *memory = realloc(items, (size_t)(wanted * size));
    if (memory == NULL) fail(engine, OUT_OF_MEMORY);
    *capacity = wanted;
    return memory;
}

static void note_change(struct changes *changes, int64_t row) {
    if (changes->changed == NULL || changes->changed[row]) return;
    changes->changed[row] = true;
    changes->rows[changes->count++] = row;
}

void save_node(struct engine *engine, int64_t row) {
    const struct shares *peers = &engine->peers[row];
    engine->saved_nodes = grown(engine, engine->saved_nodes, &engine->saved_node_capacity, engine->top.nodes + 1,
                                sizeof *engine->saved_nodes);
    engine->saved_shares = grown(engine, engine->saved_shares, &engine->saved_share_capacity,
                                 engine->top.shares + peers->count, sizeof *engine->saved_shares);
    struct saved_node *saved = &engine->saved_nodes[engine->top.nodes++];
    note_change(&engine->changes, row);
    saved->row = row;
    saved->node = engine->nodes[row];
    saved->shares = peers->count;
    saved->shares_from = engine->top.shares;
    if (peers->count > 0) {
        memcpy(&engine->saved_shares[engine->top.shares], peers->items, (size_t)peers->count * sizeof *peers->items);
    }
    engine->top.shares += peers->count;
}

void count_exclusions(struct engine *engine, int64_t row, int64_t tag, int64_t change) {
    const struct facts *facts = &engine->facts[row];
    struct exclusions *exclusions = &engine->exclusions;
    if (facts->offline) return;
    for (int64_t location = 0; location < facts->location_count; location++) {
        int64_t *count = &exclusions->counts[facts->locations[location] * engine->tag_count + tag];
        exclusions->above += (*count + change > 0) - (*count > 0);
        exclusions->sum += change;
        *count += change;
    }
}

/* Write a count of tags; return what was there. */
static int32_t write_tag(struct engine *engine, int64_t row, int64_t tag, bool located, int32_t count) {
    int32_t *place = (located ? engine->located_tags : engine->tags) + row * engine->tag_count + tag, before = *place;
    if (located) count_exclusions(engine, row, tag, count - before);
    *place = count;
    return before;
}

void set_tag(struct engine *engine, int64_t row, int64_t tag, bool located, int32_t count) {
    engine->saved_tags = grown(engine, engine->saved_tags, &engine->saved_tag_capacity, engine->top.tags + 1,
                               sizeof *engine->saved_tags);
    int32_t before = write_tag(engine, row, tag, located, count);
    engine->saved_tags[engine->top.tags++] = (struct saved_tag){row, tag, before, located};
}

void take_back(struct engine *engine, struct mark to) {
    while (engine->top.tags > to.tags) {
        const struct saved_tag *saved = &engine->saved_tags[--engine->top.tags];
        write_tag(engine, saved->row, saved->tag, saved->located, saved->before);
    }
    while (engine->top.nodes > to.nodes) {
        const struct saved_node *saved = &engine->saved_nodes[--engine->top.nodes];
        struct shares *peers = &engine->peers[saved->row];
        note_change(&engine->changes, saved->row);
        engine->nodes[saved->row] = saved->node;
        /* a list of peers never loses capacity, so what was saved fits */
        if (saved->shares > 0) {
            memcpy(peers->items, &engine->saved_shares[saved->shares_from],
                   (size_t)saved->shares * sizeof *peers->items);
        }
        peers->count = saved->shares;
    }
    engine->top.shares = to.shares;
}

/* Return where the record with this number is kept. */
static int64_t slot_of(const struct engine *engine, int64_t number) {
    /* numbers ascend with the slots among the given ones; those placed by us come after them */
    int64_t low = 0, high = engine->given_instances;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (engine->keys[middle] < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < engine->given_instances && engine->keys[low] == number ? low : engine->instance_count;
}

bool own_number(const struct engine *engine, const struct instance *instance, int64_t number) {
    return slot_of(engine, number) == engine->instance_count && (instance->index < 0 || instance->index == number);
}

void place(struct engine *engine, const struct instance *instance, int64_t number) {
    /* node lists call it by its index, if it has one, whatever record is found there */
    int64_t slot = slot_of(engine, number), listed = instance->index < 0 ? slot : slot_of(engine, instance->index);
    bool called_otherwise = instance->index >= 0 && instance->index != number;
    if (called_otherwise && listed == engine->instance_count) fail(engine, ASK_THE_LAW);
    struct list *primaries = &engine->primaries[instance->primary];
    engine->placements = grown(engine, engine->placements, &engine->placement_capacity, engine->placement_count + 1,
                               sizeof *engine->placements);
    primaries->items = grown(engine, primaries->items, &primaries->capacity, primaries->count + 1, sizeof(int64_t));
    if (slot == engine->instance_count && slot >= engine->instance_capacity) {
        int64_t capacity = engine->instance_capacity;
        engine->instances = grown(engine, engine->instances, &capacity, slot + 1, sizeof *engine->instances);
        capacity = engine->instance_capacity;
        engine->keys = grown(engine, engine->keys, &capacity, slot + 1, sizeof *engine->keys);
        engine->instance_capacity = capacity;
    }
    struct placed *placed = &engine->placements[engine->placement_count];
    *placed = (struct placed){
        .primary = instance->primary, .secondary = instance->secondary, .slot = slot, .version = engine->version,
        .clashing = engine->clashing, .instance = *instance, .before = engine->top,
    };
    /* hail, asked for one group: its table has gaps, and the new instance may take the number of another one;
     * asked for a secondary: the lists keep the index of the instance as it was, its new record has another number */
    if (!own_number(engine, instance, number)) engine->clashing = true;
    if (slot < engine->instance_count) {
        placed->replaced = engine->instances[slot];
        recount_room(engine);
    }
    add_primary(engine, instance->primary, instance);
    if (instance->secondary != NOWHERE) add_secondary(engine, instance->secondary, instance, instance->primary);
    engine->instances[slot] = *instance;
    engine->keys[slot] = number;
    if (slot == engine->instance_count) engine->instance_count++;
    primaries->items[primaries->count++] = listed;
    engine->placement_count++;
    engine->version = ++engine->versions;
}

void unplace(struct engine *engine, int64_t count) {
    while (engine->placement_count > count) {
        const struct placed *placed = &engine->placements[--engine->placement_count];
        engine->primaries[placed->primary].count--;
        take_back(engine, placed->before);
        if (placed->slot < engine->given_instances) {
            engine->instances[placed->slot] = placed->replaced;
            recount_room(engine);
        } else {
            engine->instance_count--;
        }
        engine->clashing = placed->clashing;
        engine->version = placed->version;
    }
}

int64_t peer_memory(const struct engine *engine, int64_t row, int64_t peer) {
    const struct shares *peers = &engine->peers[row];
    for (int64_t place = 0; place < peers->count; place++) {
        if (peers->items[place].node == peer) return peers->items[place].memory;
    }
    return 0;
}

void set_peer_memory(struct engine *engine, int64_t row, int64_t peer, int64_t memory, bool keep) {
    struct shares *peers = &engine->peers[row];
    int64_t place = 0;
    while (place < peers->count && peers->items[place].node != peer) place++;
    if (!keep) {
        if (place < peers->count) peers->items[place] = peers->items[--peers->count];
        return;
    }
    if (place == peers->count) {
        peers->items = grown(engine, peers->items, &peers->capacity, peers->count + 1, sizeof *peers->items);
        peers->count++;
    }
    peers->items[place] = (struct share){peer, memory};
}

int64_t most_peer_memory(const struct engine *engine, int64_t row) {
    const struct shares *peers = &engine->peers[row];
    if (peers->count == 0) return 0;
    int64_t result = peers->items[0].memory;
    for (int64_t place = 1; place < peers->count; place++) result = most(result, peers->items[place].memory);
    return result;
}

int64_t common_locations(const struct engine *engine, int64_t row, int64_t other) {
    return engine->common_locations[engine->facts[row].location_class * engine->location_classes +
                                    engine->facts[other].location_class];
}

bool may_migrate(const struct engine *engine, int64_t source, int64_t target) {
    return engine->may_migrate[engine->facts[source].migration_class * engine->migration_classes +
                               engine->facts[target].migration_class] != 0;
}
