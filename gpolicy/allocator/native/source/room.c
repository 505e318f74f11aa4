#include "room.h"

#include <string.h>

#include "node_changes.h"
#include "policy_check.h"

enum { MEMORY, SPACE, SPINDLE, RESOURCES };
enum { TARGETS_COMPARED = 64, PATIENCE = 4000 };
static const int64_t UNLIMITED = (int64_t)1 << 40;       /* the number of copies of an instance that needs nothing */
static const int64_t ANY_SPINDLES = INT64_MAX / 4;       /* of a node without exclusive storage */

/* The resources that the checks require of a node to start an instance. */
struct size { int64_t of[RESOURCES]; };

enum { MOST_SIZES = 256 }; /* a limit of the table: a size left out only makes answers less sure */

/* The node of a group with the least slack (slack_of()), and the least slack of the other nodes. */
struct tightest { int64_t row, least, second; };

/* How many instances of each size a node would have to send elsewhere and how many it could take. By size and row:
 * `counts` (its instances at least that big), `exact` (its instances of that size), `copies` (the copies for which it
 * has room); by size and group: `sums` of the copies. Only changed rows are counted again. A size that no instance has
 * any more stays, since the counts stay true. */
struct room {
    int64_t size_count, as_of, replaced; /* the clock and the count of replaced records when the sizes were counted */
    bool known;
    struct size sizes[MOST_SIZES + 1];
    bool compared[MOST_SIZES + 1]; /* whether `tightest` agrees with the counts */
    int64_t *counts, *exact, *copies, *sums;
    struct tightest *tightest; /* per size and group */
    struct buffer residents, rows, targets, wanted, left, chosen; /* working memory */
};

bool open_room(struct engine *engine) {
    struct room *room = engine->room = zeroed(engine, 1, sizeof *room);
    int64_t rows = (MOST_SIZES + 1) * engine->node_count, groups = (MOST_SIZES + 1) * engine->group_count;
    if (room == NULL) return false;
    if (engine->mirrored) return true; /* only placements on single nodes use the tables */
    room->counts = zeroed(engine, rows, sizeof *room->counts);
    room->exact = zeroed(engine, rows, sizeof *room->exact);
    room->copies = zeroed(engine, rows, sizeof *room->copies);
    room->sums = zeroed(engine, groups, sizeof *room->sums);
    room->tightest = zeroed(engine, groups, sizeof *room->tightest);
    return !failed(engine);
}

void forget_sizes_of_room(struct engine *engine) { engine->room->known = false; }

