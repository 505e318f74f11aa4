#include "outcomes.h"

#include <string.h>

#include "node_changes.h"
#include "policy_check.h"

bool open_outcomes(struct engine *engine) {
    struct outcomes *outcomes = engine->outcomes = zeroed(engine, 1, sizeof *outcomes);
    if (outcomes == NULL) return false;
    outcomes->primary_codes = zeroed(engine, engine->node_count, sizeof *outcomes->primary_codes);
    outcomes->secondary_codes = zeroed(engine, engine->node_count, sizeof *outcomes->secondary_codes);
    outcomes->refused_pairs = zeroed(engine, engine->node_count, sizeof *outcomes->refused_pairs);
    outcomes->verdicts = zeroed(engine, 2 * engine->policy_count, sizeof *outcomes->verdicts);
    return !failed(engine);
}

/* Whether every check of a candidate treats two instances alike. */
static bool same_demand(const struct instance *a, const struct instance *b) {
    return a->memory == b->memory && a->disk == b->disk && a->vcpus == b->vcpus && a->spindle_use == b->spindle_use &&
           a->spindles == b->spindles && a->disks == b->disks && a->least_disk == b->least_disk &&
           a->most_disk == b->most_disk && a->disk_template == b->disk_template && a->online == b->online &&
           a->uses_memory == b->uses_memory && a->needs_secondary_memory == b->needs_secondary_memory &&
           a->forthcoming == b->forthcoming && a->tags == b->tags && a->tag_count == b->tag_count;
}

static int8_t primary_code(const struct engine *engine, const struct instance *instance, unsigned unbounded,
                           int64_t row) {
    if (engine->list_of_primary[row] == NOWHERE) return INTERNAL;
    int8_t *verdict = &engine->outcomes->verdicts[2 * engine->facts[row].policy + engine->facts[row].exclusive];
    if (*verdict == INTERNAL) *verdict = (int8_t)check_ipolicy(engine, row, instance, unbounded);
    return *verdict == FITS ? (int8_t)primary_reason(engine, row, instance, engine->force) : *verdict;
}

static int8_t secondary_code(const struct engine *engine, const struct instance *instance, int64_t row) {
    if (engine->list_of_secondary[row] == NOWHERE) return INTERNAL;
    return (int8_t)secondary_reason(engine, row, instance, 0, false, false);
}

/* Whether a secondary that reserves `peer` MiB for the primary already refuses it for lack of memory. Of the checks of
 * a secondary only this one depends on `peer`; only those that count forthcoming instances come after it. */
static bool refuses(const struct engine *engine, const struct instance *instance, int64_t row, int64_t peer) {
    const struct node *node = &engine->nodes[row];
    return !instance->forthcoming && peer + memory_kept(instance) >= node->unallocated && !node->fails_n1;
}

static int64_t refused_pairs_of(const struct engine *engine, const struct instance *instance, int64_t row) {
    const struct outcomes *outcomes = engine->outcomes;
    const struct shares *peers = &engine->peers[row];
    int64_t count = 0;
    bool fits = outcomes->secondary_codes[row] == FITS;
    if (!fits && first_secondary_reason(engine, row, instance, 0, false, false) != FITS) return 0;
    for (int64_t place = 0; place < peers->count; place++) {
        int64_t primary = peers->items[place].node;
        if (primary == NOWHERE || primary == row || outcomes->primary_codes[primary] != FITS) continue;
        if (engine->list_of_primary[primary] != engine->list_of_secondary[row]) continue;
        count += refuses(engine, instance, row, peers->items[place].memory);
    }
    return count;
}

static void count_singles(struct engine *engine) {
    struct outcomes *outcomes = engine->outcomes;
    for (int64_t row = 0; row < engine->node_count; row++) {
        int8_t code = outcomes->primary_codes[row];
        if (engine->list_of_primary[row] == NOWHERE) continue;
        if (code == FITS) {
            outcomes->counts.successes++;
        } else {
            outcomes->counts.failures[code]++;
        }
    }
}

/* Count the outcomes of the pairs of one list of candidates. Pairs are counted by multiplication, less the pairs of a
 * node with itself and the refused pairs. */
