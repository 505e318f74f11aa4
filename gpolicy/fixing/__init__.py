"""Mend what was found: apply the fixes of findings to the text of a policy, and see that it is better then."""
