/* The best next step of balancing (gpolicy/allocator/balancing.py). */
#ifndef GPOLICY_BALANCING_H
#define GPOLICY_BALANCING_H

#include "steps.h"

/* Find the step of the instances at `slots` (in their order) after which the score of all nodes is least, of equal ones
 * the first. If it is less than the present score, takes the step, writes the record and the score, and returns true.
 * Otherwise the state stays as it is. */
bool take_best_step(struct engine *engine, const struct step_rules *rules, const int64_t *slots, int64_t count,
                    struct step *best, double *score);

#endif
