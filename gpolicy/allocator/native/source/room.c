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

/* What room is counted in: the size itself, or the least of each resource that any size needs. */
enum { OWN, SMALLEST, UNITS };

/* One size on one node: its instances of that size (`exact`) and at least that big (`as_big`), and how many units fill
 * it until it takes no more of that size (`room`; of its OWN: the copies that it takes). If it has such instances: how
 * many instances, but mirrored ones, leave it before the last one of them (`leaving`), and how many units they fill at
 * most (`filled`). */
struct cell { int64_t exact, as_big, leaving, room[UNITS], filled[UNITS]; };
/* One size in one group: the sums of the room; the nodes that take any; the node with the least slack (slack_of()), and
 * the least slack of the other nodes. */
struct total { int64_t room[UNITS], open, tightest, least, second; };
/* `cells` by row, `totals` by group; `compared`: whether the slack in `totals` agrees with the cells. */
struct counted { struct size size; struct cell *cells; struct total *totals; bool compared; };

enum { MOST_QUEUED = 8 };
/* The sizes that leave a lost node: the last turn of each, and how many nodes take it. */
struct queue {
    int64_t lost, count, last[MOST_QUEUED], open[MOST_QUEUED];
    struct size sizes[MOST_QUEUED];
    bool watched;
};

/* How many instances of each size a node would have to send elsewhere and how many it could take. Only changed rows are
 * counted again. A size that no instance has any more stays, since the counts stay true. */
struct room {
    int64_t size_count, as_of, replaced; /* the clock and the count of replaced records when the sizes were counted */
    bool known;
    struct counted sizes[MOST_SIZES + 1];
    struct size smallest;
    struct census *census; /* by row */
    int64_t *place_of;     /* for each row its place among the targets of the census that is made, plus 1 */
    int64_t *one_of_each;  /* for each group a row without, and one with exclusive storage, or NOWHERE */
    struct buffer wanted, left, chosen; /* working memory */
    struct queue queue;
};

