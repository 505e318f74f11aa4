"""The engine of checking: what a rule is and sees, which rules count, what accepts a finding, and `explain`."""
