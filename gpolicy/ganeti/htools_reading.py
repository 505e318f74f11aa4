"""How htools reads numbers, sizes, lists, names and options, with its error messages; hail's options.

Long options may be abbreviated if they stay unique, optional arguments must be attached, options and arguments may be
mixed, and all usage errors are reported together (GHC, System.Console.GetOpt).

Ganeti stores the cluster's parameters for its allocator as `default_iallocator_params` and passes all of them to
whichever allocator it runs, also to one that a command names: `--NAME=VALUE` for a text, `--NAME` for null (Ganeti 3.0,
server/noded.py; run on 3.0.2).
"""

from __future__ import annotations

import re
from enum import Enum

from gpolicy.errors import InputError
from gpolicy.light_dataclasses import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeVar

    _Member = TypeVar("_Member", bound=Enum)

_INT64 = 2**64
_CHUNK = 4000  # digits that are converted at once: the time grows with the square of their number
_BLANKS = r"[\t-\r \xa0\u1680\u2000-\u200a\u202f\u205f\u3000]*+"  # Haskell's blanks; Python's `\s` has more
_NUMBER = re.compile(
    rf"{_BLANKS}(?P<sign>-{_BLANKS})?"
    r"(?P<number>0[xX][0-9a-fA-F]++|0[oO][0-7]++|[0-9]++(?P<fraction>\.[0-9]++)?(?P<exponent>[eE][-+]?[0-9]++)?)"
)
_NOT_FINITE = re.compile(rf"{_BLANKS}(?P<sign>-{_BLANKS})?(?P<number>NaN|Infinity)")


def split(separator: str, text: str) -> list[str]:
    """Split like `str.split`, but an empty text has no parts."""
    return text.split(separator) if text else []


