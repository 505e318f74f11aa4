"""`dataclass`, `field` and `replace` for modules on the way to a short run, as hail's.

The library's `dataclasses` imports `inspect` and compiles each method of each class: 25 ms of processor time, while
Ganeti's own hail answers in 9 ms. These compile `__init__` alone. They make classes with slots, and annotations must be
text (`from __future__ import annotations`). Type checkers take them for the library's and hold `frozen` and `order`,
which nothing does at run time. The library's functions (`fields`, `asdict`, `replace`) know these classes, too.
"""

from __future__ import annotations

from operator import attrgetter

TYPE_CHECKING = False  # `typing` takes 3 ms to import
if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass, field, replace
    from typing import Any

__all__ = ["dataclass", "field", "replace"]


class _Hidden:
    """A field that is neither compared nor shown, and its default."""

    def __init__(self, *, default: object, **_compare_and_repr: bool) -> None:
        self.default = default


class _LibraryFields:
    """What the functions of `dataclasses` look for, made when they do."""

    def __get__(self, _instance: object, owner: Any) -> Any:
        from dataclasses import make_dataclass  # noqa: PLC0415 - only what is needed

        made: Any = make_dataclass(owner.__name__, owner.__match_args__)
        owner.__dataclass_fields__ = made.__dataclass_fields__
        return owner.__dataclass_fields__


def _dataclass(*, slots: bool, frozen: bool = False, kw_only: bool = False, **_order: bool) -> Callable[[type], type]:
    if not slots:
        raise TypeError("a class has slots")

    def made(cls: type) -> type:
        names = tuple(name for name, kind in cls.__annotations__.items() if not kind.startswith("ClassVar"))
        namespace = dict(vars(cls))
        given = {name: namespace.pop(name) for name in names if name in namespace}
        hidden = {name: default.default for name, default in given.items() if isinstance(default, _Hidden)}
        for name in ("__dict__", "__weakref__"):
            namespace.pop(name, None)
        namespace |= _methods(cls.__qualname__, tuple(name for name in names if name not in hidden), frozen=frozen)
        namespace["__init__"] = _init(names, {**given, **hidden}, "*, " if kw_only else "")
        namespace |= {"__slots__": names, "__match_args__": names, "__dataclass_fields__": _LibraryFields()}
        new = type(cls)(cls.__name__, cls.__bases__, namespace)
        new.__qualname__ = cls.__qualname__
        return new

    return made


def _init(names: tuple[str, ...], defaults: dict[str, object], star: str) -> object:
    parameters = star + ", ".join(f"{name}=defaults['{name}']" if name in defaults else name for name in names)
    body = "\n".join(f"    self.{name} = {name}" for name in names)
    made: dict[str, object] = {}
    exec(f"def __init__(self, {parameters}):\n{body}", {"defaults": defaults}, made)  # noqa: S102 - names of fields
    return made["__init__"]


def _methods(title: str, names: tuple[str, ...], *, frozen: bool) -> dict[str, object]:
    values = attrgetter(*names)

    def __eq__(self: object, other: object) -> bool:  # noqa: N807
        return bool(values(self) == values(other)) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: object) -> int:  # noqa: N807
        return hash(values(self))

    def __lt__(self: object, other: object) -> bool:  # noqa: N807
        return bool(values(self) < values(other))

    def __repr__(self: object) -> str:  # noqa: N807
        return f"{title}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    equality = {"__eq__": __eq__, "__hash__": __hash__ if frozen else None}
    return {**equality, "__lt__": __lt__, "__repr__": __repr__, "__replace__": _replace}


def _replace(value: Any, /, **changes: object) -> object:
    kept = {name: getattr(value, name) for name in value.__match_args__ if name not in changes}
    return type(value)(**kept, **changes)


if not TYPE_CHECKING:
    dataclass, field, replace = _dataclass, _Hidden, _replace
