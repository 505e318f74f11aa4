"""The engine of checking: what a rule is and sees, which rules count, and what accepts a finding."""
