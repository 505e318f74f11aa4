"""What each adopted policy brings along and is always the same is made once."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from unittest.mock import patch

import pytest

from gpolicy.adopt import adopting
from gpolicy.writing.documents import schema_text


@pytest.fixture(scope="package", autouse=True)
def one_schema() -> Iterator[None]:
    with patch.object(adopting, "schema_text", functools.cache(schema_text)):
        yield
