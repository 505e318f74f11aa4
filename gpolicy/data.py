"""The place of gpolicy's data files: beside the package in a checkout, inside it in a wheel."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment


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


def text_templates() -> Environment:
    """Return a new environment for templates of scripts and YAML. It quotes nothing: the filters of its user do."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 (only rendering needs it)

    return Environment(
        loader=FileSystemLoader(data_directory("templates"), encoding="utf-8"),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        autoescape=False,  # noqa: S701 (no HTML)
    )