bool open_room(struct engine *engine) {
    struct room *room = engine->room = zeroed(engine, 1, sizeof *room);
    if (room == NULL) return false;
    room->census = zeroed(engine, engine->node_count, sizeof *room->census);
    room->place_of = zeroed(engine, engine->node_count, sizeof *room->place_of);
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

/* Return how many units fill a room until it takes no more of a size; if the unit is the size, that many fit. At least
 * 1 MiB of memory and disk must be left; spindles may be used up. */
static int64_t room_in(struct size room, const struct size *size, const struct size *unit) {
    int64_t count = UNLIMITED;
    if (room.of[MEMORY] <= 0) return 0;
    for (int place = 0; place < RESOURCES; place++) {
        int64_t left = room.of[place] - size->of[place] - (place != SPINDLE);
        if (size->of[place] == 0) continue;
        if (left < 0) return 0;
        count = least(count, left / unit->of[place] + 1);
    }
    return count;
}

static int64_t copies_in(struct size room, const struct size *size) { return room_in(room, size, size); }

/* Return how many units an instance of size `other` fills at most, in what an instance of `size` needs. */
static int64_t filled_by(const struct size *other, const struct size *size, const struct size *unit) {
    int64_t units = 0;
    for (int place = 0; place < RESOURCES; place++) {
        if (size->of[place] > 0) units = most(units, (other->of[place] + unit->of[place] - 1) / unit->of[place]);
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

void begin_queue(struct engine *engine, int64_t row, bool only_room) {
    engine->room->queue = (struct queue){.lost = row, .watched = only_room};
}

void queue_up(struct engine *engine, const struct instance *instance, int64_t turn) {
    struct queue *queue = &engine->room->queue;
    struct size size = size_of(instance);
    int64_t number = 0;
    while (number < queue->count && !same(&queue->sizes[number], &size)) number++;
    queue->watched = queue->watched && number < MOST_QUEUED;
    if (!queue->watched) return;
    if (number == queue->count) queue->sizes[queue->count++] = size;
    queue->last[number] = turn;
}

void count_open(struct engine *engine, int64_t row, int64_t sign) {
    struct queue *queue = &engine->room->queue;
    if (!queue->watched || row == queue->lost || engine->facts[row].group != engine->facts[queue->lost].group) return;
    struct size room = free_room(engine, row);
    for (int64_t number = 0; number < queue->count; number++) {
        if (copies_in(room, &queue->sizes[number]) > 0) queue->open[number] += sign;
    }
}

void open_queue(struct engine *engine) {
    for (int64_t row = 0; row < engine->node_count; row++) count_open(engine, row, 1);
}

bool queue_is_sure(const struct engine *engine, int64_t turn) {
    const struct queue *queue = &engine->room->queue;
    for (int64_t number = 0; number < queue->count; number++) {
        /* each instance that leaves before fills one node at most */
        if (queue->last[number] >= turn && queue->open[number] <= queue->last[number] - turn) return false;
    }
    return queue->watched;
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
    if (one_of_each[true] != NOWHERE && (!instance->local || instance->spindles <= 0)) return false;
    if (instance->local && instance->disk <= 0) return false;
    if (instance->evacuation == MOVE) return !engine->restricted_moves;
    for (int kind = 0; kind < 2; kind++) {
        if (one_of_each[kind] != NOWHERE && check_ipolicy(engine, one_of_each[kind], instance, 0) != FITS) return false;
    }
    return true;
}

/* Return the number of a size in the table, or the number after the last one. */
static int64_t number_of(const struct room *room, const struct size *size) {
    int64_t number = 0;
    while (number < room->size_count && !same(&room->sizes[number].size, size)) number++;
    return number;
}

/* Count a mirrored instance that would fail over. */
static void count_fail_over(struct engine *engine, const struct instance *instance, struct census *census) {
    int64_t *place = &engine->room->place_of[instance->secondary];
    census->mirrored++;
    if (*place == 0) {
        if (!grow(engine, &census->targets, &census->capacity, census->count + 1, sizeof *census->targets)) return;
        census->targets[census->count] = (struct target){.row = instance->secondary};
        *place = ++census->count;
    }
    census->targets[*place - 1].memory += memory_used(instance);
    census->targets[*place - 1].unknown |= instance->spindles == UNKNOWN_SPINDLES;
}

/* Count the instances of a node by size, as far as the table has room. */
static void count_residents(struct engine *engine, int64_t row) {
    struct room *room = engine->room;
    const struct list *primaries = &engine->primaries[row];
    struct census *census = &room->census[row];
    *census = (struct census){.targets = census->targets, .capacity = census->capacity, .only_room = true};
    for (int64_t number = 0; number < room->size_count; number++) room->sizes[number].cells[row].exact = 0;
    for (int64_t place = 0; place < primaries->count; place++) {
        const struct instance *instance = &engine->table.items[primaries->items[place]];
        if (instance->evacuation == FAIL_OVER && instance->secondary != NOWHERE) {
            count_fail_over(engine, instance, census);
        }
        if (instance->evacuation == FAIL_OVER) continue;
        census->moves += instance->evacuation == MOVE;
        census->only_room = census->only_room && only_needs_room(engine, row, instance);
        if (!needs_room(engine, instance)) continue;
        struct size size = size_of(instance);
        int64_t number = number_of(room, &size);
        if (number == room->size_count && number < MOST_SIZES) {
            begin_size(engine, number, &size);
            room->size_count += !failed(engine);
            for (int resource = 0; resource < RESOURCES; resource++) {
                int64_t *least_of = &room->smallest.of[resource];
                if (size.of[resource] > 0 && (*least_of == 0 || size.of[resource] < *least_of)) {
                    *least_of = size.of[resource];
                }
            }
        }
        if (number < room->size_count) {
            room->sizes[number].cells[row].exact++;
        } else {
            census->only_room = false;
        }
    }
    for (int64_t place = 0; place < census->count; place++) room->place_of[census->targets[place].row] = 0;
}

/* The numbers of the sizes that a node has instances of. */
struct present { int64_t count, numbers[MOST_SIZES]; };

static void list_present(const struct room *room, int64_t row, struct present *present) {
    present->count = 0;
    for (int64_t number = 0; number < room->size_count; number++) {
        if (room->sizes[number].cells[row].exact > 0) present->numbers[present->count++] = number;
    }
}

/* Count one size on a node. Of instances with the same turn, any may be the last to leave. */
static void count_cell(struct engine *engine, int64_t number, int64_t row, const struct present *present) {
    struct room *room = engine->room;
    struct counted *counted = &room->sizes[number];
    const struct size *size = &counted->size;
    const struct size *units[UNITS] = {size, number < room->size_count ? &room->smallest : size};
    struct cell *cell = &counted->cells[row], new = {.exact = cell->exact};
    struct total *total = &counted->totals[engine->facts[row].group];
    for (int64_t place = 0; place < present->count; place++) {
        int64_t other = present->numbers[place], exact = room->sizes[other].cells[row].exact;
        const struct size *resident = &room->sizes[other].size;
        if (covers(resident, size)) new.as_big += exact;
        if (new.exact == 0 || resident->turn < size->turn) continue;
        exact -= other == number;
        new.leaving += exact;
        for (int unit = 0; unit < UNITS; unit++) new.filled[unit] += exact * filled_by(resident, size, units[unit]);
    }
    for (int unit = 0; unit < UNITS; unit++) {
        new.room[unit] = room_in(free_room(engine, row), size, units[unit]);
        total->room[unit] += new.room[unit] - cell->room[unit];
    }
    total->open += (new.room[OWN] > 0) - (cell->room[OWN] > 0);
    counted->compared = counted->compared && new.as_big == cell->as_big && new.room[OWN] == cell->room[OWN];
    *cell = new;
}

/* Count a size that no instance has, in the last place of the table, which the next such size overwrites. */
static void count_other_size(struct engine *engine, const struct size *size) {
    struct present present;
    begin_size(engine, engine->room->size_count, size);
    for (int64_t row = 0; row < engine->node_count && !failed(engine); row++) {
        list_present(engine->room, row, &present);
        count_cell(engine, engine->room->size_count, row, &present);
    }
}

static void build_room(struct engine *engine) {
    struct room *room = engine->room;
    bool known = room->known && room->replaced == engine->table.replaced;
    int64_t as_of = known ? room->as_of : -1, sizes = known ? room->size_count : 0;
    if (as_of == engine->clock) return;
    room->size_count = sizes;
    if (!known) room->smallest = (struct size){{0}, 0};
    room->known = false;
    struct size smallest = room->smallest;
    for (int64_t row = 0; row < engine->node_count; row++) {
        if (engine->changed[row] > as_of) count_residents(engine, row);
        if (failed(engine)) return;
    }
    for (int64_t row = 0; row < engine->node_count; row++) {
        int64_t first = engine->changed[row] > as_of || !same(&room->smallest, &smallest) ? 0 : sizes;
        if (first == room->size_count) continue;
        struct present present;
        list_present(room, row, &present);
        for (int64_t number = first; number < room->size_count; number++) count_cell(engine, number, row, &present);
    }
    room->known = true;
    room->as_of = engine->clock;
    room->replaced = engine->table.replaced;
}

const struct census *census_of(struct engine *engine, int64_t row) {
    build_room(engine);
    return &engine->room->census[row];
}

/* Return how many more instances of a size the other nodes of the group could take than this node would send them. */
static int64_t slack_of(const struct engine *engine, int64_t number, int64_t row) {
    const struct cell *cell = &engine->room->sizes[number].cells[row];
    return engine->room->sizes[number].totals[engine->facts[row].group].room[OWN] - cell->room[OWN] - cell->as_big;
}

/* Whether one size of a node finds room. The instances leave it one by one, and each finds room if nodes cannot all be
 * full for it, wherever those before it have gone: if more nodes take it than instances have left before, or if these
 * nodes have more room than those instances fill, in one of the units. */
static bool finds_room(const struct engine *engine, int64_t number, int64_t row) {
    const struct counted *counted = &engine->room->sizes[number];
    const struct cell *cell = &counted->cells[row];
    const struct census *census = &engine->room->census[row];
    const struct total *total = &counted->totals[engine->facts[row].group];
    const struct size *units[UNITS] = {&counted->size, &engine->room->smallest};
    int64_t open = total->open - (cell->room[OWN] > 0), left[UNITS];
    if (cell->exact == 0) return true;
    for (int unit = 0; unit < UNITS; unit++) left[unit] = total->room[unit] - cell->room[unit];
    for (int64_t place = 0; place < census->count; place++) {
        int64_t other = census->targets[place].row;
        struct size room = free_room(engine, other);
        if (engine->facts[other].group != engine->facts[row].group) continue;
        room.of[MEMORY] -= census->targets[place].memory;
        for (int unit = 0; unit < UNITS; unit++) {
            left[unit] -= counted->cells[other].room[unit] - room_in(room, &counted->size, units[unit]);
        }
        open -= (counted->cells[other].room[OWN] > 0) - (copies_in(room, &counted->size) > 0);
    }
    return open > cell->leaving || left[OWN] > cell->filled[OWN] || left[SMALLEST] > cell->filled[SMALLEST];
}

enum verdict judge_room(struct engine *engine, int64_t row) {
    const struct room *room = engine->room;
    build_room(engine);
    if (failed(engine)) return UNSURE;
    bool sure = room->census[row].only_room;
    for (int64_t number = 0; number < room->size_count; number++) {
        if (slack_of(engine, number, row) < 0) return NO;
        sure = sure && finds_room(engine, number, row);
    }
    return sure ? YES : UNSURE;
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
        int64_t row = rows[place], copies = counted->cells[row].room[OWN];
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
