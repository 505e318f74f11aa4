"""What gpolicy does, as functions: policy, state and request in, a value out. Nothing is printed."""
