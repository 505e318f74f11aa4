"""Members of an enumeration that reports name by a key and explain by a sentence."""

from __future__ import annotations

from enum import Enum


class Explained(Enum):
    """Written as `MEMBER = (key, sentence)`: a short and stable name, and what it means."""

    def __init__(self, key: str, sentence: str) -> None:
        self.key = key
        self.sentence = sentence