static struct size size_of(const struct instance *instance) {
    int64_t spindles = instance->spindles == UNKNOWN_SPINDLES ? 0 : instance->spindles;
    return (struct size){{memory_used(instance), instance->local ? instance->disk : 0, instance->local ? spindles : 0}};
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

static bool same(const struct size *a, const struct size *b) { return covers(a, b) && covers(b, a); }

static struct size free_room(const struct engine *engine, int64_t row) {
    const struct node *node = &engine->nodes[row];
    return (struct size){
        {node->unallocated, node->disk, engine->facts[row].exclusive ? node->free_spindles : ANY_SPINDLES}};
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

/* Whether the policies of the targets allow all copies. */
static bool policies_allow(const struct engine *engine, const struct instance *const *residents, int64_t count,
                           const int64_t *targets, int64_t target_count) {
    int64_t one_of_each[2] = {NOWHERE, NOWHERE}; /* without and with exclusive storage */
    for (int64_t place = 0; place < target_count; place++) {
        one_of_each[engine->facts[targets[place]].exclusive] = targets[place];
    }
    for (int64_t place = 0; place < count; place++) {
        if (residents[place]->evacuation == MOVE) continue;
        for (int kind = 0; kind < 2; kind++) {
            if (one_of_each[kind] == NOWHERE) continue;
            if (check_policy(engine, one_of_each[kind], residents[place], 0) != FITS) return false;
        }
    }
    return true;
}

/* The resources left on a target before the first placement. */
struct target { int64_t left[RESOURCES]; };

/* Whether an instance surely finds a node, wherever the instances before it (`placed` in sum) have gone.
 *
 * A node refuses an instance only when the instances placed there have used up memory, disk or spindles. For each node
 * take the smallest share of `placed` that blocks it. If these shares add up to more than there is of the blocking
 * resources, at least one node takes the instance.
 */
static bool finds_room(const struct instance *instance, const struct size *placed, const struct target *targets,
                       int64_t count) {
    struct size size = size_of(instance);
    bool asked[RESOURCES] = {true, instance->local, instance->local}, blocking[RESOURCES] = {false, false, false};
    double shares = 0.0;
    for (int64_t target = 0; target < count; target++) {
        double smallest = -1.0;
        for (int place = 0; place < RESOURCES; place++) {
            /* the node is blocked when this much is placed on it */
            int64_t needed = targets[target].left[place] - size.of[place] + 1;
            if (!asked[place] || needed > placed->of[place]) continue;
            double share = (double)most(needed, 0) / (double)most(placed->of[place], 1);
            if (smallest < 0.0 || share < smallest) smallest = share;
            blocking[place] = true;
        }
        if (smallest < 0.0) return true; /* even all placed instances would not block this node */
        shares += smallest;
    }
    return shares > (blocking[MEMORY] + blocking[SPACE] + blocking[SPINDLE]) * (1.0 + 1e-9);
}

static bool room_in_any_order(const struct instance *const *residents, int64_t count, const struct target *targets,
                              int64_t target_count) {
    struct size placed = {{0, 0, 0}};
    /* residents are in order: moves as listed, then copies, the biggest first */
    for (int64_t place = 0; place < count; place++) {
        const struct instance *instance = residents[place];
        if (!finds_room(instance, &placed, targets, target_count)) return false;
        struct size size = size_of(instance);
        placed.of[MEMORY] += size.of[MEMORY];
        placed.of[SPACE] += size.of[SPACE];
        /* external storage takes spindles from a node, though the check requires none */
        placed.of[SPINDLE] += instance->spindles == UNKNOWN_SPINDLES ? 0 : instance->spindles;
    }
    return true;
}

/* List the instances of a node in the order of their evacuation; NULL after fail(). */
static const struct instance **in_order(struct engine *engine, int64_t row) {
    const struct list *primaries = &engine->primaries[row];
    int64_t count = 0, moves;
    const struct instance **residents =
        reserve(engine, &engine->room->residents, primaries->count, sizeof *residents);
    if (residents == NULL) return NULL;
    for (int64_t place = primaries->count - 1; place >= 0; place--) {
        const struct instance *instance = &engine->table.items[primaries->items[place]];
        if (instance->evacuation == MOVE) residents[count++] = instance;
    }
    moves = count;
    for (int64_t place = primaries->count - 1; place >= 0; place--) {
        const struct instance *instance = &engine->table.items[primaries->items[place]];
        if (instance->evacuation == MOVE) continue;
        int64_t to = count++;
        for (; to > moves && residents[to - 1]->memory < instance->memory; to--) {
            residents[to] = residents[to - 1];
        }
        residents[to] = instance;
    }
    return residents;
}

enum verdict judge_room(struct engine *engine, int64_t row) {
    const struct instance **residents = in_order(engine, row);
    int64_t count = engine->primaries[row].count, target_count = 0, open = 0;
    int64_t *rows = reserve(engine, &engine->room->rows, engine->node_count, sizeof *rows);
    struct target *targets = reserve(engine, &engine->room->targets, engine->node_count, sizeof *targets);
    struct size *sizes = reserve(engine, &engine->room->wanted, count, sizeof *sizes);
    if (failed(engine)) return UNSURE;
    for (int64_t other = 0; other < engine->node_count; other++) {
        if (other != row && engine->facts[other].group == engine->facts[row].group) rows[target_count++] = other;
    }
    if (target_count == 0) return NO;
    for (int64_t place = 0; place < count; place++) {
        const struct instance *instance = residents[place];
        if (engine->any_exclusive && instance->spindles == UNKNOWN_SPINDLES) return UNSURE;
        if (instance->local && instance->disk <= 0) return UNSURE;
    }
    if (!policies_allow(engine, residents, count, rows, target_count)) return UNSURE;
    for (int64_t place = 0; place < count; place++) sizes[place] = size_of(residents[place]);
    for (int64_t place = 0; place < count; place++) {
        struct size size = sizes[place];
        int64_t as_big = 0, copies = 0;
        bool seen = false;
        for (int64_t other = place - 1; other >= 0 && !seen; other--) seen = same(&sizes[other], &size);
        if (seen) continue;
        for (int64_t other = 0; other < count; other++) as_big += covers(&sizes[other], &size);
        for (int64_t other = 0; other < target_count && copies < as_big; other++) {
            copies += copies_in(free_room(engine, rows[other]), &size);
        }
        if (copies < as_big) return NO;
    }
    for (int64_t place = 0; place < target_count; place++) {
        struct size room = free_room(engine, rows[place]);
        if (room.of[MEMORY] <= 0) continue; /* a node without memory takes nothing */
        targets[open++] = (struct target){{room.of[MEMORY] - 1, room.of[SPACE] - 1, room.of[SPINDLE]}};
    }
    return open > 0 && room_in_any_order(residents, count, targets, open) ? YES : UNSURE;
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
        if (!needs_room(engine, instance)) return false;
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

static void count_row(struct engine *engine, int64_t number, int64_t row) {
    struct room *room = engine->room;
    const struct size *size = &room->sizes[number];
    const struct list *primaries = &engine->primaries[row];
    int64_t cell = number * engine->node_count + row, count = 0, exact = 0;
    int64_t copies = copies_in(free_room(engine, row), size);
    for (int64_t place = 0; place < primaries->count; place++) {
        const struct instance *instance = &engine->table.items[primaries->items[place]];
        struct size own = size_of(instance);
        if (!needs_room(engine, instance) || !covers(&own, size)) continue;
        count++;
        exact += covers(size, &own);
    }
    if (count == room->counts[cell] && exact == room->exact[cell] && copies == room->copies[cell]) return;
    room->counts[cell] = count;
    room->exact[cell] = exact;
    room->sums[number * engine->group_count + engine->facts[row].group] += copies - room->copies[cell];
    room->copies[cell] = copies;
    room->compared[number] = false;
}

static void count_size(struct engine *engine, int64_t number) {
    struct room *room = engine->room;
    memset(&room->sums[number * engine->group_count], 0, (size_t)engine->group_count * sizeof *room->sums);
    memset(&room->copies[number * engine->node_count], 0, (size_t)engine->node_count * sizeof *room->copies);
    for (int64_t row = 0; row < engine->node_count; row++) count_row(engine, number, row);
    room->compared[number] = false;
}

/* Count a size that no instance has, in the last row of the table, which the next such size overwrites. */
static void count_other_size(struct engine *engine, const struct size *size) {
    struct room *room = engine->room;
    int64_t number = room->size_count, nodes = engine->node_count;
    int64_t *counts = &room->counts[number * nodes], *copies = &room->copies[number * nodes];
    int64_t *sums = &room->sums[number * engine->group_count];
    memset(sums, 0, (size_t)engine->group_count * sizeof *sums);
    memset(counts, 0, (size_t)nodes * sizeof *counts);
    for (int64_t other = 0; other < number; other++) {
        if (!covers(&room->sizes[other], size)) continue;
        for (int64_t row = 0; row < nodes; row++) counts[row] += room->exact[other * nodes + row];
    }
    for (int64_t row = 0; row < nodes; row++) {
        copies[row] = copies_in(free_room(engine, row), size);
        sums[engine->facts[row].group] += copies[row];
    }
    room->sizes[number] = *size;
    room->compared[number] = false;
}

/* Count the sizes of all instances of a node, as far as the table has room. */
static void learn_sizes(struct engine *engine, int64_t row) {
    struct room *room = engine->room;
    const struct list *primaries = &engine->primaries[row];
    for (int64_t place = 0; place < primaries->count; place++) {
        const struct instance *instance = &engine->table.items[primaries->items[place]];
        struct size size = size_of(instance);
        int64_t known = 0;
        if (!needs_room(engine, instance)) continue;
        while (known < room->size_count && !same(&room->sizes[known], &size)) known++;
        if (known < room->size_count || known == MOST_SIZES) continue;
        room->sizes[room->size_count] = size;
        count_size(engine, room->size_count++);
    }
}

static void build_room(struct engine *engine) {
    struct room *room = engine->room;
    bool known = room->known && room->replaced == engine->table.replaced;
    int64_t as_of = known ? room->as_of : -1, sizes = known ? room->size_count : 0;
    room->size_count = sizes;
    for (int64_t row = 0; as_of < engine->clock && row < engine->node_count; row++) {
        if (engine->changed[row] <= as_of) continue;
        for (int64_t size = 0; size < sizes; size++) count_row(engine, size, row);
        learn_sizes(engine, row);
    }
    room->known = true;
    room->as_of = engine->clock;
    room->replaced = engine->table.replaced;
}

/* Return how many more instances of a size the other nodes of the group could take than this node would send them. */
static int64_t slack_of(const struct engine *engine, int64_t number, int64_t row) {
    const struct room *room = engine->room;
    int64_t cell = number * engine->node_count + row;
    int64_t sum = room->sums[number * engine->group_count + engine->facts[row].group];
    return sum - room->copies[cell] - room->counts[cell];
}

static const struct tightest *compare_slack(struct engine *engine, int64_t number) {
    struct tightest *found = &engine->room->tightest[number * engine->group_count];
    if (engine->room->compared[number]) return found;
    for (int64_t group = 0; group < engine->group_count; group++) {
        found[group] = (struct tightest){NOWHERE, UNLIMITED * 1024, UNLIMITED * 1024};
    }
    for (int64_t row = 0; row < engine->node_count; row++) {
        struct tightest *tightest = &found[engine->facts[row].group];
        if (!engine->facts[row].examined) continue;
        int64_t slack = slack_of(engine, number, row);
        if (slack < tightest->least) {
            *tightest = (struct tightest){row, slack, tightest->least};
        } else {
            tightest->second = least(tightest->second, slack);
        }
    }
    engine->room->compared[number] = true;
    return found;
}

/* Judge one size: mark placements after which a node of the group has more instances of it than the others can take. */
static void break_by_size(struct engine *engine, const struct instance *instance, int64_t number, const int64_t *rows,
                          int64_t count, bool *broken) {
    const struct size *size = &engine->room->sizes[number];
    const int64_t *copies = &engine->room->copies[number * engine->node_count];
    const struct tightest *tightest = compare_slack(engine, number);
    struct size wanted = size_of(instance);
    bool counted = covers(&wanted, size);
    for (int64_t place = 0; place < count; place++) {
        int64_t row = rows[place];
        const struct tightest *here = &tightest[engine->facts[row].group];
        int64_t others = here->row == row ? here->second : here->least;
        if (broken[row]) continue;
        if (engine->facts[row].examined && slack_of(engine, number, row) < counted) broken[row] = true;
        if (others >= copies[row]) continue; /* a node cannot lose more copies than it has */
        struct size left = free_room(engine, row);
        for (int resource = 0; resource < RESOURCES; resource++) left.of[resource] -= wanted.of[resource];
        if (!engine->facts[row].exclusive) left.of[SPINDLE] = ANY_SPINDLES;
        if (others < copies[row] - copies_in(left, size)) broken[row] = true;
    }
}

bool sure_to_break(struct engine *engine, const struct instance *instance, const int64_t *rows, int64_t count,
                   bool *broken) {
    bool all = true, known = false;
    struct size wanted = size_of(instance);
    struct room *room = engine->room;
    build_room(engine);
    memset(broken, 0, (size_t)engine->node_count * sizeof *broken);
    for (int64_t size = 0; size < room->size_count; size++) {
        known = known || same(&room->sizes[size], &wanted);
        break_by_size(engine, instance, size, rows, count, broken);
    }
    if (!known) {
        count_other_size(engine, &wanted);
        break_by_size(engine, instance, room->size_count, rows, count, broken);
    }
    for (int64_t place = 0; place < count; place++) all = all && broken[rows[place]];
    return all;
}
