"""Carry a plan out on a real cluster, keep a journal of it, go on after a kill, take it back."""
