"""Emptying nodes or a group: where hail moves their instances, and how."""
