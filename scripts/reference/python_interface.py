"""The reference of the Python interface, from the docstrings of what `import gpolicy` gives."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator

import gpolicy
from gpolicy.reference.blocks import Block, Heading, PageListing

_ABOUT = (
    "For those who use gpolicy from Python. `import gpolicy` gives these names and no others; each is imported when it"
    " is used. [The guide](../guides/python.md) shows how they go together. Functions print nothing and read no clock;"
    " those called `write_...` write files, and `apply_plan` and `roll_out` change clusters. `working` of some is told"
    " what they do: a function from a text to a context manager, which gives what takes the parts. Sizes are in MiB."
)


def python_page() -> list[Block]:
    """Return the page: the functions, then the values that they take and give."""
    public = {name: getattr(gpolicy, name) for name in sorted(gpolicy.PUBLIC)}
    functions = {name: item for name, item in public.items() if inspect.isfunction(item)}
    values = {name: item for name, item in public.items() if name not in functions}
    return [
        Heading("Python", 1),
        _ABOUT,
        Heading("Functions"),
        *(block for name, item in functions.items() for block in _described(name, item)),
        Heading("Values"),
        *(block for name, item in values.items() for block in _described(name, item)),
    ]


def _described(name: str, item: object) -> Iterator[Block]:
    yield Heading(f"`{name}`", 3)
    if inspect.isfunction(item):
        yield PageListing(f"{name}{_signature(item)}", "python")
    elif dataclasses.is_dataclass(item):
        fields = [field for field in dataclasses.fields(item) if not field.name.startswith("_")]
        yield PageListing("\n".join(f"{field.name}: {field.type}" for field in fields), "python")
    yield from (inspect.getdoc(item) or "").split("\n\n")


def _signature(function: object) -> str:
    """Return the parameters of a function, in several lines where one is too long; public names stand alone."""
    signature = inspect.signature(function)  # type: ignore[arg-type]
    parts: list[str] = []
    is_keyword = False
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not is_keyword:
            parts, is_keyword = [*parts, "*"], True
        default = "" if parameter.default is parameter.empty else f" = {_default(parameter.default)}"
        annotation = str(parameter.annotation).replace("gpolicy.", "")
        parts.append(f"{parameter.name}: {annotation}{default}")
    returned = str(signature.return_annotation).replace("gpolicy.", "")
    line = f"({', '.join(parts)}) -> {returned}"
    return line if len(line) < 100 else "(\n    " + ",\n    ".join(parts) + f",\n) -> {returned}"


def _default(value: object) -> str:
    if inspect.isfunction(value):
        return value.__name__
    return f"{type(value).__name__}()" if dataclasses.is_dataclass(value) else repr(value)
