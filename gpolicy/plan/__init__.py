"""From policy and state to changes, steps and guards: what would be done, in which order, and whether it may be."""
