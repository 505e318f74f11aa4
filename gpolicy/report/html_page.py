"""Pages of HTML from the templates: one file each, without script or network, all text escaped."""

from __future__ import annotations

from typing import Any, Final

from gpolicy.data import data_directory
from gpolicy.printable import printable
from gpolicy.report.section import Name, count, rough_size, size

LONGEST_TEXT: Final = 600
"""Characters of one name or message from outside that are shown."""


def render_page(template: str, **values: Any) -> str:
    """Return the page that `template` makes of `values`. Strings are escaped, and shown without control characters."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 (only rendering needs it)
    from markupsafe import Markup  # noqa: PLC0415

    def shown(value: object) -> object:
        if not isinstance(value, str) or isinstance(value, Markup):
            return value
        text = printable(value)
        return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"

    environment = Environment(
        loader=FileSystemLoader(data_directory("templates"), encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.tests["name"] = lambda value: isinstance(value, Name)
    environment.tests["names"] = lambda value: isinstance(value, tuple)
    environment.globals |= {"size": size, "rough_size": rough_size, "count": count}
    css = (data_directory("templates") / "report.css").read_text(encoding="utf-8")
    return environment.get_template(template).render(css=Markup(css), **values)  # noqa: S704 (our own file)
