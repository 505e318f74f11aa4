"""Output for a terminal: colour, errors, progress, and the user's pager for long text."""

import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TextIO

from gpolicy.data import read_data
from gpolicy.errors import GpolicyError, UnreachableError
from gpolicy.findings import LONGEST_MESSAGE
from gpolicy.printable import Painter, Tone, clipped, control, height, printable, printable_text, terminal_text, wrapped

_NAME: Final = "gpolicy:"
_PATIENCE_SECONDS = 1.0
_ERASE: Final = control("[G") + control("[K")  # the line that the cursor is in


def wants_colour(stream: TextIO) -> bool:
    """Return whether `stream` is a terminal that may be coloured (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def complain(message: str, hint: str | None) -> None:
    """Write one line about the error to standard error, and one with the hint; longer ones are broken on a terminal."""
    paint = Painter(wants_colour(sys.stderr))
    room = _room(f"{_NAME} ") if sys.stderr.isatty() else 0
    said = "\n  ".join(wrapped(clipped(printable(message), LONGEST_MESSAGE), room))
    sys.stderr.write(f"{paint(Tone.ALARM, _NAME)} {said}\n")
    for line in wrapped(printable(hint), room) if hint else ():
        sys.stderr.write(f"{paint(Tone.QUIET, f'  {line}')}\n")


def in_options(error: GpolicyError) -> tuple[str, str | None]:
    """Return message and hint of an error with the option that sets each argument in place of the argument's name."""
    others = read_data("reference.toml")["argument_options"]
    return error.in_words(lambda name: others.get(name) or f"--{name.replace('_', '-')}")


@contextmanager
def working(what: str) -> Iterator[Callable[[str], None]]:
    """Show progress on a terminal once something takes longer than a second.

    The yielded function takes the present activity, which is shown after `what`.
    """
    doing = [""]

    def tell(now: str) -> None:
        doing[0] = f": {printable(now)}"

    if not sys.stderr.isatty():
        yield tell
        return
    done = threading.Event()
    watcher = threading.Thread(target=_turn, args=(printable(what), doing, done), daemon=True)
    watcher.start()
    try:
        yield tell
    finally:
        done.set()
        watcher.join()


def _turn(what: str, doing: list[str], done: threading.Event) -> None:
    if done.wait(_PATIENCE_SECONDS):
        return
    seconds = 1
    while not done.wait(0.0 if seconds == 1 else 1.0):
        room = _room(f" … {seconds} s ")
        sys.stderr.write(f"{_ERASE}{(what + doing[0])[:room]} … {seconds} s ")
        sys.stderr.flush()
        seconds += 1
    sys.stderr.write(_ERASE)
    sys.stderr.flush()


def _room(rest: str) -> int:
    return max(shutil.get_terminal_size().columns - len(rest), 10)


class StatusLine:
    """Lines of progress on standard error; on a terminal also one that changes, below them."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._shown = ""

    def say(self, text: str) -> None:
        """Write a line that stays."""
        self.show("")
        sys.stderr.write(f"{printable(text)}\n")
        sys.stderr.flush()

    def show(self, text: str) -> None:
        """Replace the line that changes, on a terminal only; an empty text erases it."""
        shown = printable(text)[: _room(" ")]
        if not self._is_terminal or shown == self._shown:
            return
        self._shown = shown
        sys.stderr.write(f"{_ERASE}{shown}")
        sys.stderr.flush()


_USUAL: Final = ["less", "-FRX"]
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
    import shlex  # noqa: PLC0415 (only long text needs it)

    from gpolicy.cluster.process import show_in_pager  # noqa: PLC0415

    named = os.environ.get("GPOLICY_PAGER", os.environ.get("PAGER"))
    try:
        command = _USUAL if named is None else shlex.split(named)  # ValueError for an open quote
        if command in _OFF:
            return False
        sys.stdout.flush()
        data = terminal_text(printable_text(text)).encode(sys.stdout.encoding or "utf-8", "backslashreplace")
        show_in_pager(command, data, os.environ)
    except (UnreachableError, ValueError) as error:
        if named is not None:
            complain(f"the pager: {error}", "set GPOLICY_PAGER to a program, or to nothing for none")
        return False
    return True
