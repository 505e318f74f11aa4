#include "room.h"

#include <string.h>

#include "node_changes.h"
#include "policy_check.h"

enum { MEMORY, SPACE, SPINDLE, RESOURCES };
enum { TARGETS_COMPARED = 64, PATIENCE = 4000 };
static const int64_t UNLIMITED = (int64_t)1 << 40; /* the number of copies of an instance that needs nothing */
static const int64_t ANY_SPINDLES = INT64_MAX / 4; /* of a node without exclusive storage */

/* The resources that the checks require of a node to start an instance, and its turn: those with a higher one leave a
 * lost node first. */
struct size { int64_t of[RESOURCES], turn; };

enum { MOST_SIZES = 256 }; /* a limit of the table: a size left out only makes answers less sure */

/* One size on one node: its instances of that size (`exact`) and at least that big (`as_big`), and the copies for which
 * it has room. If it has such instances: how many instances leave it until the last one of them has left (`leaving`),
 * and at most how many copies of that size they take the room of (`units`). */
struct cell { int64_t exact, as_big, copies, leaving, units; };
/* One size in one group: the sum of the copies; the nodes with room for any; the node with the least slack
 * (slack_of()), and the least slack of the other nodes. */
struct total { int64_t copies, open, tightest, least, second; };
/* `cells` by row, `totals` by group; `compared`: whether the slack in `totals` agrees with the cells. */
struct counted { struct size size; struct cell *cells; struct total *totals; bool compared; };

/* How many instances of each size a node would have to send elsewhere and how many it could take. Only changed rows are
 * counted again. A size that no instance has any more stays, since the counts stay true. */
struct room {
    int64_t size_count, as_of, replaced; /* the clock and the count of replaced records when the sizes were counted */
    bool known;
    struct counted sizes[MOST_SIZES + 1];
    struct census *census;     /* by row */
    int64_t *one_of_each;      /* for each group a row without, and one with exclusive storage, or NOWHERE */
    struct buffer wanted, left, chosen; /* working memory */
};

bool open_room(struct engine *engine) {
    struct room *room = engine->room = zeroed(engine, 1, sizeof *room);
    if (room == NULL) return false;
    room->census = zeroed(engine, engine->node_count, sizeof *room->census);
    room->one_of_each = zeroed(engine, 2 * engine->group_count, sizeof *room->one_of_each);
    if (failed(engine)) return false;
    for (int64_t place = 0; place < 2 * engine->group_count; place++) room->one_of_each[place] = NOWHERE;
    for (int64_t row = 0; row < engine->node_count; row++) {
        room->one_of_each[2 * engine->facts[row].group + engine->facts[row].exclusive] = row;
    }
    return true;
}

void forget_sizes_of_room(struct engine *engine) { engine->room->known = false; }

static struct size size_of(const struct instance *instance) {
    int64_t spindles = instance->spindles == UNKNOWN_SPINDLES ? 0 : instance->spindles;
    return (struct size){{memory_used(instance), instance->local ? instance->disk : 0, instance->local ? spindles : 0},
                         instance->evacuation == MOVE ? INT64_MAX : instance->memory};
}

/* Whether an evacuation surely needs room for the instance: a fail-over gives back what it takes, and an instance that
 * a node lists twice may come off its node when it is moved again. */
static bool needs_room(const struct engine *engine, const struct instance *instance) {
    return instance->evacuation == COPY || (instance->evacuation == MOVE && !engine->doubled);
}

static bool covers(const struct size *big, const struct size *small) {
    for (int place = 0; place < RESOURCES; place++) {
        if (big->of[place] < small->of[place]) return false;
    }
    return true;
}

static bool same(const struct size *a, const struct size *b) {
    return a->turn == b->turn && covers(a, b) && covers(b, a);
}

static struct size free_room(const struct engine *engine, int64_t row) {
    const struct node *node = &engine->nodes[row];
    return (struct size){
        {node->unallocated, node->disk, engine->facts[row].exclusive ? node->free_spindles : ANY_SPINDLES}, 0};
}

/* Return how many instances of a size fit. At least 1 MiB of memory and disk must be left; spindles may be used up. */
static int64_t copies_in(struct size room, const struct size *size) {
    int64_t count = UNLIMITED;
    if (room.of[MEMORY] <= 0) return 0;
    if (size->of[SPACE] > 0 && room.of[SPACE] <= 0) return 0;
    for (int place = 0; place < RESOURCES; place++) {
        int64_t left = place == SPINDLE ? room.of[place] : room.of[place] - 1;
        if (size->of[place] > 0) count = least(count, most(0, left) / size->of[place]);
    }
    return count;
}

