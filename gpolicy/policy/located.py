"""What a document says, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from gpolicy.findings import Span

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Located(Generic[T]):
    """Something other than a parameter that a document says, and where."""

    value: T
    span: Span
