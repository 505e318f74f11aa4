#include "placement.h"

#include <stdlib.h>
#include <string.h>

#include "node_changes.h"
#include "pairs.h"
#include "policy_check.h"
#include "redundancy.h"
#include "room.h"
#include "single.h"

/* The last trial, in which state it was and of what: it is often asked for again. */
struct last_trial { int64_t version; struct instance instance; struct trial trial; };

static void try_single_candidates(struct engine *engine, struct trial *trial) {
    for (int64_t row = 0; row < engine->node_count; row++) {
        if (engine->list_of_primary[row] == NOWHERE) continue;
        if (trial->primary_codes[row] == FITS) {
            trial->successes++;
        } else {
            trial->failures[trial->primary_codes[row]]++;
        }
    }
}

/* Count the outcomes of the pairs of one list of candidates. */
static void try_pair_candidates(struct engine *engine, const struct instance *instance, int64_t list,
                                struct trial *trial) {
    int64_t counts[REASONS + 1] = {0}, members = 0;
    for (int64_t row = 0; row < engine->node_count; row++) {
        if (engine->list_of_secondary[row] != list) continue;
        counts[trial->secondary_codes[row]]++;
        members++;
    }
    for (int64_t row = 0; row < engine->node_count; row++) {
        if (engine->list_of_primary[row] != list) continue;
        bool member = engine->list_of_secondary[row] == list;
        if (trial->primary_codes[row] != FITS) {
            trial->failures[trial->primary_codes[row]] += members - member;
            continue;
        }
        for (int reason = 0; reason < REASONS; reason++) trial->failures[reason] += counts[reason];
        trial->successes += counts[FITS];
        if (member && trial->secondary_codes[row] == FITS) trial->successes--;
        if (member && trial->secondary_codes[row] != FITS) trial->failures[trial->secondary_codes[row]]--;
    }
    /* pairs whose secondary keeps memory for the primary already */
    for (int64_t row = 0; row < engine->node_count; row++) {
        int8_t code = trial->secondary_codes[row];
        if (engine->list_of_secondary[row] != list || code != FITS) continue;
        const struct shares *peers = &engine->peers[row];
        for (int64_t place = 0; place < peers->count; place++) {
            int64_t primary = peers->items[place].node;
            if (primary == NOWHERE || primary == row || engine->list_of_primary[primary] != list) continue;
            if (trial->primary_codes[primary] != FITS) continue;
            enum reason reason = secondary_reason(engine, row, instance, peers->items[place].memory, false, false);
            if (reason != FITS) {
                trial->successes--;
                trial->failures[reason]++;
            }
        }
    }
}

/* Whether two instances are the same to every check of a candidate. */
static bool same_demand(const struct instance *a, const struct instance *b) {
    return a->memory == b->memory && a->disk == b->disk && a->vcpus == b->vcpus && a->spindle_use == b->spindle_use &&
           a->spindles == b->spindles && a->disks == b->disks && a->least_disk == b->least_disk &&
           a->most_disk == b->most_disk && a->disk_template == b->disk_template && a->online == b->online &&
           a->uses_memory == b->uses_memory && a->needs_secondary_memory == b->needs_secondary_memory &&
           a->tags == b->tags && a->tag_count == b->tag_count;
}

static void look_at_candidates(struct engine *engine, const struct instance *instance, unsigned free,
                               struct trial *trial) {
    memset(trial, 0, sizeof *trial);
    trial->primary_codes = scratch(engine, TRIAL_PRIMARY, engine->node_count, sizeof(int8_t));
    trial->secondary_codes = scratch(engine, TRIAL_SECONDARY, engine->node_count, sizeof(int8_t));
    int8_t *verdicts = scratch(engine, TRIAL_POLICIES, 2 * engine->policy_count, sizeof *verdicts);
    bool any = false;
    memset(verdicts, INTERNAL, (size_t)(2 * engine->policy_count) * sizeof *verdicts); /* which no policy says */
    for (int64_t row = 0; row < engine->node_count; row++) {
        enum reason reason = INTERNAL;
        if (engine->list_of_primary[row] != NOWHERE) {
            int8_t *verdict = &verdicts[2 * engine->facts[row].policy + engine->facts[row].exclusive];
            if (*verdict == INTERNAL) *verdict = (int8_t)check_policy(engine, row, instance, free);
            reason = (enum reason)*verdict;
            if (reason == FITS) reason = primary_reason(engine, row, instance, engine->force);
        }
        trial->primary_codes[row] = (int8_t)reason;
        any = any || reason == FITS;
    }
    if (!engine->mirrored) {
        try_single_candidates(engine, trial);
        return;
    }
    for (int64_t row = 0; row < engine->node_count; row++) {
        enum reason reason = INTERNAL;
        if (any && engine->list_of_secondary[row] != NOWHERE) {
            reason = secondary_reason(engine, row, instance, 0, false, false);
        }
        trial->secondary_codes[row] = (int8_t)reason;
    }
    for (int64_t list = 0; list < engine->list_count; list++) try_pair_candidates(engine, instance, list, trial);
}

