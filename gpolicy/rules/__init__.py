"""Rules about the meaning of a policy, their catalogue, and the check that runs them."""
