"""GP6xx: groups, nodes and node sets."""