void try_candidates(struct engine *engine, const struct instance *instance, unsigned free, struct trial *trial) {
    struct last_trial *last = scratch(engine, LAST_TRIAL, 1, sizeof *last);
    bool known = engine->tried && free == 0 && last->version == engine->version &&
                 same_demand(&last->instance, instance);
    if (!known) {
        look_at_candidates(engine, instance, free, &last->trial);
        last->version = free == 0 ? engine->version : NOWHERE;
        last->instance = *instance;
        engine->tried = true;
    }
    *trial = last->trial;
}

static bool is_redundant_after(struct engine *engine, const struct instance *instance, int64_t number, int64_t primary,
                               int64_t secondary) {
    struct instance placed = *instance;
    int64_t before = engine->placement_count;
    placed.primary = primary;
    placed.secondary = secondary;
    if (secondary != NOWHERE) placed.location_score = common_locations(engine, primary, secondary);
    place(engine, &placed, number);
    bool answer = is_redundant(engine);
    unplace(engine, before);
    return answer;
}

/* A candidate by its score; of equals the later one comes first. */
struct scored { double score; int64_t row; };
static int best_first(const void *left, const void *right) {
    const struct scored *a = left, *b = right;
    if (a->score != b->score) return a->score < b->score ? -1 : 1;
    return a->row > b->row ? -1 : a->row < b->row;
}

static int64_t fitting_rows(struct engine *engine, const int8_t *codes, int64_t **rows) {
    int64_t count = 0;
    *rows = scratch(engine, ROWS, engine->node_count, sizeof **rows);
    for (int64_t row = 0; row < engine->node_count; row++) {
        if (codes[row] == FITS) (*rows)[count++] = row;
    }
    return count;
}

static void reject_all(struct attempt *attempt) {
    attempt->failures[N1] += attempt->successes;
    attempt->successes = 0;
}

/* Choose the best single node after which the cluster is redundant. */
static void choose_checked_single(struct engine *engine, const struct instance *instance, int64_t number,
                                  const struct trial *trial, struct attempt *attempt) {
    int64_t *rows, count = fitting_rows(engine, trial->primary_codes, &rows);
    bool *broken = scratch(engine, CHECKED_BROKEN, engine->node_count, sizeof *broken);
    if (!own_number(engine, instance, number)) {
        memset(broken, 0, (size_t)engine->node_count * sizeof *broken);
    } else if (sure_to_break(engine, instance, rows, count, broken)) {
        reject_all(attempt);
        return;
    }
    double *scores = scratch(engine, SINGLE_SCORES, count, sizeof *scores);
    struct scored *order = scratch(engine, CHECKED_ROWS, count, sizeof *order);
    all_singles(engine, instance, rows, count, scores);
    for (int64_t place = 0; place < count; place++) order[place] = (struct scored){scores[place], rows[place]};
    qsort(order, (size_t)count, sizeof *order, best_first);
    for (int64_t rejected = 0; rejected < count; rejected++) {
        int64_t row = order[rejected].row;
        if (broken[row] || !is_redundant_after(engine, instance, number, row, NOWHERE)) continue;
        attempt->failures[N1] += rejected;
        attempt->successes -= rejected;
        attempt->primary = row;
        attempt->score = order[rejected].score;
        return;
    }
    reject_all(attempt);
}

static bool pair_fits(const struct engine *engine, const struct instance *instance, const struct trial *trial,
                      int64_t primary, int64_t secondary) {
    if (primary == secondary || engine->list_of_secondary[secondary] != engine->list_of_primary[primary] ||
        trial->secondary_codes[secondary] != FITS) {
        return false;
    }
    int64_t peer = peer_memory(engine, secondary, primary);
    return peer == 0 || secondary_reason(engine, secondary, instance, peer, false, false) == FITS;
}

/* Go through the secondaries of one primary from the best on until one leaves the cluster redundant. `allowed` says so
 * per row if it is given, else the cluster is tested. */
static void choose_secondary(const struct pair_search *search, const struct trial *trial, int64_t number,
                             int64_t primary, const bool *allowed, struct attempt *attempt) {
    struct engine *engine = search->engine;
    struct scored *order = scratch(engine, CHECKED_ROWS, engine->node_count, sizeof *order);
    int64_t count = 0, rejected = 0;
    for (int64_t row = 0; row < engine->node_count; row++) {
        if (!pair_fits(engine, search->instance, trial, primary, row)) continue;
        order[count++] = (struct scored){pair_score(search, primary, row), row};
    }
    qsort(order, (size_t)count, sizeof *order, best_first);
    for (; rejected < count; rejected++) {
        int64_t row = order[rejected].row;
        if (allowed != NULL ? allowed[row] : is_redundant_after(engine, search->instance, number, primary, row)) break;
    }
    attempt->failures[N1] += rejected;
    attempt->successes -= rejected;
    if (rejected < count && !(attempt->primary != NOWHERE && attempt->score < order[rejected].score)) {
        attempt->primary = primary;
        attempt->secondary = order[rejected].row;
        attempt->score = order[rejected].score;
    }
}

/* Where all instances are mirrored, what keeps a placement from being redundant is one comparison each for the primary
 * (what may fail over to it) and for the pair. Only primaries with a pair that is not allowed are looked at in full. */