/* Return by how many copies of a size a node may take less once it has taken an instance of size `other`, at most. */
static int64_t units_of(const struct size *other, const struct size *size) {
    int64_t units = 0;
    for (int place = 0; place < RESOURCES; place++) {
        if (size->of[place] > 0) units = most(units, (other->of[place] - 1) / size->of[place] + (other->of[place] > 0));
    }
    return least(units, UNLIMITED);
}

static bool takes(const struct size *left, const struct size *wanted) {
    for (int place = 0; place < RESOURCES; place++) {
        if (wanted->of[place] > 0 && left->of[place] < wanted->of[place]) return false;
    }
    return true;
}

/* Return the next target after `target` that takes `wanted` and does not equal a recent one, or `targets` if there is
 * none. */
static int64_t next_target(const struct size *left, int64_t targets, int64_t target, const struct size *wanted) {
    for (target++; target < targets; target++) {
        bool known = !takes(&left[target], wanted);
        int64_t earlier = most(0, target - TARGETS_COMPARED);
        for (; earlier < target && !known; earlier++) known = same(&left[earlier], &left[target]);
        if (!known) break;
    }
    return target;
}

static void give(struct size *left, const struct size *wanted, int64_t sign) {
    for (int resource = 0; resource < RESOURCES; resource++) left->of[resource] -= sign * wanted->of[resource];
}

/* Whether the sizes fit on the targets. Answers yes if PATIENCE runs out. `chosen` holds the target of each size. */
static bool sizes_fit(const struct size *wanted, int64_t count, struct size *left, int64_t targets, int64_t *chosen) {
    int64_t place = 0, patience = PATIENCE;
    if (count == 0) return true;
    chosen[0] = NOWHERE;
    for (;;) {
        chosen[place] = next_target(left, targets, chosen[place], &wanted[place]);
        if (chosen[place] == targets) {
            if (place == 0) return false;
            place--;
            give(&left[chosen[place]], &wanted[place], -1);
            continue;
        }
        if (place + 1 == count || --patience < 0) return true;
        give(&left[chosen[place]], &wanted[place], 1);
        chosen[++place] = NOWHERE;
    }
}

bool lacks_room(struct engine *engine, int64_t row) {
    const struct list *primaries = &engine->primaries[row];
    struct room *room = engine->room;
    struct size *wanted = reserve(engine, &room->wanted, primaries->count, sizeof *wanted);
    struct size *left = reserve(engine, &room->left, engine->node_count, sizeof *left);
    int64_t *chosen = reserve(engine, &room->chosen, primaries->count, sizeof *chosen);
    int64_t count = 0, targets = 0;
    if (failed(engine)) return false;
    for (int64_t place = 0; place < primaries->count; place++) {
        const struct instance *instance = &engine->table.items[primaries->items[place]];
        if (!needs_room(engine, instance)) continue;
        struct size size = size_of(instance);
        int64_t to = count++;
        for (; to > 0 && wanted[to - 1].of[MEMORY] < size.of[MEMORY]; to--) wanted[to] = wanted[to - 1];
        wanted[to] = size;
    }
    for (int64_t other = 0; other < engine->node_count; other++) {
        if (other == row || engine->facts[other].group != engine->facts[row].group) continue;
        left[targets] = free_room(engine, other);
        left[targets].of[MEMORY]--; /* at least 1 MiB must be left of memory and disk */
        left[targets++].of[SPACE]--;
    }
    return !sizes_fit(wanted, count, left, targets, chosen);
}

/* Begin to count a size: no node has any yet. */
static void begin_size(struct engine *engine, int64_t number, const struct size *size) {
    struct counted *counted = &engine->room->sizes[number];
    if (counted->cells == NULL) {
        counted->cells = zeroed(engine, engine->node_count, sizeof *counted->cells);
        counted->totals = zeroed(engine, engine->group_count, sizeof *counted->totals);
        if (failed(engine)) return;
    }
    memset(counted->cells, 0, (size_t)engine->node_count * sizeof *counted->cells);
    memset(counted->totals, 0, (size_t)engine->group_count * sizeof *counted->totals);
    counted->size = *size;
    counted->compared = false;
}