static void count_pairs(struct engine *engine, int64_t list) {
    struct outcomes *outcomes = engine->outcomes;
    struct counts *counts = &outcomes->counts;
    int64_t codes[REASONS + 1] = {0}, members = 0, primaries = 0;
    for (int64_t row = 0; row < engine->node_count; row++) {
        int8_t code = outcomes->secondary_codes[row];
        if (engine->list_of_secondary[row] != list) continue;
        codes[code]++;
        members++;
        counts->failures[MEM] += outcomes->refused_pairs[row];
        *(code == FITS ? &counts->successes : &counts->failures[code]) -= outcomes->refused_pairs[row];
    }
    for (int64_t row = 0; row < engine->node_count; row++) {
        int8_t code = outcomes->primary_codes[row], second = outcomes->secondary_codes[row];
        if (engine->list_of_primary[row] != list) continue;
        bool member = engine->list_of_secondary[row] == list;
        if (code != FITS) {
            counts->failures[code] += members - member;
            continue;
        }
        primaries++;
        if (member && second == FITS) counts->successes--;
        if (member && second != FITS) counts->failures[second]--;
    }
    for (int reason = 0; reason < REASONS; reason++) counts->failures[reason] += primaries * codes[reason];
    counts->successes += primaries * codes[FITS];
}

const struct counts *look_at_candidates(struct engine *engine, const struct instance *instance, unsigned unbounded) {
    struct outcomes *outcomes = engine->outcomes;
    bool known = outcomes->known && outcomes->unbounded == unbounded && same_demand(&outcomes->demand, instance);
    bool other = !known; /* whether the set of fitting primaries has changed */
    bool moved = !known; /* whether any outcome has */
    if (known && outcomes->as_of == engine->clock) return &outcomes->counts;
    int64_t as_of = known ? outcomes->as_of : -1;
    if (!known) memset(outcomes->verdicts, INTERNAL, (size_t)(2 * engine->policy_count)); /* not yet asked */
    outcomes->demands += !known;
    for (int64_t row = 0; row < engine->node_count; row++) {
        if (engine->changed[row] <= as_of) continue;
        int8_t code = primary_code(engine, instance, unbounded, row);
        int8_t second = engine->mirrored ? secondary_code(engine, instance, row) : INTERNAL;
        other = other || (code == FITS) != (outcomes->primary_codes[row] == FITS);
        moved = moved || code != outcomes->primary_codes[row] || second != outcomes->secondary_codes[row];
        outcomes->primary_codes[row] = code;
        outcomes->secondary_codes[row] = second;
    }
    for (int64_t row = 0; engine->mirrored && row < engine->node_count; row++) {
        if (!other && engine->changed[row] <= as_of) continue;
        int64_t refused = refused_pairs_of(engine, instance, row);
        moved = moved || refused != outcomes->refused_pairs[row];
        outcomes->refused_pairs[row] = refused;
    }
    if (moved) outcomes->counts = (struct counts){{0}, 0};
    if (moved && !engine->mirrored) count_singles(engine);
    for (int64_t list = 0; moved && engine->mirrored && list < engine->list_count; list++) count_pairs(engine, list);
    outcomes->demand = *instance;
    outcomes->unbounded = unbounded;
    outcomes->as_of = engine->clock;
    outcomes->known = true;
    return &outcomes->counts;
}

bool pair_fits(const struct engine *engine, const struct instance *instance, int64_t primary, int64_t secondary) {
    if (primary == secondary || engine->list_of_secondary[secondary] != engine->list_of_primary[primary] ||
        engine->outcomes->secondary_codes[secondary] != FITS) {
        return false;
    }
    int64_t peer = peer_memory(engine, secondary, primary);
    return peer == 0 || !refuses(engine, instance, secondary, peer);
}

int64_t fitting_rows(struct engine *engine, const int64_t **rows) {
    int64_t count = 0, *found = reserve(engine, &engine->rows, engine->node_count, sizeof *found);
    *rows = found;
    if (found == NULL) return 0;
    for (int64_t row = 0; row < engine->node_count; row++) {
        if (engine->outcomes->primary_codes[row] == FITS) found[count++] = row;
    }
    return count;
}
