"""An option parser that reads a command line as the Haskell original does.

Long options may be abbreviated if they stay unique, optional arguments must be attached, options and arguments may be
mixed, and all usage errors are reported together (GHC, System.Console.GetOpt).
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Takes(Enum):
    """Whether an option has an argument."""

    NOTHING = 0
    OPTIONAL = 1
    REQUIRED = 2


class Option(NamedTuple):
    """One option. `short` is a letter or empty; `completion` is its text in `--help-completion`."""

    long: str
    help: str
    short: str = ""
    takes: Takes = Takes.NOTHING
    argument: str = ""
    completion: str = "none"

    @property
    def short_text(self) -> str:
        """The short form in the usage."""
        if not self.short:
            return ""
        form = {Takes.NOTHING: "", Takes.OPTIONAL: f"[{self.argument}]", Takes.REQUIRED: f" {self.argument}"}
        return f"-{self.short}{form[self.takes]}"

    @property
    def long_text(self) -> str:
        """The long form in the usage."""
        form = {Takes.NOTHING: "", Takes.OPTIONAL: f"[={self.argument}]", Takes.REQUIRED: f"={self.argument}"}
        return f"--{self.long}{form[self.takes]}"


class Parsed(NamedTuple):
    """The given options in order, each with its argument; positional arguments; usage errors."""

    options: tuple[tuple[str, str | None], ...]
    arguments: tuple[str, ...]
    errors: tuple[str, ...]


def usage(options: Sequence[Option]) -> str:
    """Return the table of options."""
    short = max(len(option.short_text) for option in options)
    long = max(len(option.long_text) for option in options)
    return "".join(f"  {option.short_text:{short}}  {option.long_text:{long}}  {option.help}\n" for option in options)


def parse(options: Sequence[Option], argv: Sequence[str]) -> Parsed:
    """Read `argv` (without the program's name)."""
    given: list[tuple[str, str | None]] = []
    arguments: list[str] = []
    unknown: list[str] = []
    errors: list[str] = []
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        if word == "--":
            arguments += rest
            break
        if word.startswith("--"):
            _long(options, word[2:], rest, given, unknown, errors)
        elif word.startswith("-") and word != "-":
            _short(options, word[1:], rest, given, unknown, errors)
        else:
            arguments.append(word)
    errors += [f"unrecognized option `{word}'\n" for word in unknown]
    return Parsed(tuple(given), tuple(arguments), tuple(errors))


def _long(
    options: Sequence[Option],
    word: str,
    rest: list[str],
    given: list[tuple[str, str | None]],
    unknown: list[str],
    errors: list[str],
) -> None:
    name, equals, value = word.partition("=")
    exact = [option for option in options if option.long == name]
    matching = exact or [option for option in options if option.long.startswith(name)]
    if not matching:
        unknown.append(f"--{word}")
        return
    if len(matching) > 1:
        head = f"option `--{name}' is ambiguous; could be one of:\n"
        errors.append(head + usage(matching))
        return
    option = matching[0]
    if option.takes is Takes.NOTHING and equals:
        errors.append(f"option `--{name}' doesn't allow an argument\n")
    elif option.takes is Takes.REQUIRED and not equals and not rest:
        errors.append(f"option `--{name}' requires an argument {option.argument}\n")
    elif option.takes is Takes.REQUIRED and not equals:
        given.append((option.long, rest.pop(0)))
    else:
        given.append((option.long, value if equals else None))


def _short(
    options: Sequence[Option],
    word: str,
    rest: list[str],
    given: list[tuple[str, str | None]],
    unknown: list[str],
    errors: list[str],
) -> None:
    while word:
        letter, word = word[0], word[1:]
        option = next((option for option in options if option.short == letter), None)
        if option is None:
            unknown.append(f"-{letter}")
        elif option.takes is Takes.NOTHING:
            given.append((option.long, None))
        elif option.takes is Takes.OPTIONAL:
            given.append((option.long, word or None))
            return
        elif word:
            given.append((option.long, word))
            return
        elif rest:
            given.append((option.long, rest.pop(0)))
            return
        else:
            errors.append(f"option `-{letter}' requires an argument {option.argument}\n")
