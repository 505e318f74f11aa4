#include "capacity.h"

#include "placing.h"
#include "redundancy.h"
#include "room.h"

enum { HUGE_STEP_FLOOR = 20, SMALL_STEP = 10 };
enum { MOST_AHEAD = 1 << 12 }; /* placements between two tests of ours */

/* A remembered answer about one size in one state. The question is TRIAL with a bit for each unbounded resource, or
 * ATTEMPT plus the test. */
enum question { TRIAL, ATTEMPT = 1 << REASONS };
struct known {
    int64_t version, memory, disk, vcpus, spindles;
    bool filled;
    unsigned question;
    struct attempt attempt;
};

enum { PLACES = 1 << 14 };
struct memo {
    struct known known[PLACES];
    int64_t redundant_version; /* the state for which `redundant` holds, plus 1 */
    bool redundant;
};

void remember_sizes(struct engine *engine) {
    engine->memo = zeroed(engine, 1, sizeof *engine->memo);
    if (!failed(engine)) forget_sizes_of_room(engine);
}

void forget_sizes(struct engine *engine) {
    release(engine, engine->memo); /* most of it is empty, and many engines are open at once */
    engine->memo = NULL;
}

/* Whether the present state passes the N+1 test; tested once for each state. */
static bool known_redundant(struct engine *engine) {
    struct memo *memo = engine->memo;
    if (memo->redundant_version != engine->version + 1) {
        memo->redundant = is_redundant(engine);
        memo->redundant_version = failed(engine) ? 0 : engine->version + 1;
    }
    return memo->redundant;
}

/* Return the place of the answer to a question; `found` tells whether it is there. New answers overwrite old ones. */
static struct known *look_up(struct engine *engine, const struct instance *instance, unsigned question, bool *found) {
    uint64_t hash = (uint64_t)instance->memory * 0x9e3779b97f4a7c15u;
    hash = (hash ^ (uint64_t)instance->disk) * 0xff51afd7ed558ccdu;
    hash = (hash ^ (hash >> 29) ^ (uint64_t)instance->vcpus) * 0xc4ceb9fe1a85ec53u;
    hash = (hash ^ (uint64_t)instance->spindles ^ ((uint64_t)question << 32)) * 0x9e3779b97f4a7c15u;
    struct known *known = &engine->memo->known[(hash >> 40) % PLACES];
    *found = known->filled && known->version == engine->version && known->question == question &&
             known->memory == instance->memory && known->disk == instance->disk && known->vcpus == instance->vcpus &&
             known->spindles == instance->spindles;
    return known;
}

static void keep(struct engine *engine, const struct instance *instance, unsigned question, struct known *known) {
    known->filled = true;
    known->version = engine->version;
    known->question = question;
    known->memory = instance->memory;
    known->disk = instance->disk;
    known->vcpus = instance->vcpus;
    known->spindles = instance->spindles;
}

static const struct counts *trial_of(struct engine *engine, const struct instance *instance, unsigned unbounded) {
    bool found;
    struct known *known = look_up(engine, instance, TRIAL | unbounded, &found);
    if (!found) {
        known->attempt = (struct attempt){.primary = NOWHERE, .secondary = NOWHERE};
        known->attempt.counts = *look_at_candidates(engine, instance, unbounded);
        keep(engine, instance, TRIAL | unbounded, known);
    }
    return &known->attempt.counts;
}

const struct counts *known_trial(struct engine *engine, const struct instance *instance) {
    return trial_of(engine, instance, 0);
}

bool known_to_fit(struct engine *engine, const struct instance *instance, unsigned unbounded) {
    return trial_of(engine, instance, unbounded)->successes > 0;
}

void known_attempt(struct engine *engine, const struct instance *instance, enum test test, struct attempt *attempt) {
    bool found;
    *attempt = (struct attempt){*known_trial(engine, instance), NOWHERE, NOWHERE, 0.0};
    if (attempt->counts.successes == 0) return;
    struct known *known = look_up(engine, instance, ATTEMPT + test, &found);
    if (!found) {
        struct instance numbered = *instance;
        numbered.index = engine->table.count;
        try_allocate(engine, &numbered, numbered.index, test, &known->attempt);
        keep(engine, instance, ATTEMPT + test, known);
    }
    *attempt = known->attempt;
    engine->refused = engine->refused || attempt->counts.failures[N1] > 0;
}

