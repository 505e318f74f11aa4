"""Ganeti's allocator as a pure library: a cluster in, placements and capacity out; no I/O."""
