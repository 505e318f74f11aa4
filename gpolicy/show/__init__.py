"""Show: the effective policy, each value with where it comes from."""