/* Whether the table tells all about an instance: there is no other reason against it than lack of room. */
static bool only_needs_room(const struct engine *engine, int64_t row, const struct instance *instance) {
    const int64_t *one_of_each = &engine->room->one_of_each[2 * engine->facts[row].group];
    /* external storage takes spindles from a node, though the check requires none */
    if (engine->any_exclusive && (!instance->local || instance->spindles <= 0)) return false;
    if (instance->local && instance->disk <= 0) return false;
    if (instance->evacuation == MOVE) return !engine->restricted_moves;
    for (int kind = 0; kind < 2; kind++) {
        if (one_of_each[kind] != NOWHERE && check_policy(engine, one_of_each[kind], instance, 0) != FITS) return false;
    }
    return true;
}

/* Count the instances of a node by size, as far as the table has room. */
static void count_residents(struct engine *engine, int64_t row) {
    struct room *room = engine->room;
    const struct list *primaries = &engine->primaries[row];
    struct census *census = &room->census[row];
    *census = (struct census){.only_room = true};
    for (int64_t number = 0; number < room->size_count; number++) room->sizes[number].cells[row].exact = 0;
    for (int64_t place = 0; place < primaries->count; place++) {
        const struct instance *instance = &engine->table.items[primaries->items[place]];
        if (instance->evacuation == FAIL_OVER) {
            census->mirrored++;
            census->mirrored_memory += memory_used(instance);
            continue;
        }
        census->moves += instance->evacuation == MOVE;
        census->only_room = census->only_room && only_needs_room(engine, row, instance);
        if (!needs_room(engine, instance)) continue;
        struct size size = size_of(instance);
        int64_t number = 0;
        while (number < room->size_count && !same(&room->sizes[number].size, &size)) number++;
        if (number == room->size_count && number < MOST_SIZES) {
            begin_size(engine, number, &size);
            if (failed(engine)) return;
            room->size_count++;
        }
        if (number < room->size_count) {
            room->sizes[number].cells[row].exact++;
        } else {
            census->only_room = false;
        }
    }
}

/* Count one size on a node. Mirrored instances leave it first; of those with the same turn, any may be the last. */
static void count_cell(struct engine *engine, int64_t number, int64_t row) {
    struct room *room = engine->room;
    struct counted *counted = &room->sizes[number];
    const struct size *size = &counted->size;
    const struct census *census = &room->census[row];
    struct cell *cell = &counted->cells[row], new = {.exact = cell->exact};
    struct total *total = &counted->totals[engine->facts[row].group];
    new.copies = copies_in(free_room(engine, row), size);
    for (int64_t number_of = 0; number_of < room->size_count; number_of++) {
        const struct size *other = &room->sizes[number_of].size;
        int64_t exact = room->sizes[number_of].cells[row].exact;
        if (exact == 0) continue;
        if (covers(other, size)) new.as_big += exact;
        if (other->turn < size->turn) continue;
        new.leaving += exact;
        new.units += exact * units_of(other, size);
    }
    new.leaving += census->mirrored;
    if (size->of[MEMORY] > 0) new.units += census->mirrored + census->mirrored_memory / size->of[MEMORY];
    new.units = most(new.units, 1);
    if (new.exact == 0) new.leaving = new.units = 0;
    total->copies += new.copies - cell->copies;
    total->open += (new.copies > 0) - (cell->copies > 0);
    counted->compared = counted->compared && new.as_big == cell->as_big && new.copies == cell->copies;
    *cell = new;
}

/* Count a size that no instance has, in the last place of the table, which the next such size overwrites. */
static void count_other_size(struct engine *engine, const struct size *size) {
    begin_size(engine, engine->room->size_count, size);
    for (int64_t row = 0; row < engine->node_count && !failed(engine); row++) {
        count_cell(engine, engine->room->size_count, row);
    }
}

static void build_room(struct engine *engine) {
    struct room *room = engine->room;
    bool known = room->known && room->replaced == engine->table.replaced;
    int64_t as_of = known ? room->as_of : -1, sizes = known ? room->size_count : 0;
    if (as_of == engine->clock) return;
    room->size_count = sizes;
    room->known = false;
    for (int64_t row = 0; row < engine->node_count; row++) {
        if (engine->changed[row] > as_of) count_residents(engine, row);
        if (failed(engine)) return;
    }
    for (int64_t row = 0; row < engine->node_count; row++) {
        int64_t first = engine->changed[row] > as_of ? 0 : sizes;
        for (int64_t number = first; number < room->size_count; number++) count_cell(engine, number, row);
    }
    room->known = true;
    room->as_of = engine->clock;
    room->replaced = engine->table.replaced;
}

