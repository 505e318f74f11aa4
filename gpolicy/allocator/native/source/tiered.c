/* Tiered allocation that skips known outcomes.
 *
 * A tiered run consists mostly of instances that fit nowhere. While they are shrunk by one resource, the outcome on a
 * node changes only where the demand passes certain numbers. Between two of these numbers all steps end alike and are
 * taken at once. The same holds for the probes on the way back.
 */
#include "capacity.h"
#include "shrink.h"

/* A run of levels with the same end: `first`, then `count` - 1 instances, each one unit smaller. `alike`: they fit
 * nowhere, for the same reasons. */
struct levels {
    int64_t placed, count, limit;
    enum reason reason;
    bool alike;
    struct instance first;
    struct outcome reached;
};

enum { MOST_LEVELS = 1 << 18 }; /* of pending runs, of the levels of a probed run, and of the steps of a walk */

static struct instance level(const struct levels *levels, int64_t place) {
    return shrink(&levels->first, levels->reason, place);
}

/* Return the reason to shrink by: the most frequent one, of equals the last one. */
static enum reason most_frequent(const int64_t *failures) {
    int found = 0;
    for (int reason = 1; reason < REASONS; reason++) {
        if (failures[reason] >= failures[found]) found = reason;
    }
    return (enum reason)found;
}

/* All reasons, the most frequent first; of equals the last one first. */
static void most_frequent_first(const int64_t *failures, enum reason *reasons) {
    for (int count = 0; count < REASONS; count++) {
        int to = count;
        for (; to > 0 && failures[reasons[to - 1]] <= failures[count]; to--) reasons[to] = reasons[to - 1];
        reasons[to] = (enum reason)count;
    }
}

/* Whether a walk would continue from here: nothing can be placed, and `reason` is among the reasons. */
static bool hopeless(struct engine *engine, const struct instance *instance, enum reason reason) {
    const struct counts *trial = known_trial(engine, instance);
    if (trial->failures[reason] == 0) return false;
    return trial->successes == 0 || (engine->capacity_checks && breaks_everywhere(engine, instance));
}

/* Return how many shrinks lead from `instance`, which breaks N+1 wherever it fits, to the first one that may be placed
 * or may end the walk. While policies judge both alike, a bigger instance fits on no more nodes than a smaller one, and
 * breaks N+1 on all of them if the smaller one surely does. So all instances before a hopeless one are hopeless, and
 * the last one is found by bisection. */
