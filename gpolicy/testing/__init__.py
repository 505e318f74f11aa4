"""The policy's own tests: a simulated cluster or a snapshot, a question, and the expected answer."""
