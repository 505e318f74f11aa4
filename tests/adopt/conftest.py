"""What each adopted policy brings along and is always the same is made once."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from unittest.mock import patch

import pytest

from gpolicy.writing import documents


@pytest.fixture(scope="package", autouse=True)
def one_schema() -> Iterator[None]:
    with patch.object(documents, "schema_text", functools.cache(documents.schema_text)):
        yield
