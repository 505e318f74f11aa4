"""Long text on a terminal goes through the user's pager."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from typing import Final

from gpolicy.cli.terminal import complain
from gpolicy.printable import height, printable_text, terminal_text

_USUAL: Final = ("less", "-FRX")
_OFF: Final[tuple[list[str], ...]] = (["cat"], [])

_switched_off = False


def switch_pager(*, off: bool) -> None:
    """Say whether this command line asks for no pager (`--no-pager`)."""
    global _switched_off  # noqa: PLW0603 (one command line, one terminal)
    _switched_off = off


def write_long(text: str) -> None:
    """Write text to standard output; through a pager if that is a terminal with fewer lines."""
    if not _switched_off and sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
        size = shutil.get_terminal_size()
        if height(text, size.columns) >= size.lines and _paged(text):
            return
    sys.stdout.write(text)


def _paged(text: str) -> bool:
    """Show text in the pager; return False if there is none."""
    from gpolicy.cluster.process import show_in_pager  # noqa: PLC0415 (only long text needs it)
    from gpolicy.errors import UnreachableError  # noqa: PLC0415

    try:
        command = _command(os.environ)
        if command is None:
            return False
        sys.stdout.flush()
        data = terminal_text(printable_text(text)).encode(sys.stdout.encoding or "utf-8", "backslashreplace")
        show_in_pager(command, data, os.environ)
    except (UnreachableError, ValueError) as error:
        if _named(os.environ) is not None:
            complain(f"the pager: {error}", "set GPOLICY_PAGER to a program, or to nothing for none")
        return False
    return True


def _named(environ: Mapping[str, str]) -> str | None:
    return environ.get("GPOLICY_PAGER", environ.get("PAGER"))


def _command(environ: Mapping[str, str]) -> list[str] | None:
    """Return the pager as a program with arguments; None for none. Raise ValueError for an open quote."""
    import shlex  # noqa: PLC0415 (only long text needs it)

    named = _named(environ)
    words = list(_USUAL) if named is None else shlex.split(named)
    return None if words in _OFF else words
