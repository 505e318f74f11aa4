"""Drift: the differences of a cluster from its policy. Nothing is changed or planned."""
