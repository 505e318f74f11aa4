"""What a policy, or a change of it, means for a cluster in numbers: the allocator run on an observed state."""
