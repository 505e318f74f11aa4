#include "cluster.h"

#include <stdlib.h>
#include <string.h>

static const int64_t MOST_BYTES = (int64_t)1 << 40; /* no array is larger */

void fail(struct engine *engine, enum status status) {
    if (engine->status == DONE) engine->status = status;
}

bool ended_after(struct engine *engine, int64_t steps) {
    engine->steps_left -= steps;
    if (engine->steps_left < 0) fail(engine, TOO_LONG);
    if (atomic_load_explicit(&engine->stop, memory_order_relaxed)) fail(engine, STOPPED);
    return failed(engine);
}

/* Return the place in `pieces` that holds `piece`; for NULL a free place, or NULL if there is no memory. */
static void **place_of(struct engine *engine, const void *piece) {
    struct pieces *pieces = &engine->pieces;
    int64_t place = pieces->count - 1;
    if (piece == NULL && pieces->count == pieces->capacity) {
        int64_t capacity = 2 * pieces->capacity + 64;
        void **items = realloc(pieces->items, (size_t)capacity * sizeof *items);
        if (items == NULL) return NULL;
        pieces->items = items;
        pieces->capacity = capacity;
    }
    if (piece == NULL) return &pieces->items[pieces->count];
    while (pieces->items[place] != piece) place--;
    return &pieces->items[place];
}

/* Resize a piece of memory, or allocate a zeroed one if it is NULL. Returns NULL after fail(). */
static void *resize(struct engine *engine, void *piece, int64_t count, size_t size) {
    void **place = count < MOST_BYTES / (int64_t)size ? place_of(engine, piece) : NULL, *resized = NULL;
    if (place != NULL) resized = piece == NULL ? calloc((size_t)count, size) : realloc(piece, (size_t)count * size);
    if (resized == NULL) {
        fail(engine, OUT_OF_MEMORY);
        return NULL;
    }
    engine->pieces.count += piece == NULL;
    return *place = resized;
}

void *zeroed(struct engine *engine, int64_t count, size_t size) { return resize(engine, NULL, most(count, 1), size); }

bool grow(struct engine *engine, void *items, int64_t *capacity, int64_t count, size_t size) {
    if (count <= *capacity) return true;
    int64_t wanted = most(count, *capacity + *capacity / 2 + 8);
    void *memory;
    memcpy(&memory, items, sizeof memory); /* `items` points to a pointer of any type */
    memory = resize(engine, memory, wanted, size);
    if (memory == NULL) return false;
    memcpy(items, &memory, sizeof memory);
    *capacity = wanted;
    return true;
}

void release(struct engine *engine, void *piece) {
    if (piece == NULL) return;
    void **place = place_of(engine, piece);
    *place = engine->pieces.items[--engine->pieces.count];
    free(piece);
}

void release_all(struct engine *engine) {
    while (engine->pieces.count > 0) free(engine->pieces.items[--engine->pieces.count]);
    free(engine->pieces.items);
}

void *reserve(struct engine *engine, struct buffer *buffer, int64_t count, size_t size) {
    return grow(engine, &buffer->items, &buffer->capacity, most(count, 1) * (int64_t)size, 1) ? buffer->items : NULL;
}

static void note_change(struct engine *engine, int64_t row) { engine->changed[row] = ++engine->clock; }

bool save_node(struct engine *engine, int64_t row) {
    struct journal *journal = &engine->journal;
    const struct shares *peers = &engine->peers[row];
    struct mark *top = &journal->top;
    if (!grow(engine, &journal->nodes, &journal->node_capacity, top->nodes + 1, sizeof *journal->nodes)) return false;
    if (!grow(engine, &journal->shares, &journal->share_capacity, top->shares + peers->count,
              sizeof *journal->shares)) {
        return false;
    }
    struct saved_node *saved = &journal->nodes[top->nodes++];
    note_change(engine, row);
    saved->row = row;
    saved->node = engine->nodes[row];
    saved->shares = peers->count;
    saved->shares_from = top->shares;
    if (peers->count > 0) {
        memcpy(&journal->shares[top->shares], peers->items, (size_t)peers->count * sizeof *peers->items);
    }
    top->shares += peers->count;
    return true;
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

/* Write a count of tags; return the old count. */
static int32_t write_tag(struct engine *engine, int64_t row, int64_t tag, bool located, int32_t count) {
    int32_t *place = (located ? engine->located_tags : engine->tags) + row * engine->tag_count + tag, before = *place;
    if (located) count_exclusions(engine, row, tag, count - before);
    *place = count;
    return before;
}

void set_tag(struct engine *engine, int64_t row, int64_t tag, bool located, int32_t count) {
    struct journal *journal = &engine->journal;
    if (!grow(engine, &journal->tags, &journal->tag_capacity, journal->top.tags + 1, sizeof *journal->tags)) return;
    int32_t before = write_tag(engine, row, tag, located, count);
    journal->tags[journal->top.tags++] = (struct saved_tag){row, tag, before, located};
}

void take_back(struct engine *engine, struct mark to) {
    struct journal *journal = &engine->journal;
    while (journal->top.tags > to.tags) {
        const struct saved_tag *saved = &journal->tags[--journal->top.tags];
        write_tag(engine, saved->row, saved->tag, saved->located, saved->before);
    }
    while (journal->top.nodes > to.nodes) {
        const struct saved_node *saved = &journal->nodes[--journal->top.nodes];
        struct shares *peers = &engine->peers[saved->row];
        note_change(engine, saved->row);
        engine->nodes[saved->row] = saved->node;
        /* a list of peers never loses capacity, so the saved list fits */
        if (saved->shares > 0) {
            memcpy(peers->items, &journal->shares[saved->shares_from], (size_t)saved->shares * sizeof *peers->items);
        }
        peers->count = saved->shares;
    }
    journal->top.shares = to.shares;
}

int64_t peer_memory(const struct engine *engine, int64_t row, int64_t peer) {
    const struct shares *peers = &engine->peers[row];
    for (int64_t place = 0; place < peers->count; place++) {
        if (peers->items[place].node == peer) return peers->items[place].memory;
    }
    return 0;
}

bool reserve_peer(struct engine *engine, int64_t row) {
    struct shares *peers = &engine->peers[row];
    return grow(engine, &peers->items, &peers->capacity, peers->count + 1, sizeof *peers->items);
}

void set_peer_memory(struct engine *engine, int64_t row, int64_t peer, int64_t memory, bool keep) {
    struct shares *peers = &engine->peers[row];
    int64_t place = 0;
    while (place < peers->count && peers->items[place].node != peer) place++;
    if (keep) {
        peers->items[place] = (struct share){peer, memory};
        peers->count = most(peers->count, place + 1);
    } else if (place < peers->count) {
        peers->items[place] = peers->items[--peers->count];
    }
}

int64_t most_peer_memory(const struct engine *engine, int64_t row) {
    const struct shares *peers = &engine->peers[row];
    if (peers->count == 0) return 0;
    int64_t result = peers->items[0].memory;
    for (int64_t place = 1; place < peers->count; place++) result = most(result, peers->items[place].memory);
    return result;
}

bool may_migrate(const struct engine *engine, int64_t source, int64_t target) {
    return engine->may_migrate[engine->facts[source].migration_class * engine->migration_classes +
                               engine->facts[target].migration_class] != 0;
}
