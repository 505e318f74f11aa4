"""The fixtures of cluster_fixtures.py, where the type checker sees them: it takes one conftest alone."""

from __future__ import annotations

import pytest

from tests.e2e.cluster_fixtures import cluster, fresh, second, ssh

__all__ = ["cluster", "fresh", "second", "ssh"]

SHARED = {"shared", "allocator", "second"}
"""Fixtures of whole modules: their tests stay together on one cluster. All others go where there is room."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what needs a real cluster unless it is asked for by name: `-m full` alone does not mean it.

    What takes long comes first, so that no cluster is left with it at the end.
    """
    if "e2e" not in config.option.markexpr:
        left = [item for item in items if item.get_closest_marker("e2e")]
        items[:] = [item for item in items if item not in left]
        config.hook.pytest_deselected(items=left)
    for item in items:
        together = SHARED.intersection(getattr(item, "fixturenames", ()))
        if together:
            item.add_marker(pytest.mark.xdist_group(f"{item.path.stem}-{min(together)}"))
    items.sort(key=_how_soon)


def _how_soon(item: pytest.Item) -> int:
    return 0 if item.get_closest_marker("full") else 1 if "test_parameters_live" in item.path.name else 2
