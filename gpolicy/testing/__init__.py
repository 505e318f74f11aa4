"""The policy's own tests: a cluster on paper or from a snapshot, a question, and what must come out."""
