/* What the library offers to gpolicy/allocator/native/library.py. Every call returns an enum status. */
#include <stdlib.h>
#include <string.h>

#include "capacity.h"
#include "cluster.h"
#include "input.h"
#include "redundancy.h"

#define EXPORTED __attribute__((visibility("default")))
#ifndef GPOLICY_SOURCES
#error "the build passes GPOLICY_SOURCES, a number made of all sources, so that an old library is recognised"
#endif

/* The answer to an attempt or a run. */
struct result { int64_t failures[REASONS], attempted, successes, primary, secondary; double score; };

/* One placement: rows of its nodes, and the sizes that it was shrunk to. */
struct placement { int64_t primary, secondary, memory, least_disk, vcpus, spindles; };

EXPORTED uint32_t gpolicy_sources(void) { return GPOLICY_SOURCES; }

/* Read a cluster. The engine is to be closed whatever the status is, unless it is NULL. `*stop`, set to anything but 0
 * by another thread, ends a call. */
EXPORTED int gpolicy_open(const int64_t *integers, int64_t integer_count, const double *reals, int64_t real_count,
                          volatile int32_t *stop, struct engine **opened) {
    struct numbers numbers = {integers, integer_count, reals, real_count};
    struct engine *engine = *opened = calloc(1, sizeof *engine);
    if (engine == NULL) return OUT_OF_MEMORY;
    engine->stop = stop;
    int status = setjmp(engine->failure);
    if (status != DONE) return status;
    read_cluster(engine, &numbers);
    return DONE;
}

EXPORTED void gpolicy_close(struct engine *engine) {
    if (engine != NULL) empty(engine);
    free(engine);
}

enum kind { STANDARD, TIERED, ATTEMPT, REDUNDANT };

static void answer(struct engine *engine, enum kind kind, const struct numbers *numbers, int64_t limit, bool checked,
                   struct result *result) {
    struct instance instance;
    struct outcome outcome = {{0}, false};
    if (kind == REDUNDANT) {
        result->successes = is_redundant(engine);
        return;
    }
    read_instance(engine, numbers, &instance);
    if (kind == ATTEMPT) {
        struct attempt attempt;
        /* `limit` is the number of the new instance in the table of instances */
        try_allocate(engine, &instance, limit, checked, &attempt);
        memcpy(result->failures, attempt.failures, sizeof attempt.failures);
        result->successes = attempt.successes;
        result->primary = attempt.primary;
        result->secondary = attempt.secondary;
        result->score = attempt.score;
        return;
    }
    /* new instances are numbered on from the last one, so no number may be missing before it */
    int64_t given = engine->given_instances;
    if (given > 0 && engine->keys[given - 1] != given - 1) fail(engine, INVALID);
    forget_sizes(engine);
    if (kind == TIERED) {
        tiered(engine, &instance, limit, &outcome);
    } else {
        standard(engine, &instance, limit, &outcome);
    }
    memcpy(result->failures, outcome.failures, sizeof outcome.failures);
    result->attempted = outcome.attempted;
}

/* Take back the placements beyond the first `keep` and answer one question; see answer(). */
EXPORTED int gpolicy_ask(struct engine *engine, int64_t keep, int kind, const int64_t *integers, int64_t integer_count,
                         const double *reals, int64_t real_count, int64_t limit, int checked, struct result *result) {
    struct numbers numbers = {integers, integer_count, reals, real_count};
    if (keep < 0 || keep > engine->placement_count || kind < STANDARD || kind > REDUNDANT) return INVALID;
    memset(result, 0, sizeof *result);
    result->primary = result->secondary = NOWHERE;
    unplace(engine, keep);
    engine->settled = engine->top;
    int status = setjmp(engine->failure);
    if (status == DONE) {
        answer(engine, (enum kind)kind, &numbers, limit, checked != 0, result);
        return DONE;
    }
    if (status == OUT_OF_MEMORY) return status;
    /* back to the state before the call: placements first, then what a simulation has changed */
    unplace(engine, keep);
    take_back(engine, engine->settled);
    return status;
}

EXPORTED int64_t gpolicy_placed(const struct engine *engine) { return engine->placement_count; }

/* Copy the placements from number `from` on; there must be room for all of them. */
EXPORTED void gpolicy_placements(const struct engine *engine, int64_t from, struct placement *placements) {
    for (int64_t number = from; number < engine->placement_count; number++) {
        const struct placed *placed = &engine->placements[number];
        *placements++ = (struct placement){placed->primary, placed->secondary, placed->instance.memory,
                                           placed->instance.least_disk, placed->instance.vcpus,
                                           placed->instance.spindles};
    }
}

/* The index of the node that an instance should fail over to, after MISSING_NODE. */
EXPORTED int64_t gpolicy_missing(const struct engine *engine) { return engine->missing_index; }
