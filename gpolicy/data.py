"""The place of gpolicy's data files: beside the package in a checkout, inside it in a wheel."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any


def data_directory(name: str) -> Path:
    """Return the directory of the data files called `name` (`schemas`, `templates`)."""
    package = Path(__file__).resolve().parent
    installed = package / "_data" / name
    return installed if installed.is_dir() else package.parent / name


@cache
def read_data(name: str) -> dict[str, Any]:
    """Return what a TOML file below the templates says, by key. It must not be changed."""
    import tomllib  # noqa: PLC0415 - few answers need it

    return tomllib.loads((data_directory("templates") / name).read_text(encoding="utf-8"))