static int64_t steps_while_hopeless(struct engine *engine, const struct instance *instance, enum reason reason) {
    int64_t other_bounds = steps_until_other_bounds(engine, instance, reason);
    int64_t low = 0, high = least(other_bounds - 1, possible_shrinks(instance, reason));
    if (!hopeless(engine, instance, reason)) return 1;
    while (low < high) {
        int64_t middle = high - (high - low) / 2;
        struct instance smaller = shrink(instance, reason, middle);
        if (hopeless(engine, &smaller, reason)) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low + 1;
}

/* Shrink by one reason until an instance fits or until that reason no longer occurs. */
static bool walk(struct engine *engine, const struct instance *from, enum reason reason, struct instance *found) {
    struct instance current = *from;
    for (int64_t count = 0; !ended(engine); count++) {
        struct attempt attempt;
        int64_t possible = possible_shrinks(&current, reason), steps = 1;
        if (possible == 0) return false; /* as in htools, the smallest one is never tried */
        if (count == MOST_LEVELS) fail(engine, TOO_DEEP);
        known_attempt(engine, &current, engine->capacity_checks ? TESTED : UNTESTED, &attempt);
        if (attempt.primary != NOWHERE) {
            *found = current;
            return true;
        }
        if (attempt.counts.failures[reason] == 0) return false;
        if (shrinkable(reason)) {
            steps = known_to_fit(engine, &current, 0) ? steps_while_hopeless(engine, &current, reason)
                                                      : steps_until_change(engine, &current, reason);
        }
        if (steps > possible) return false; /* all smaller ones have the same outcome */
        current = shrink(&current, reason, steps);
    }
    return false;
}

static bool probe(struct engine *engine, const struct outcome *reached, const struct instance *instance,
                  struct instance *found) {
    enum reason reasons[REASONS];
    most_frequent_first(reached->counts.failures, reasons);
    for (int place = 0; place < REASONS; place++) {
        if (walk(engine, instance, reasons[place], found)) return true;
    }
    return false;
}

/* Whether some candidate might take the instance if it were as small as possible in `reason` and policies did not bound
 * the resources in `unbounded`. A false answer is certain. */
static bool may_fit(struct engine *engine, const struct instance *instance, unsigned unbounded, enum reason reason) {
    int64_t possible = possible_shrinks(instance, reason);
    if (possible == 0) return false;
    struct instance smallest = shrink(instance, reason, possible);
    return known_to_fit(engine, &smallest, unbounded);
}

/* Return the first level at which a probe by one of the reasons may succeed; all later levels may, too. */
static int64_t first_that_may(struct engine *engine, const struct levels *levels, const enum reason *reasons,
                              int count) {
    int64_t low = 0, high = levels->count - 1;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        struct instance instance = level(levels, middle);
        bool may = false;
        for (int place = 0; place < count && !may; place++) {
            unsigned unbounded = 1u << reasons[place] | 1u << levels->reason;
            may = reasons[place] != levels->reason && may_fit(engine, &instance, unbounded, reasons[place]);
        }
        if (may) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

/* Probe the levels of a run, the smallest first. */
static bool probe_levels(struct engine *engine, const struct levels *levels, struct instance *found) {
    if (!levels->alike) return probe(engine, &levels->reached, &levels->first, found);
    enum reason all[REASONS], reasons[REASONS];
    int count = 0;
    struct instance deepest = level(levels, levels->count - 1);
    most_frequent_first(levels->reached.counts.failures, all);
    for (int place = 0; place < REASONS; place++) {
        unsigned unbounded = 1u << all[place] | 1u << levels->reason;
        if (levels->reached.counts.failures[all[place]] > 0 && may_fit(engine, &deepest, unbounded, all[place])) {
            reasons[count++] = all[place];
        }
    }
    if (count == 0) return false;
    int64_t last = levels->count - 1, first = first_that_may(engine, levels, reasons, count);
    /* All levels of the run have the same outcome on every node. If N+1 is not tested, all walks lead where those of
     * the last level lead. */
    if (!engine->capacity_checks) first = last;
    for (int64_t number = last; number >= first && !ended(engine); number--) {
        struct instance instance = level(levels, number);
        if (last - number == MOST_LEVELS) fail(engine, TOO_DEEP);
        for (int place = 0; place < count; place++) {
            /* this walk leads where that of the last level led */
            if (reasons[place] == levels->reason && number < last) continue;
            if (may_fit(engine, &instance, 1u << reasons[place], reasons[place]) &&
                walk(engine, &instance, reasons[place], found)) {
                return true;
            }
        }
    }
    return false;
}

/* Fill in the levels with the same outcome that shrink by the same reason; false if the instance cannot be shrunk. */
static bool start_levels(struct engine *engine, const struct instance *instance, const struct outcome *reached,
                         bool placed_some, int64_t limit, struct levels *levels) {
    enum reason reason = most_frequent(reached->counts.failures);
    int64_t possible = possible_shrinks(instance, reason);
    if (possible == 0) return false;
    *levels = (struct levels){.placed = engine->placements.count, .count = 1, .limit = limit, .reason = reason,
                              .first = *instance, .reached = *reached};
    if (!placed_some && shrinkable(reason) && instance->memory > 0 && !known_to_fit(engine, instance, 0)) {
        levels->alike = true;
        if (limit == NO_LIMIT || engine->placements.before + engine->placements.count == 0) {
            levels->count = least(steps_until_change(engine, instance, reason), possible);
        }
    }
    return true;
}

/* Return to the last run of levels below which nothing more was placed and from which a probe succeeds. */
static bool go_back(struct engine *engine, const struct levels *pending, int64_t *depth, struct instance *found,
                    int64_t *limit, struct outcome *outcome) {
    while (*depth > 0 && !failed(engine)) {
        const struct levels *upper = &pending[--*depth];
        if (engine->placements.count > upper->placed) continue;
        bool again = probe_levels(engine, upper, found);
        *outcome = upper->reached;
        *limit = upper->limit;
        if (again) return true;
    }
    return false;
}

/* As in htools (Cluster.hs, `tieredAlloc`), each level reduces the limit by the number of all placements so far. */
void tiered(struct engine *engine, const struct instance *instance, int64_t limit, struct outcome *outcome) {
    struct instance current = *instance;
    int64_t depth = 0;
    while (!failed(engine)) {
        int64_t before = engine->placements.count;
        standard(engine, &current, limit, outcome);
        struct levels *pending = reserve(engine, &engine->levels, depth + 1, sizeof *pending);
        if (depth == MOST_LEVELS) fail(engine, TOO_DEEP);
        if (failed(engine)) return;
        int64_t placed = engine->placements.before + engine->placements.count;
        if (limit == NO_LIMIT || limit > placed) {
            int64_t below = limit == NO_LIMIT ? NO_LIMIT : limit - placed;
            bool placed_some = engine->placements.count != before;
            if (start_levels(engine, &current, outcome, placed_some, below, &pending[depth])) {
                current = level(&pending[depth], pending[depth].count);
                limit = below;
                depth++;
                continue;
            }
            struct instance found;
            if (probe(engine, outcome, &current, &found)) {
                current = found;
                limit = below;
                continue;
            }
        }
        if (!go_back(engine, pending, &depth, &current, &limit, outcome)) return;
    }
}
