from __future__ import annotations

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the large sizes of the laws to those who ask for them: `pytest -m full`."""
    if "full" not in config.getoption("markexpr"):
        large = [item for item in items if item.get_closest_marker("full") and "adopt" in str(item.path)]
        config.hook.pytest_deselected(items=large)
        items[:] = [item for item in items if item not in large]