static void place_new(struct engine *engine, const struct instance *instance, const struct attempt *attempt) {
    struct instance placed = *instance;
    placed.index = engine->table.count;
    placed.primary = attempt->primary;
    placed.secondary = attempt->secondary;
    if (placed.secondary != NOWHERE) {
        placed.location_score = common_locations(engine, placed.primary, placed.secondary);
    }
    place(engine, &placed, placed.index);
}

/* Place copies on the best candidates, without a test, until none fits or there are `most` new ones. */
static void place_unchecked(struct engine *engine, const struct instance *instance, int64_t most) {
    for (int64_t count = 0; count < most && !failed(engine); count++) {
        struct attempt attempt;
        known_attempt(engine, instance, UNTESTED, &attempt);
        if (attempt.primary == NOWHERE) return;
        place_new(engine, instance, &attempt);
    }
}

/* Place copies as long as the best candidate of all passes the N+1 test; return how many. If a state surely passes, so
 * did all states before it, and many placements need one test. */
static int64_t place_ahead(struct engine *engine, const struct instance *instance, int64_t limit) {
    int64_t first = engine->placements.count;
    bool growing = true;
    for (int64_t step = 1; step > 0 && !failed(engine);) {
        int64_t before = engine->placements.count;
        place_unchecked(engine, instance, limit == NO_LIMIT ? step : least(step, limit - (before - first)));
        int64_t placed = engine->placements.count - before;
        if (placed == 0) break;
        bool passes = placed == 1 ? known_redundant(engine) : is_surely_redundant(engine);
        if (!passes) unplace(engine, before);
        growing = growing && passes && step < MOST_AHEAD;
        step = growing ? 2 * step : step / 2;
    }
    return engine->placements.count - first;
}

/* Place copies until none fits or the limit is reached. As in htools, the attempt comes before the check of the limit.
 */
static void small(struct engine *engine, const struct instance *instance, int64_t limit, bool checked,
                  struct outcome *outcome) {
    checked = checked && (engine->each || instance->evacuation != FAIL_OVER);
    while (!failed(engine)) {
        struct attempt attempt;
        if (checked) {
            int64_t placed = place_ahead(engine, instance, limit);
            if (limit != NO_LIMIT) limit -= placed;
        }
        known_attempt(engine, instance, !checked ? UNTESTED : limit == 0 ? COUNTED : TESTED, &attempt);
        outcome->counts = attempt.counts;
        outcome->attempted = true;
        if (attempt.primary == NOWHERE || limit == 0) return;
        place_new(engine, instance, &attempt);
        if (limit != NO_LIMIT) limit--;
    }
}

/* Return how many instances to place before the next N+1 test. */
static int64_t huge_step(const struct engine *engine, const struct instance *instance) {
    int64_t available = 0;
    for (int64_t row = 0; row < engine->node_count; row++) {
        available += most(0, engine->nodes[row].unallocated - engine->nodes[row].reserved);
    }
    return most(HUGE_STEP_FLOOR, available / instance->memory - engine->node_count);
}

void standard(struct engine *engine, const struct instance *instance, int64_t limit, struct outcome *outcome) {
    if (!engine->capacity_checks || engine->each) {
        small(engine, instance, limit, engine->capacity_checks, outcome);
        return;
    }
    if (instance->memory == 0) {
        fail(engine, DIVISION_BY_ZERO);
        return;
    }
    const struct counts *trial = known_trial(engine, instance);
    if (trial->successes == 0 && engine->missing == 0) {
        /* nothing can be placed, so N+1 does not matter */
        outcome->counts = *trial;
        outcome->attempted = true;
        return;
    }
    if (limit != 0 && surely_breaks(engine, instance)) {
        /* every unchecked placement breaks N+1, so each one must be checked */
        small(engine, instance, limit, true, outcome);
        return;
    }
    bool huge = true;
    while (!failed(engine)) {
        int64_t before = engine->placements.count, step = huge ? huge_step(engine, instance) : SMALL_STEP;
        int64_t now = limit == NO_LIMIT ? step : least(step, limit);
        int64_t rest = limit == NO_LIMIT ? NO_LIMIT : most(0, limit - step);
        small(engine, instance, now, false, outcome);
        if (known_redundant(engine)) {
            if (rest == 0 || engine->placements.count == before) return;
            limit = rest;
            continue;
        }
        unplace(engine, before);
        if (!huge) {
            small(engine, instance, limit, true, outcome);
            return;
        }
        huge = false;
    }
}
