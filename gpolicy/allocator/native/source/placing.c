#include "placing.h"

#include <string.h>

#include "node_changes.h"

enum { MOST_PLACEMENTS = 1 << 20, STEPS_OF_PLACEMENT = 50 /* for its memory */ };

/* Return the slot of the record with this number. */
static int64_t slot_of(const struct table *table, int64_t number) {
    /* the numbers of the input ascend; those placed by the engine come after them */
    int64_t low = 0, high = table->given;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (table->numbers[middle] < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < table->given && table->numbers[low] == number ? low : table->count;
}

bool own_number(const struct engine *engine, const struct instance *instance, int64_t number) {
    return slot_of(&engine->table, number) == engine->table.count &&
           (instance->index < 0 || instance->index == number);
}

/* `saved`: how many shares the journal will keep. */
static bool reserve_placement(struct engine *engine, struct list *primaries, int64_t saved) {
    struct placements *placements = &engine->placements;
    struct table *table = &engine->table;
    if (placements->count == MOST_PLACEMENTS) fail(engine, TOO_MANY_PLACED);
    if (ended_after(engine, STEPS_OF_PLACEMENT + saved)) return false;
    int64_t capacity = table->capacity;
    return grow(engine, &placements->items, &placements->capacity, placements->count + 1, sizeof *placements->items) &&
           grow(engine, &primaries->items, &primaries->capacity, primaries->count + 1, sizeof *primaries->items) &&
           grow(engine, &table->numbers, &capacity, table->count + 1, sizeof *table->numbers) &&
           grow(engine, &table->items, &table->capacity, table->count + 1, sizeof *table->items);
}

/* Write a record into its slot; save a replaced record for unplace(). */
static bool write_record(struct engine *engine, int64_t slot, const struct instance *instance, int64_t number) {
    struct table *table = &engine->table;
    if (slot < table->count) {
        struct placements *placements = &engine->placements;
        struct instance *replaced =
            reserve(engine, &placements->replaced, placements->count + 1, sizeof *replaced);
        if (replaced == NULL) return false;
        replaced[placements->count] = table->items[slot];
        table->replaced++;
    } else {
        table->count++;
    }
    table->items[slot] = *instance;
    table->numbers[slot] = number;
    return true;
}

void place(struct engine *engine, const struct instance *instance, int64_t number) {
    struct table *table = &engine->table;
    struct list *primaries = &engine->primaries[instance->primary];
    /* node lists use the instance's index, if it has one, even if another record has that number */
    int64_t slot = slot_of(table, number), listed = instance->index < 0 ? slot : slot_of(table, instance->index);
    bool called_otherwise = instance->index >= 0 && instance->index != number;
    bool listed_nowhere = listed == table->count || table->items[listed].primary == NOWHERE;
    if (called_otherwise && listed_nowhere && !instance->forthcoming) fail(engine, ASK_THE_LAW);
    int64_t saved = instance->secondary == NOWHERE ? 0 : engine->peers[instance->secondary].count;
    if (!reserve_placement(engine, primaries, saved)) return;
    struct placed placed = {.slot = slot, .version = engine->version, .missing = engine->missing,
                            .clashing = engine->clashing, .before = engine->journal.top};
    /* For one group, hail's table has gaps, and the new instance may take the number of another one. For a new
     * secondary, the lists keep the index of the old instance, while its new record has another number. */
    bool clashing = !own_number(engine, instance, number);
    if (!write_record(engine, slot, instance, number)) return;
    engine->placements.items[engine->placements.count++] = placed;
    engine->clashing = engine->clashing || clashing;
    engine->missing += instance->evacuation == FAIL_OVER && instance->secondary == NOWHERE;
    engine->version = ++engine->versions;
    if (!instance->forthcoming) primaries->items[primaries->count++] = listed;
    add_primary(engine, instance->primary, instance);
    if (instance->secondary != NOWHERE) add_secondary(engine, instance->secondary, instance, instance->primary);
}

void unplace(struct engine *engine, int64_t count) {
    struct placements *placements = &engine->placements;
    struct table *table = &engine->table;
    while (placements->count > count) {
        const struct placed *placed = &placements->items[--placements->count];
        const struct instance *instance = &table->items[placed->slot];
        engine->primaries[instance->primary].count -= !instance->forthcoming;
        take_back(engine, placed->before);
        if (placed->slot < table->given) {
            table->items[placed->slot] = ((const struct instance *)placements->replaced.items)[placements->count];
            table->replaced++;
        } else {
            table->count--;
        }
        engine->clashing = placed->clashing;
        engine->missing = placed->missing;
        engine->version = placed->version;
    }
}
