"""The streams for all output to users: they make it printable, wherever it comes from."""

from __future__ import annotations

import os

from gpolicy.printable import no_command, printable, printable_text, terminal_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, TextIO


class Console:
    """A stream on top of another. A line feed ends a line; all other control characters are shown as escapes.

    In a job of GitHub's, no line becomes a command to its runner.
    """

    def __init__(self, below: TextIO) -> None:
        self.below = below
        self._defused = os.environ.get("GITHUB_ACTIONS") == "true"
        self._within_line = False

    def write(self, text: str) -> int:
        """Write `text`, made printable."""
        shown = printable_text(text)
        if self._defused and shown:
            first, *others = shown.split("\n")
            first = first.replace("##[", "## [") if self._within_line else no_command(first)
            shown = "\n".join([first, *map(no_command, others)])
            self._within_line = not shown.endswith("\n")
        self.below.write(terminal_text(shown))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each of the lines, which end themselves."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        """Pass everything else on to the stream below."""
        return getattr(self.below, name)


def console(stream: TextIO) -> TextIO:
    """Return a stream that writes printable text to `stream`; itself if it does so already."""
    if not isinstance(stream, Console):
        above: Any = Console(stream)
        stream = above
    return stream


def write_commands(stream: TextIO, text: str) -> None:
    """Write lines to a console as commands for GitHub's runner."""
    below = stream.below if isinstance(stream, Console) else stream
    below.write(printable_text(text))


def write_diff(stream: TextIO, lines: Iterable[str]) -> None:
    """Write a diff as `patch` takes it: tabs stay, and carriage returns at the ends of lines.

    A line with other control characters or with letters that nobody sees shows them as escapes, and is not patched.
    """
    below = stream.below if isinstance(stream, Console) else stream
    defused = os.environ.get("GITHUB_ACTIONS") == "true"
    written = []
    for line in "".join(lines).split("\n"):
        body = line.removesuffix("\r")
        shown = "\t".join(map(printable, body.split("\t")))
        written.append((no_command(shown) if defused else shown) + line[len(body) :])
    below.write("\n".join(written))
