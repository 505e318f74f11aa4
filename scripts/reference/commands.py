"""The verbs with their options, read from the command line's own tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from typer.main import get_command

from gpolicy.cli.app import VERBS, app, explained
from gpolicy.ganeti.htools_reading import Option as HtoolsOption
from gpolicy.htools.program_options import PROGRAMS, options_of
from gpolicy.reference.blocks import Heading, PageBlock, PageListing, PageTable
from gpolicy.reference.explaining import EXIT_CODES, VARIABLES
from scripts.reference.markdown import Link, anchor


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """An argument or an option: how it is written, and what it means."""

    name: str
    default: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """A verb of the command line."""

    name: str
    usage: str
    paragraphs: tuple[str, ...]
    arguments: tuple[Word, ...]
    options: tuple[Word, ...]

    @property
    def summary(self) -> str:
        """Its first sentence."""
        return self.paragraphs[0].partition(". ")[0].removesuffix(".")

    @property
    def command(self) -> str:
        """How it is called."""
        return f"gpolicy {self.name}"


def verbs() -> list[Verb]:
    """Return all verbs, in the order of `gpolicy --help`."""
    root = get_command(app)
    context: Any = root.make_context("gpolicy", [], resilient_parsing=True)
    tree: Any = root
    return [_verb(name, tree.get_command(context, name), context) for name in VERBS]


def global_options() -> list[Word]:
    """Return the options of gpolicy itself."""
    root: Any = get_command(app)
    context = root.make_context("gpolicy", [], resilient_parsing=True)
    return [_option(parameter) for parameter in root.get_params(context)]


def introduction() -> tuple[str, ...]:
    """Return what `gpolicy --help` says first, by paragraph."""
    return _paragraphs(str(app.info.help))


def _verb(name: str, command: Any, context: Any) -> Verb:
    parameters = explained(command).get_params(context)
    pieces = [str(piece).strip("{}") for piece in command.collect_usage_pieces(context)]
    return Verb(
        name=name,
        usage=f"gpolicy {name} {' '.join(pieces)}",
        paragraphs=_paragraphs(command.help),
        arguments=tuple(_argument(item) for item in parameters if item.param_type_name == "argument"),
        options=tuple(map(_option, filter(_is_shown, parameters))),
    )


def _is_shown(parameter: Any) -> bool:
    return parameter.param_type_name == "option" and parameter.name != "help" and not parameter.hidden


def _paragraphs(text: str) -> tuple[str, ...]:
    return tuple(" ".join(part.split()) for part in text.strip().split("\n\n"))


def _argument(parameter: Any) -> Word:
    name = parameter.metavar or parameter.name.upper()
    return Word(name=f"`{name}`", default="" if parameter.required else _default(parameter), text=parameter.help)


def _option(parameter: Any) -> Word:
    words = [f"`{word}`" for word in (*sorted(parameter.opts, key=len, reverse=True), *parameter.secondary_opts)]
    value = "" if parameter.is_flag else f" `{parameter.metavar or 'VALUE'}`"
    more = " Required." if parameter.required else ""
    more += " Can be repeated." if parameter.multiple and "an be repeated" not in parameter.help else ""
    return Word(name=", ".join(words) + value, default=_default(parameter), text=parameter.help + more)


def _default(parameter: Any) -> str:
    default = parameter.default
    if callable(default) or default is None or isinstance(default, bool) or str(default) in ("", "Sentinel.UNSET"):
        return ""
    return f"`{default}`"


def verb_blocks(verb: Verb, level: int) -> Iterator[PageBlock]:
    """Yield what there is to say about a verb, under headings of this level if it is the man page's 2."""
    if level == 2:
        yield Heading("Synopsis")
    yield PageListing(verb.usage)
    if level == 2:
        yield Heading("Description")
    yield from verb.paragraphs
    for title, words in (("Arguments", verb.arguments), ("Options", verb.options)):
        if words and level == 2:
            yield Heading(title)
        if words:
            yield _words_table("argument" if title == "Arguments" else "option", words)
    if verb.name == "htools":
        for program in PROGRAMS:
            yield Heading(f"{'Options of ' if level == 2 else 'gpolicy htools '}{program}", level)
            yield PageTable(("option", "meaning"), tuple(map(_htools_row, options_of(program))))


def _words_table(what: str, words: Iterable[Word]) -> PageTable:
    return PageTable((what, "default", "meaning"), tuple((word.name, word.default, word.text) for word in words))


def _htools_row(option: HtoolsOption) -> tuple[str, str]:
    words = [f"`{word}`" for word in (option.short_text, option.long_text) if word]
    return ", ".join(words), f"{option.help[0].upper()}{option.help[1:].rstrip('.')}."


def exit_codes() -> PageTable:
    """Return what each exit code means."""
    return PageTable(("code", "meaning"), tuple((f"`{code}`", text) for code, text in EXIT_CODES.items()))


def environment() -> PageTable:
    """Return what each environment variable means."""
    return PageTable(("variable", "meaning"), tuple((f"`{name}`", text) for name, text in VARIABLES.items()))


def commands_page() -> Iterator[PageBlock]:
    """Yield docs/reference/commands.md."""
    known = verbs()
    yield Heading("Commands", 1)
    yield (
        "For everybody who types or scripts gpolicy: every verb with its options, the exit codes, and the"
        " environment variables."
    )
    yield from introduction()
    yield PageTable(
        ("verb", "what it does"),
        tuple((Link(verb.command, f"#{anchor(verb.command)}"), f"{verb.summary}.") for verb in known),
    )
    yield "Options of gpolicy itself; `--help` is an option of every verb, too:"
    yield _words_table("option", global_options())
    for verb in known:
        yield Heading(verb.command, 2)
        yield from verb_blocks(verb, 3)
    yield Heading("Exit codes", 2)
    yield exit_codes()
    yield "`gpolicy htools` ends with the exit codes of hspace, hail, hbal and hroller."
    yield Heading("Environment variables", 2)
    yield environment()
