"""Starter: the small policy that `gpolicy init` writes."""
