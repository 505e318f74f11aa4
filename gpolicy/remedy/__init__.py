"""What cures a cluster: the moves that end its faults, step by step, and what nothing can cure."""