def wrapped(value: int) -> int:
    """Return `value` as a 64-bit signed integer would hold it."""
    return (value + _INT64 // 2) % _INT64 - _INT64 // 2


def parse_int(who: str, text: str) -> int:
    """Return the only number in `text`, wrapped to 64 bits (htools, Utils: `read`). InputError names `who`."""
    if _is_plain(text):
        return int(text)
    match = _NUMBER.match(text)
    if match is None or match["fraction"] is not None or match["exponent"] is not None:
        raise InputError(f"{who}: cannot parse string '{text}'")
    _check_rest(who, text, match.end())
    return _integer(match)


def parse_float(who: str, text: str) -> float:
    """Return the only number in `text` as a double; NaN and Infinity are numbers."""
    if _is_plain(text):
        return float(text)
    match = _NUMBER.match(text) or _NOT_FINITE.match(text)
    if match is None:
        raise InputError(f"{who}: cannot parse string '{text}'")
    _check_rest(who, text, match.end())
    number = match["number"]
    try:
        value = float(int(number, 0) if number[:2].lower() in {"0x", "0o"} else number)
    except OverflowError:
        value = float("inf")
    return -value if match["sign"] else value


def _is_plain(text: str) -> bool:
    """Return whether this is the common case: some digits and nothing else."""
    return len(text) < 19 and text.isdecimal() and text.isascii()


def parse_size(who: str, text: str) -> int:
    """Return a size in MiB, rounded toward zero; the number wraps before it is scaled (htools, Utils: `parseUnit`)."""
    from gpolicy.ganeti.htools_formats import MIB, bytes_of  # noqa: PLC0415 - only what is needed

    match = _NUMBER.match(text)
    if match is None or match["fraction"] is not None or match["exponent"] is not None:
        raise InputError(f"{who}: Can't parse string '{text}'")
    unit = text[match.end() :].lstrip()
    size = bytes_of(unit)
    if size is None:
        raise InputError(f"{who}: Unknown unit '{unit}'")
    number = _integer(match)
    scaled = abs(number) * size // MIB
    return wrapped(-scaled if number < 0 else scaled)


def _integer(match: re.Match[str]) -> int:
    """Return the number that was matched as a 64-bit integer, however long it is."""
    number = match["number"]
    if number[:2].lower() in {"0x", "0o"}:
        value = int(number, 0)
    else:
        value = 0
        for place in range(0, len(number), _CHUNK):
            chunk = number[place : place + _CHUNK]
            value = (value * pow(10, len(chunk), _INT64) + int(chunk)) % _INT64
    return wrapped(-value if match["sign"] else value)


def _check_rest(who: str, text: str, end: int) -> None:
    if end < len(text):
        raise InputError(f"{who}: leftover characters when parsing '{text}': '{text[end:]}'")


def parse_choice(value: str | None) -> bool:
    """Return what `yes`, `no` or, without a value, the option alone says."""
    if value is None or value == "yes":
        return True
    if value == "no":
        return False
    raise InputError(f"Invalid choice '{value}', pass one of 'yes' or 'no'")


def named(kind: type[_Member], text: str, name: str = "") -> _Member:
    """Return the member of `kind`, which htools calls `name`, with the value `text`."""
    try:
        return kind(text)
    except ValueError:
        raise InputError(f'Invalid string value for type {name or kind.__name__}: "{text}"') from None


class Takes(Enum):
    """Whether an option has an argument."""

    NOTHING = 0
    OPTIONAL = 1
    REQUIRED = 2


@dataclass(frozen=True, slots=True)
class Option:
    """One option. `short` is a letter or empty; `completion` is its text in `--help-completion`."""

    long: str
    short: str = ""
    takes: Takes = Takes.NOTHING
    argument: str = ""
    completion: str = "none"
    help: str = ""

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


ALLOCATOR_PARAMETERS = ("default_iallocator_params",)
"""The path of the parameters among the values of the cluster."""

HAIL_OPTIONS = (
    Option("print-nodes", "p", Takes.OPTIONAL, "FIELDS"),
    Option("save", "S", Takes.REQUIRED, "FILE"),
    Option("text-data", "t", Takes.REQUIRED, "FILE", "file"),
    Option("simulate", "", Takes.REQUIRED, "SPEC", "string"),
    Option("verbose", "v"),
    *map(Option, ("ignore-dynu", "ignore-soft-errors", "no-capacity-checks")),
    Option("restrict-allocation-to", "", Takes.REQUIRED, "NODE,...", "manynodes"),
    Option("mond", "", Takes.OPTIONAL, "CHOICE", "choices=yes,no"),
    Option("mond-xen"),
    Option("static-kvm-node-memory", "", Takes.REQUIRED, "N", "integer"),
    *(Option("version", "V"), Option("help", "h"), Option("help-completion")),
)


@dataclass(frozen=True, slots=True)
class HailParameters:
    """What the parameters make of hail.

    `capacity_checks`: global N+1 after each placement. `ignore_soft_errors`: soft limits of primaries are ignored.
    `restriction`: the full names of the only nodes that new instances may use, before those that a request names.
    `static_kvm_node_memory` (MiB) takes the place of the node memory that KVM reports; 0 or less: what it reports.
    `monitored`: hail weighs the CPU load that monitoring daemons report, too. `failure`: why Ganeti gets no answer from
    hail to any request; empty if it gets one.
    """

    capacity_checks: bool = True
    ignore_soft_errors: bool = False
    restriction: frozenset[str] | None = None
    static_kvm_node_memory: int = 4096
    monitored: bool = False
    failure: str = ""


def hail_parameters(stored: object) -> HailParameters:
    """Return what the parameters make of hail, as Ganeti stores them (no mapping: none are known)."""
    given: Mapping[str, object] = stored if isinstance(stored, dict) else {}
    for name, value in given.items():
        if value is not None and not isinstance(value, str):
            return HailParameters(failure=f"Ganeti cannot pass `{name}`, whose value is neither a text nor null")
    words = [f"--{name}" if value is None else f"--{name}={value}" for name, value in given.items()]
    parsed = parse(HAIL_OPTIONS, words)
    if parsed.errors:
        return HailParameters(failure=parsed.errors[0].splitlines()[0])
    if parsed.arguments:  # behind the name "", which becomes `--`
        return HailParameters(failure="Only one argument is accepted (the input file)")
    found = HailParameters()
    for name, text in parsed.options:
        try:
            found = _with_option(found, name, text)
        except InputError as error:
            return HailParameters(failure=str(error))
    ignored = any(name == "ignore-dynu" for name, _ in parsed.options)
    return replace(found, monitored=False) if ignored else found


def _with_option(found: HailParameters, name: str, text: str | None) -> HailParameters:
    """Return the parameters with one more. Raise InputError for one without which hail would answer."""
    match name:
        case "no-capacity-checks":
            return replace(found, capacity_checks=False)
        case "ignore-soft-errors":
            return replace(found, ignore_soft_errors=True)
        case "restrict-allocation-to":
            return replace(found, restriction=frozenset(split(",", text or "")))
        case "static-kvm-node-memory":
            return replace(found, static_kvm_node_memory=parse_int("static node memory", text or ""))
        case "mond":
            return replace(found, monitored=parse_choice(text))
        case "text-data" | "simulate":
            raise InputError(f"with --{name} it answers for another cluster than this one")
        case "version" | "help" | "help-completion":
            raise InputError(f"with --{name} it answers no request")
    return found
