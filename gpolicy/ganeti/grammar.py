"""The text grammars of Ganeti's command-line options, and of the shell.

Each function writes one grammar, so that Ganeti's own parser reads back what was given; what a grammar cannot
carry is a ValueError that says why. Ganeti names them keyval, identkeyval, multilistidentkeyval and list;
three options split on every comma and know no escape.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

_RESERVED_PREFIXES: Final = ("no_", "-")  # in front of an ident they mean "remove it", not a name
_COMMAND_NAME: Final = re.compile(r"\A[a-z]+(-[a-z]+)+")


def escape(text: str) -> str:
    r"""Return `text` with `\` and `,` behind a backslash: an item of a list that Ganeti unescapes."""
    return text.replace("\\", "\\\\").replace(",", "\\,")


def escaped_list(items: Iterable[str]) -> str:
    """Return a comma list whose items may hold any character (`--reserved-lvs`, `--ipolicy-disk-templates`).

    No item at all is the empty text, hence an empty item cannot be written.
    """
    items = list(items)
    if "" in items:
        raise ValueError("a list cannot hold an empty item")
    return ",".join(map(escape, items))


def plain_list(items: Iterable[str]) -> str:
    """Return a comma list that is split without escapes (`--enabled-disk-templates`, `--compression-tools`)."""
    items = list(items)
    for item in items:
        if not item or "," in item:
            raise ValueError(f"{item!r} cannot be an item of a list that is split at every comma")
    return ",".join(items)


def key_values(values: Mapping[str, str | None]) -> str:
    """Return `key=value,…`, for None `-key`. A value may hold any character; a key may not be empty or hold `=`.

    A key that starts with `no_` or `-` is an ordinary one here: those prefixes mean something only at the start of an
    item without `=`, and each of ours begins with a `-` that Ganeti takes away.
    """
    for key in values:
        if not key or "=" in key:
            raise ValueError(f"{key!r} cannot be a key: the first '=' ends it")
    return ",".join(escape(f"-{key}" if value is None else f"{key}={value}") for key, value in values.items())


def ident_key_values(ident: str, values: Mapping[str, str]) -> str:
    """Return `ident:key=value,…`: the parameters of one template, hypervisor or volume group."""
    if not ident or ":" in ident or ident.startswith(_RESERVED_PREFIXES):
        raise ValueError(f"{ident!r} cannot be written in front of ':'")
    return f"{ident}:{key_values(values)}"


def state_ident(storage: str, name: str) -> str:
    """Return the ident of `--disk-state`: the storage type, a slash, and the name of the volume group."""
    if not name or "/" in name or ":" in name:
        raise ValueError(f"{name!r} cannot be written between '/' and ':'")
    return f"{storage}/{name}"


def bounds(pairs: Sequence[Mapping[str, Mapping[str, int]]]) -> str:
    """Return `min:…/max:…//min:…/max:…`, the whole list of spec pairs (`--ipolicy-bounds-specs`)."""
    if not pairs:
        raise ValueError("an empty list of bounds cannot be written")
    return "//".join(
        "/".join(
            ident_key_values(bound, {name: str(value) for name, value in pair[bound].items()})
            for bound in ("min", "max")
        )
        for pair in pairs
    )


def uid_ranges(ranges: Iterable[tuple[int, int]]) -> str:
    """Return `low-high,single,…` (`--uid-pool`); both ends count."""
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)


def seconds(microseconds: int) -> str:
    """Return the text that Ganeti 2.x turns into exactly this many µs: it multiplies by 1e6 and cuts off."""
    value = microseconds / 1e6
    if int(1e6 * value) == microseconds:
        return repr(value)
    return repr((microseconds + 0.5) / 1e6)  # half a microsecond above, which the cut takes away again


def shell_line(argv: Sequence[str]) -> str:
    """Return one POSIX shell command that runs `argv`, whatever characters it holds (newlines stay in quotes).

    Raise ValueError for an empty `argv` and for NUL, which no argument of a process can hold.
    """
    if not argv:
        raise ValueError("no command to write")
    if any("\0" in word for word in argv):
        raise ValueError("an argument cannot hold a NUL character")
    first = argv[0]
    # A bare first word might be an assignment, a keyword, a function or an alias of the shell.
    command = first if _COMMAND_NAME.fullmatch(first) else "'" + first.replace("'", "'\\''") + "'"
    return " ".join((command, *map(shlex.quote, argv[1:])))
