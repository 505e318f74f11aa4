"""What an answer of the engine means: an error of the law, a question for the law, or an answer."""

from __future__ import annotations

import pytest

from gpolicy.allocator import redundancy
from gpolicy.allocator.cluster_data import DiskTemplate
from gpolicy.allocator.engines import answered, compiled_redundancy
from gpolicy.allocator.ghc_numbers import DivisionError
from gpolicy.allocator.native.library import NativeEngine, Status, load
from gpolicy.allocator.native.streams import UnfitError
from gpolicy.allocator.redundancy import CapacityRules
from gpolicy.errors import InputError
from tests.allocator.helpers import cluster, instance, node


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


@pytest.mark.parametrize("memory", [1024, 9000])
def test_redundancy_is_the_engine_s_own_answer(memory: int) -> None:
    one = instance(memory, 10240, 1, DiskTemplate.DRBD, index=0, name="a", primary=0, secondary=1)
    two = instance(memory, 10240, 1, DiskTemplate.DRBD, index=1, name="b", primary=1, secondary=0)
    where = cluster([node(place, 16384, 204800) for place in range(2)], [one, two])
    found = compiled_redundancy(where.nodes, where.instances, CapacityRules())
    assert found is (memory == 1024)
    assert found is redundancy.is_redundant(where.nodes, where.instances, CapacityRules())
