"""One feeder serves all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hostile.bounded import Feeder


@pytest.fixture(scope="session")
def feeder() -> Iterator[Feeder]:
    with Feeder() as feeder:
        yield feeder
