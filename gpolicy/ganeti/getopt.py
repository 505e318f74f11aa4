"""An option parser that reads a command line as the Haskell original does.

Long options may be abbreviated if they stay unique, optional arguments must be attached, options and arguments may be
mixed, and all usage errors are reported together (GHC, System.Console.GetOpt).
"""

from __future__ import annotations

from enum import Enum

from gpolicy.light_dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Takes(Enum):
    """Whether an option has an argument."""

    NOTHING = 0
    OPTIONAL = 1
    REQUIRED = 2


@dataclass(frozen=True, slots=True)
class Option:
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


@dataclass(frozen=True, slots=True)
class Parsed:
    """The given options in order, each with its argument; positional arguments; usage errors."""

    options: tuple[tuple[str, str | None], ...]
    arguments: tuple[str, ...]
    errors: tuple[str, ...]


def usage(options: Sequence[Option]) -> str:
    """Return the table of options."""
    short = max(len(option.short_text) for option in options)
    long = max(len(option.long_text) for option in options)
    return "".join(f"  {option.short_text:{short}}  {option.long_text:{long}}  {option.help}\n" for option in options)


@dataclass(frozen=True, slots=True)
class _Reading:
    """The words that are still to be read, and what the others gave."""

    options: Sequence[Option]
    rest: list[str]
    given: list[tuple[str, str | None]]
    unknown: list[str]
    errors: list[str]

    def long(self, word: str) -> None:
        """Read a word that began with two dashes."""
        name, equals, value = word.partition("=")
        exact = [option for option in self.options if option.long == name]
        matching = exact or [option for option in self.options if option.long.startswith(name)]
        if not matching:
            self.unknown.append(f"--{word}")
            return
        if len(matching) > 1:
            head = f"option `--{name}' is ambiguous; could be one of:\n"
            self.errors.append(head + usage(matching))
            return
        option = matching[0]
        if option.takes is Takes.NOTHING and equals:
            self.errors.append(f"option `--{name}' doesn't allow an argument\n")
        elif option.takes is Takes.REQUIRED and not equals and not self.rest:
            self.errors.append(f"option `--{name}' requires an argument {option.argument}\n")
        elif option.takes is Takes.REQUIRED and not equals:
            self.given.append((option.long, self.rest.pop(0)))
        else:
            self.given.append((option.long, value if equals else None))

    def short(self, word: str) -> None:
        """Read a word of short options."""
        while word:
            letter, word = word[0], word[1:]
            option = next((option for option in self.options if option.short == letter), None)
            if option is None:
                self.unknown.append(f"-{letter}")
            elif option.takes is Takes.NOTHING:
                self.given.append((option.long, None))
            elif option.takes is Takes.OPTIONAL:
                self.given.append((option.long, word or None))
                return
            elif word:
                self.given.append((option.long, word))
                return
            elif self.rest:
                self.given.append((option.long, self.rest.pop(0)))
                return
            else:
                self.errors.append(f"option `-{letter}' requires an argument {option.argument}\n")


def parse(options: Sequence[Option], argv: Sequence[str]) -> Parsed:
    """Read `argv` (without the program's name)."""
    reading, arguments = _Reading(options, list(argv), [], [], []), list[str]()
    while reading.rest:
        word = reading.rest.pop(0)
        if word == "--":
            arguments += reading.rest
            break
        if word.startswith("--"):
            reading.long(word[2:])
        elif word.startswith("-") and word != "-":
            reading.short(word[1:])
        else:
            arguments.append(word)
    errors = (*reading.errors, *(f"unrecognized option `{word}'\n" for word in reading.unknown))
    return Parsed(tuple(reading.given), tuple(arguments), errors)
