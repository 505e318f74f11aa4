"""Strings and lists in the form of the Haskell original's `show`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

_CONTROL_NAMES = (  # of the characters below 32
    *("NUL", "SOH", "STX", "ETX", "EOT", "ENQ", "ACK", "a", "b", "t", "n", "v", "f", "r", "SO", "SI", "DLE", "DC1"),
    *("DC2", "DC3", "DC4", "NAK", "SYN", "ETB", "CAN", "EM", "SUB", "ESC", "FS", "GS", "RS", "US"),
)


def shown_string(text: str) -> str:
    """Return `text` in quotes, escaped as a Haskell string literal."""
    parts = []
    after_number = after_so = False
    for character in text:
        code = ord(character)
        escape = None
        if character in '"\\':
            escape = f"\\{character}"
        elif code < 32:
            escape = f"\\{_CONTROL_NAMES[code]}"
        elif code == 127:
            escape = "\\DEL"
        elif code > 126:
            escape = f"\\{code}"
        if escape is None and ((after_number and character.isdigit()) or (after_so and character == "H")):
            parts.append("\\&")
        parts.append(escape if escape is not None else character)
        after_number, after_so = escape is not None and code > 127, code == 14
    return f'"{"".join(parts)}"'


def shown_strings(items: Iterable[str]) -> str:
    """Return a list of strings as Haskell shows it."""
    return f"[{','.join(shown_string(item) for item in items)}]"


def shown_argument(value: int) -> str:
    """Return a number as Haskell shows it as an argument."""
    return f"({value})" if value < 0 else str(value)


def shown_ints(items: Iterable[int]) -> str:
    """Return a list of integers as Haskell shows it."""
    return f"[{','.join(str(item) for item in items)}]"


def shown_peers(peers: Mapping[int, int]) -> str:
    """Return the memory that a node reserves for each other node, most first, of equals the last one (PeerMap)."""
    ordered = sorted(reversed(list(peers.items())), key=lambda pair: -pair[1])  # noqa: C414 - equals are turned
    return f"[{','.join(f'({peer},{memory})' for peer, memory in ordered)}]"
