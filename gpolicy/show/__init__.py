"""Show: the effective policy, each value with its origin."""
