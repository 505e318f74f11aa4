"""How messages name a place in a document."""

from __future__ import annotations

from gpolicy.policy.yaml_document import Pointer


def place_name(pointer: Pointer) -> str:
    """Return a place for people: `ipolicy.minmax[1].min`. Items of lists count from 1, as in the other messages."""
    return "".join(f"[{step + 1}]" if isinstance(step, int) else f".{step}" for step in pointer).removeprefix(".")


def last_key(pointer: Pointer) -> str:
    """Return the key that a place stands under: `pv_size` also for the second of its list."""
    return next((step for step in reversed(pointer) if isinstance(step, str)), "")
