"""What holds for all tests: the number of examples of a law, and that `-m full` means the laws, too."""

from __future__ import annotations

import pytest
from hypothesis import is_hypothesis_test, settings

import tests.laws  # noqa: F401 (it registers the profiles)


def pytest_configure(config: pytest.Config) -> None:
    """Choose how many examples laws are tried on."""
    settings.load_profile("many" if _means_full(config) else "few")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let `-m full` choose all laws, with many examples."""
    if _means_full(config):
        for item in items:
            if is_hypothesis_test(getattr(item, "obj", None)):
                item.add_marker("full")


def _means_full(config: pytest.Config) -> bool:
    return "full" in config.option.markexpr.replace("not full", "")
