"""The place of gpolicy's data files: beside the package in a checkout, inside it in a wheel."""

from __future__ import annotations

from pathlib import Path


def data_directory(name: str) -> Path:
    """Return the directory of the data files called `name` (`schemas`, `templates`)."""
    package = Path(__file__).resolve().parent
    installed = package / "_data" / name
    return installed if installed.is_dir() else package.parent / name
