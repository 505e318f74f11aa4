"""What holds for all tests: the number of examples of a law, that `-m full` means the laws, too; a warm Python."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

import tests.laws  # noqa: F401 (it registers the profiles)
from tests.warm_python import started


def pytest_configure(config: pytest.Config) -> None:
    """Choose how many examples laws are tried on."""
    settings.load_profile("many" if _means_full(config) else "few")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let `-m full` choose all laws, with many examples."""
    if _means_full(config):
        for item in items:
            if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
                item.add_marker("full")


def _means_full(config: pytest.Config) -> bool:
    return "full" in config.option.markexpr.replace("not full", "")


@pytest.fixture(scope="session")
def warm_python() -> Iterator[Path]:
    """A program that stands in for Python where a script starts gpolicy often."""
    with started() as program:
        yield program
