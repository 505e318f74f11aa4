"""The fixtures of cluster_fixtures.py, where the type checker sees them: it takes one conftest alone."""

from __future__ import annotations

import pytest
from cluster_fixtures import cluster, fresh

__all__ = ["cluster", "fresh"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what needs a real cluster unless it is asked for by name: `-m full` alone does not mean it."""
    if "e2e" not in config.option.markexpr:
        left = [item for item in items if item.get_closest_marker("e2e")]
        items[:] = [item for item in items if item not in left]
        config.hook.pytest_deselected(items=left)
