"""The headers of a compiled library: its hardening, and the external functions that it calls (64-bit ELF)."""

from __future__ import annotations

import struct

_LOAD, _DYNAMIC, _STACK, _RELRO = 1, 2, 0x6474E551, 0x6474E552
_DYNAMIC_SYMBOLS, _FLAGS, _FLAGS_1 = 11, 30, 0x6FFFFFFB
_BIND_NOW, _NOW, _EXECUTABLE = 8, 1, 1


def protections(library: bytes) -> set[str]:
    """Return those that are present of: RELRO, BIND_NOW, NX, and no segment both writable and executable (W^X)."""
    segments = _segments(library)
    dynamic = _dynamic(library)
    found = {"RELRO"} if any(kind == _RELRO for kind, *_ in segments) else set()
    if dynamic.get(_FLAGS, 0) & _BIND_NOW or dynamic.get(_FLAGS_1, 0) & _NOW:
        found.add("BIND_NOW")
    if any(kind == _STACK and not flags & _EXECUTABLE for kind, flags, *_ in segments):
        found.add("NX")
    if all(flags & 3 != 3 for kind, flags, *_ in segments if kind == _LOAD):
        found.add("W^X")
    return found


def called(library: bytes) -> set[str]:
    """Return the names of the functions that the library takes from others."""
    start, size, count = (*struct.unpack_from("<Q", library, 40), *struct.unpack_from("<HH", library, 58))
    sections = [struct.unpack_from("<IIQQQQII", library, start + size * number) for number in range(count)]
    names = set[str]()
    for _, kind, _, _, place, length, link, _ in sections:
        for at in range(place, place + length, 24) if kind == _DYNAMIC_SYMBOLS else ():
            name, _, _, section = struct.unpack_from("<IBBH", library, at)
            if section == 0 and name:
                first = sections[link][4] + name
                names.add(library[first : library.index(b"\0", first)].decode())
    return names


def _segments(library: bytes) -> list[tuple[int, int, int, int]]:
    """Return kind, flags, place in the file and size of each segment."""
    assert library[:6] == b"\x7fELF\x02\x01", "no 64-bit ELF file, little end first"
    start, size, count = (*struct.unpack_from("<Q", library, 32), *struct.unpack_from("<HH", library, 54))
    rows = (struct.unpack_from("<IIQQQQQQ", library, start + size * number) for number in range(count))
    return [(kind, flags, place, length) for kind, flags, place, _, _, length, *_ in rows]


def _dynamic(library: bytes) -> dict[int, int]:
    (place, length) = next((place, length) for kind, _, place, length in _segments(library) if kind == _DYNAMIC)
    return dict(struct.iter_unpack("<qQ", library[place : place + length]))
