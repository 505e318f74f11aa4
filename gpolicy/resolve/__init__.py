"""A policy on one cluster: the groups and nodes that it names."""
