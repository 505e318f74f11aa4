"""When groups are full: what instances used in old snapshots, and what that growth leads to."""
