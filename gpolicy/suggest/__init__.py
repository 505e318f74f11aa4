"""Suggest: sizes that tile the nodes of a group, from its hardware."""
