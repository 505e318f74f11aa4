"""Light dataclasses are used as those of the library are."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import ClassVar

import pytest

from gpolicy import light_dataclasses as light

ROOT = Path(__file__).resolve().parents[1]


@dataclasses.dataclass(frozen=True, slots=True)
class Full:
    """A node."""

    name: str
    tags: tuple[str, ...] = ()
    known: float | None = dataclasses.field(default=None, compare=False, repr=False)
    most: ClassVar[int] = 3

    @property
    def first(self) -> str:
        return self.tags[0]


@light.dataclass(frozen=True, slots=True)
class Light:
    """A node."""

    name: str
    tags: tuple[str, ...] = ()
    known: float | None = light.field(default=None, compare=False, repr=False)
    most: ClassVar[int] = 3

    @property
    def first(self) -> str:
        return self.tags[0]


@light.dataclass(slots=True)
class Changing:
    """A value that changes."""

    number: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, order=True)
class FullPlace:
    """A place."""

    line: int
    column: int = 1


@light.dataclass(frozen=True, slots=True, kw_only=True, order=True)
class LightPlace:
    """A place."""

    line: int
    column: int = 1


BOTH = pytest.mark.parametrize("kind", [Full, Light])


@BOTH
def test_fields_are_given_by_place_or_by_name(kind: type[Full]) -> None:
    value = kind("a", tags=("x", "y"))
    assert (value.name, value.tags, value.known, value.first, kind.most) == ("a", ("x", "y"), None, "x", 3)
    assert repr(value) == f"{kind.__name__}(name='a', tags=('x', 'y'))"
    assert kind.__doc__ == "A node."
    assert not hasattr(value, "__dict__")
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'name'"):
        kind()  # type: ignore[call-arg]


@BOTH
def test_values_are_equal_by_their_compared_fields(kind: type[Full]) -> None:
    assert kind("a", known=1.0) == kind("a", known=2.0) != kind("b")
    assert len({kind("a", known=1.0), kind("a"), kind("b")}) == 2
    assert hash(kind("a")) == hash(("a", ()))


@pytest.mark.parametrize("kind", [FullPlace, LightPlace])
def test_values_are_sorted_by_their_fields_which_are_given_by_name(kind: type[FullPlace]) -> None:
    places = [kind(line=2, column=1), kind(line=1, column=3), kind(line=1)]
    assert [(place.line, place.column) for place in sorted(places)] == [(1, 1), (1, 3), (2, 1)]
    assert max(places) == places[0] > min(places)
    with pytest.raises(TypeError, match="positional"):
        kind(1)  # type: ignore[call-arg]


def test_a_value_that_changes_has_no_hash() -> None:
    value = Changing(1)
    value.number = 2
    assert value == Changing(2)
    with pytest.raises(TypeError, match="unhashable"):
        hash(value)


@pytest.mark.parametrize("replace", [light.replace, dataclasses.replace])
def test_a_copy_keeps_what_is_not_replaced(replace: Callable[..., Light]) -> None:
    value = Light("a", ("x",), 1.0)
    new = replace(value, name="b")
    assert (new.name, new.tags, new.known) == ("b", ("x",), 1.0)
    for same in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):  # noqa: S301
        assert (same.name, same.tags, same.known) == ("a", ("x",), 1.0)


@BOTH
def test_the_library_knows_the_fields(kind: type[Full]) -> None:
    assert [field.name for field in dataclasses.fields(kind)] == ["name", "tags", "known"]
    assert dataclasses.asdict(kind("a")) == {"name": "a", "tags": (), "known": None}
    assert kind.__match_args__ == ("name", "tags", "known")


def light_classes() -> Iterator[type]:
    for file in (ROOT / "gpolicy").rglob("*.py"):
        if "gpolicy.light_dataclasses import" in file.read_text(encoding="utf-8"):
            module = import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))
            own = (item for item in vars(module).values() if isinstance(item, type))
            yield from (cls for cls in own if cls.__module__ == module.__name__ and "__dataclass_fields__" in vars(cls))


def test_no_class_wants_what_a_light_one_lacks() -> None:
    """They call no `__post_init__`, have no fields of a base, and share what a default is."""
    classes = list(light_classes())
    assert len(classes) > 30
    for cls in classes:
        assert not hasattr(cls, "__post_init__"), cls
        assert not any(hasattr(base, "__dataclass_fields__") for base in cls.__bases__), cls
        assert cls.__annotations__, cls
        for default in getattr(vars(cls)["__init__"], "__defaults__", None) or ():
            hash(default)
