"""Adopt: write the policy that a cluster has now."""
