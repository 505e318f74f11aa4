"""Policies as YAML text, and files written so that nothing is left half."""
