"""What one cluster is like in numbers: the allocator asked about an observed state."""