const struct census *census_of(struct engine *engine, int64_t row) {
    build_room(engine);
    return &engine->room->census[row];
}

/* The instances leave a node one by one, and each finds room if nodes cannot all be full for it, wherever those before
 * it have gone. Each of them fills at most one node; and to fill nodes with room for some copies, their units must add
 * up to as many copies. This also holds with fewer instances and with more room. */
enum verdict judge_room(struct engine *engine, int64_t row) {
    const struct room *room = engine->room;
    build_room(engine);
    if (failed(engine)) return UNSURE;
    bool sure = room->census[row].only_room;
    for (int64_t number = 0; number < room->size_count; number++) {
        const struct cell *cell = &room->sizes[number].cells[row];
        const struct total *total = &room->sizes[number].totals[engine->facts[row].group];
        int64_t copies = total->copies - cell->copies, open = total->open - (cell->copies > 0);
        if (copies < cell->as_big) return NO;
        sure = sure && (copies >= cell->units || open >= cell->leaving);
    }
    return sure ? YES : UNSURE;
}

/* Return how many more instances of a size the other nodes of the group could take than this node would send them. */
static int64_t slack_of(const struct engine *engine, int64_t number, int64_t row) {
    const struct cell *cell = &engine->room->sizes[number].cells[row];
    return engine->room->sizes[number].totals[engine->facts[row].group].copies - cell->copies - cell->as_big;
}

static void compare_slack(struct engine *engine, int64_t number) {
    struct counted *counted = &engine->room->sizes[number];
    if (counted->compared) return;
    for (int64_t group = 0; group < engine->group_count; group++) {
        struct total *total = &counted->totals[group];
        total->tightest = NOWHERE;
        total->least = total->second = UNLIMITED * 1024;
    }
    for (int64_t row = 0; row < engine->node_count; row++) {
        struct total *total = &counted->totals[engine->facts[row].group];
        if (!engine->facts[row].examined) continue;
        int64_t slack = slack_of(engine, number, row);
        if (slack < total->least) {
            total->second = total->least;
            total->least = slack;
            total->tightest = row;
        } else {
            total->second = least(total->second, slack);
        }
    }
    counted->compared = true;
}

/* Judge one size: mark placements after which a node of the group has more instances of it than the others can take. */
static void break_by_size(struct engine *engine, const struct instance *instance, int64_t number, const int64_t *rows,
                          int64_t count, bool *broken) {
    const struct counted *counted = &engine->room->sizes[number];
    struct size wanted = size_of(instance);
    bool as_big = covers(&wanted, &counted->size);
    compare_slack(engine, number);
    for (int64_t place = 0; place < count; place++) {
        int64_t row = rows[place], copies = counted->cells[row].copies;
        const struct total *total = &counted->totals[engine->facts[row].group];
        int64_t others = total->tightest == row ? total->second : total->least;
        if (broken[row]) continue;
        if (engine->facts[row].examined && slack_of(engine, number, row) < as_big) broken[row] = true;
        if (others >= copies) continue; /* a node cannot lose more copies than it has */
        struct size left = free_room(engine, row);
        for (int resource = 0; resource < RESOURCES; resource++) left.of[resource] -= wanted.of[resource];
        if (!engine->facts[row].exclusive) left.of[SPINDLE] = ANY_SPINDLES;
        if (others < copies - copies_in(left, &counted->size)) broken[row] = true;
    }
}

bool sure_to_break(struct engine *engine, const struct instance *instance, const int64_t *rows, int64_t count,
                   bool *broken) {
    bool all = true, known = false;
    struct size wanted = size_of(instance);
    struct room *room = engine->room;
    build_room(engine);
    if (failed(engine)) return false;
    memset(broken, 0, (size_t)engine->node_count * sizeof *broken);
    for (int64_t size = 0; size < room->size_count; size++) {
        known = known || same(&room->sizes[size].size, &wanted);
        break_by_size(engine, instance, size, rows, count, broken);
    }
    if (!known) {
        count_other_size(engine, &wanted);
        if (failed(engine)) return false;
        break_by_size(engine, instance, room->size_count, rows, count, broken);
    }
    for (int64_t place = 0; place < count; place++) all = all && broken[rows[place]];
    return all;
}
