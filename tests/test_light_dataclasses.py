"""Light dataclasses are used as those of the library are."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import ClassVar

import pytest

from gpolicy import light_dataclasses as light


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