static void choose_mirrored(struct pair_search *search, const struct trial *trial, int64_t number,
                            struct attempt *attempt) {
    struct engine *engine = search->engine;
    int64_t nodes = engine->node_count, used = memory_used(search->instance);
    if (!is_redundant(engine)) {
        reject_all(attempt);
        return;
    }
    int64_t *moving = scratch(engine, CHECKED_MOVING, nodes, sizeof *moving);
    int64_t *most_moving = scratch(engine, MOST_MOVING, nodes, sizeof *most_moving);
    bool *flags = scratch(engine, CHECKED_BROKEN, 2 * nodes, sizeof *flags);
    bool *allowed = flags, *clean = flags + nodes;
    most_memory_moving(engine, most_moving);
    for (int64_t primary = 0; primary < nodes; primary++) {
        clean[primary] = false;
        if (trial->primary_codes[primary] != FITS) continue;
        look_at_stop(engine);
        bool takes = most_moving[primary] < engine->nodes[primary].unallocated - used, all = true;
        memory_moving(engine, primary, moving);
        for (int64_t row = 0; row < nodes; row++) {
            allowed[row] = takes && moving[row] + used < engine->nodes[row].unallocated;
            if (!allowed[row] && all) all = !pair_fits(engine, search->instance, trial, primary, row);
        }
        clean[primary] = all;
        if (!all) choose_secondary(search, trial, number, primary, allowed, attempt);
    }
    struct pair best = best_pair(search, clean);
    if (best.primary == NOWHERE) return;
    if (attempt->primary == NOWHERE || best.score < attempt->score ||
        (best.score == attempt->score && best.primary > attempt->primary)) {
        attempt->primary = best.primary;
        attempt->secondary = best.secondary;
        attempt->score = best.score;
    }
}

void try_allocate(struct engine *engine, const struct instance *instance, int64_t number, bool checked,
                  struct attempt *attempt) {
    struct trial trial;
    look_at_stop(engine);
    try_candidates(engine, instance, 0, &trial);
    *attempt = (struct attempt){.successes = trial.successes, .primary = NOWHERE, .secondary = NOWHERE};
    memcpy(attempt->failures, trial.failures, sizeof trial.failures);
    if (trial.successes == 0) return;
    if (!engine->mirrored) {
        if (checked) {
            choose_checked_single(engine, instance, number, &trial, attempt);
            return;
        }
        int64_t *rows, count = fitting_rows(engine, trial.primary_codes, &rows);
        struct choice best = best_single(engine, EVERYWHERE, instance, rows, count);
        attempt->primary = best.row;
        attempt->score = best.score;
        return;
    }
    struct pair_search search;
    prepare_pairs(engine, instance, trial.primary_codes, trial.secondary_codes, &search);
    if (!checked) {
        struct pair best = best_pair(&search, NULL);
        attempt->primary = best.primary;
        attempt->secondary = best.secondary;
        attempt->score = best.score;
    } else if (all_mirrored(engine) && own_number(engine, instance, number)) {
        choose_mirrored(&search, &trial, number, attempt);
    } else {
        for (int64_t row = 0; row < engine->node_count; row++) {
            if (trial.primary_codes[row] == FITS) choose_secondary(&search, &trial, number, row, NULL, attempt);
        }
    }
}

bool surely_breaks(struct engine *engine, const struct instance *instance) {
    struct trial trial;
    if (engine->mirrored) return false;
    try_candidates(engine, instance, 0, &trial);
    int64_t *rows, count = fitting_rows(engine, trial.primary_codes, &rows);
    bool *broken = scratch(engine, CHECKED_BROKEN, engine->node_count, sizeof *broken);
    return sure_to_break(engine, instance, rows, count, broken);
}

/* Whether there is surely no room to evacuate some node. The one that failed last is looked at first. */
static bool some_node_lacks_room(struct engine *engine) {
    int64_t hint = engine->last_failing;
    if (hint < engine->node_count && engine->facts[hint].examined && lacks_room(engine, hint)) return true;
    for (int64_t row = 0; row < engine->node_count; row++) {
        if (!engine->facts[row].examined || row == hint || !lacks_room(engine, row)) continue;
        engine->last_failing = row;
        return true;
    }
    return false;
}

bool breaks_everywhere(struct engine *engine, const struct instance *instance) {
    struct trial trial;
    struct instance placed = *instance;
    int64_t *rows, number = engine->instance_count;
    placed.index = number;
    placed.secondary = NOWHERE;
    if (engine->mirrored || engine->any_missing || engine->clashing || !own_number(engine, &placed, number)) return false;
    if (surely_breaks(engine, instance)) return true;
    try_candidates(engine, instance, 0, &trial);
    int64_t count = fitting_rows(engine, trial.primary_codes, &rows);
    for (int64_t candidate = 0; candidate < count; candidate++) {
        int64_t before = engine->placement_count;
        placed.primary = rows[candidate];
        place(engine, &placed, number);
        bool lacks = some_node_lacks_room(engine);
        unplace(engine, before);
        if (!lacks) return false;
    }
    return true;
}
