"""Policies as YAML text, and files that are written completely or not at all."""
