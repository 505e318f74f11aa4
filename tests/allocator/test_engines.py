"""What an answer of the engine means: an error of the law, a question for the law, or an answer."""

from __future__ import annotations

import pytest

from gpolicy.allocator.engines import answered
from gpolicy.allocator.ghc_numbers import DivisionError
from gpolicy.allocator.native.library import NativeEngine, Status, load
from gpolicy.allocator.native.streams import UnfitError
from gpolicy.errors import InputError


def _engine() -> NativeEngine:
    library = load().library
    assert library is not None
    return NativeEngine(library)


@pytest.mark.parametrize(
    ("status", "error", "message"),
    [
        (Status.DIVISION_BY_ZERO, DivisionError, "divide by zero"),
        (Status.OUT_OF_MEMORY, MemoryError, "not enough memory for the allocation"),
        (Status.TOO_MANY_PLACED, InputError, "more than 1,048,576 instances of this size fit"),
        (Status.TOO_DEEP, InputError, "counting takes more than 262,144 steps"),
    ],
)
@pytest.mark.parametrize("fit", [True, False])
def test_errors_are_those_of_the_law(status: Status, error: type[Exception], message: str, *, fit: bool) -> None:
    with pytest.raises(error, match=message):
        answered(status, _engine(), {}, fit=fit)


def test_what_the_engine_cannot_answer_is_for_the_law() -> None:
    assert answered(Status.DONE, _engine(), {})
    assert answered(Status.DONE, _engine(), {}, fit=True)
    assert not answered(Status.INVALID, _engine(), {})
    with pytest.raises(UnfitError):
        answered(Status.INVALID, _engine(), {}, fit=True)
