/* Whether an instance is allowed by a policy (gpolicy/allocator/policy_check.py). */
#ifndef GPOLICY_POLICY_CHECK_H
#define GPOLICY_POLICY_CHECK_H

#include "cluster.h"

/* Return why the policy of the node at `row` refuses `instance`, or FITS. A bit in `unbounded` for a reason (MEM, DISK,
 * CPU, SPINDLES) ignores its bounds. */
enum reason check_ipolicy(const struct engine *engine, int64_t row, const struct instance *instance, unsigned unbounded);

#endif
