"""GP7xx: the policy against an observed cluster."""
