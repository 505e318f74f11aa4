"""What is wrong with text that is not YAML, in the words of somebody who writes policies.

libyaml says where it stopped and what it wanted then, which is rarely the mistake itself. A table leads from its words,
and the text around the place, to the likely mistake, its own place and the correction.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpolicy.findings import Finding, Span
from gpolicy.policy.source_file import YAML_SYNTAX, SourceFile
from gpolicy.printable import count

if TYPE_CHECKING:
    from yaml import MarkedYAMLError


_LOOKED_AT: Final = 300  # characters of a line that are looked at before and after a place
_SHOWN: Final = 60  # characters of an example
_CONFLICT: Final = re.compile(r"(<{7}|>{7}|\|{7}) |={7}$")
_TIGHT_KEY: Final = re.compile(r"([ -]*)([\w.-]{1,64}):(?=[^\s:/])([^#]*)")
_ODD_SPACE: Final = re.compile(r"([ -]*)([\w.-]{1,64}):[^\S \t]")


@dataclass(frozen=True, slots=True)
class _ParserStop:
    """Where the parser stopped, what it was reading (`context`), and the place where that began."""

    source: SourceFile
    context: str
    line: int
    column: int
    begin: tuple[int, int]

    @property
    def before(self) -> str:
        return self.source.line(self.line)[: self.column - 1][-_LOOKED_AT:]

    @property
    def after(self) -> str:
        return self.source.line(self.line)[self.column - 1 :][:_LOOKED_AT]

    @property
    def begun(self) -> str:
        """The rest of the line on which the thing began, from there on."""
        line, column = self.begin
        return self.source.line(line)[column - 1 :][:_LOOKED_AT]

    def line_above(self, number: int) -> tuple[int, str]:
        """Return the number and text of the nearest line above that holds more than a comment; 0 for none."""
        above = ((line, self.source.line(line)[:_LOOKED_AT]) for line in range(number - 1, max(number - 50, 0), -1))
        return next(((line, text) for line, text in above if text.strip() and text.lstrip()[0] != "#"), (0, ""))


@dataclass(frozen=True, slots=True)
class _Mistake:
    """The likely mistake. `place` is a line and column; None: where the parser stopped."""

    message: str
    hint: str
    place: tuple[int, int] | None = None


def syntax_finding(error: MarkedYAMLError, source: SourceFile) -> Finding:
    """Return the finding for text that the parser refused."""
    mark = error.problem_mark or error.context_mark
    begin = error.context_mark or mark
    place = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    stop = _ParserStop(source, error.context or "", *place, (begin.line + 1, begin.column + 1) if begin else place)
    given = f"{error.problem or ''}; {stop.context}"
    said = next((said for fits, explain in _TABLE if fits in given and (said := explain(stop)) is not None), None)
    if said is None:
        words = " ".join(part for part in (error.problem, error.context) if part)
        said = _Mistake(f"this is not YAML: {' '.join(words.split())[:300]}", "")
    line, column = said.place or place
    lines = max(len(source.text.splitlines()), 1)
    if said.place is None and line > lines:  # the end of the file: the end of its last line
        line, column = lines, len(source.line(lines)) + 1
    return YAML_SYNTAX.finding(said.message, Span(source.name, line, column, line, column + 1), hint=said.hint)


def _in_quotes(text: str) -> str:
    text = text.strip()
    if len(text) > _SHOWN or '"' in text or "\\" in text:
        return "'…'" if "'" not in text else '"…"'
    return f'"{text}"'


def _word(text: str) -> str:
    """Return the plain text that stands at the beginning of `text`, within a list or not."""
    return re.split(r"[,\[\]{}]|\s#|:\s", text, maxsplit=1)[0].strip()


def _begins(letter: str, what: str) -> Callable[[_ParserStop], _Mistake | None]:
    """Return the explanation of a character that has a meaning of its own at the beginning of a text."""

    def explain(stop: _ParserStop) -> _Mistake | None:
        rest = stop.begun
        if not rest.startswith(letter):
            return None
        known = stop.source.line(stop.begin[0])[: stop.begin[1] - 1]
        is_whole = not known or known[-1] in " \t[{,"
        example = f": {_in_quotes(_word(rest))}" if is_whole else ", from its first character on"
        return _Mistake(f"an unquoted `{letter}` begins {what}", f"quote the text{example}", stop.begin)

    return explain


def _reserved(stop: _ParserStop) -> _Mistake | None:
    letter = stop.after[:1]
    if letter == "\t":
        return _tab(stop)
    shown = "a backtick" if letter == "`" else f"`{letter}`"
    hint = f"quote the text: {_in_quotes(stop.after if letter == ',' else _word(stop.after))}"
    hint = "quote the text, or take the bracket out" if letter in {"]", "}"} else hint
    return _Mistake(f"unquoted text cannot begin with {shown}", hint) if letter in {*"@`%,]}"} else None


def _tab(_stop: _ParserStop) -> _Mistake:
    return _Mistake("a tab: YAML indents with spaces only", "write spaces in its place")


def _directive(stop: _ParserStop) -> _Mistake:
    hint = f"quote the text, or begin a comment with `#`: # {stop.begun.strip()[:_SHOWN]}"
    return _Mistake("a line that begins with `%` is a directive to YAML", hint, stop.begin)


def _block_text(stop: _ParserStop) -> _Mistake | None:
    hint = f"quote the value: {_in_quotes(stop.begun)}; or begin the text on the next line"
    return _Mistake(f"an unquoted `{stop.begun[:1]}` begins a text on the lines below", hint, stop.begin)


def _never_closed_quote(stop: _ParserStop) -> _Mistake:
    letter = stop.begun[:1]
    hint = f"write `{letter}` at the end of the text, or leave both quotes out"
    return _Mistake(f"the quote `{letter}` that opens here is never closed", hint, stop.begin)


def _escape(stop: _ParserStop) -> _Mistake:
    pair = stop.source.line(stop.line)[stop.column - 2 : stop.column] or "\\"
    if not pair.startswith("\\"):
        pair = stop.after[:2]
    hint = f"use single quotes, or write the backslash twice: \\{pair}"
    return _Mistake(f"`{pair}` means nothing between double quotes, where `\\` begins an escape", hint)


def _behind_value(stop: _ParserStop) -> _Mistake | None:
    """Explain text after a value that is complete: closed quotes or brackets."""
    before = stop.before.rstrip()
    last = before[-1:]
    value = re.split(r":\s+|-\s+", stop.before + stop.after, maxsplit=1)[-1]
    if last in ("'", '"') and not before.endswith((": '", ': "')):
        example = '"it\'s"' if last == "'" else "'say \"x\"'"
        hint = f"put all of it in quotes; with a `{last}` inside, in quotes of the other kind: {example}"
        return _Mistake(f"the text goes on after its closing quote `{last}`", hint)
    if last in ("]", "}"):
        if stop.after[:1] in ("]", "}"):
            return _Mistake(f"`{stop.after[0]}` closes nothing", "take it out")
        return _Mistake(f"the value goes on after its closing `{last}`", f"quote the value: {_in_quotes(value)}")
    return None


def _brackets(stop: _ParserStop) -> _Mistake | None:
    opening = stop.begun[:1]
    closing = {"[": "]", "{": "}"}.get(opening)
    if closing is None:
        return None
    rest, (first, _) = stop.after, stop.begin
    if rest[:1] in ("]", "}"):
        return _Mistake(f"`{rest[0]}` closes what `{opening}` in line {first} has opened", f"write `{closing}`")
    text = stop.source.line(stop.line)
    is_outside = stop.line > first and _indent(text) <= _indent(stop.source.line(first))
    if is_outside or not (rest or stop.source.line(stop.line + 1)):
        hint = f"write `{closing}` after the last entry"
        return _Mistake(f"the `{opening}` that opens here is never closed", hint, stop.begin)
    if text.count('"') % 2:
        return _Mistake("a quote is missing on this line", 'write `"` before and after each text in quotes')
    glob = re.search(r"(?<![\w.-])[\w.-]++\[[\w-]++\][\w.-]*", text)
    hint = f"quote a pattern: {_in_quotes(glob[0])}" if glob else "write `, ` between them"
    return _Mistake("a comma is missing between two entries", hint)


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip(" "))


def _without_space(line: int, text: str) -> _Mistake | None:
    """Explain a key without a space after its colon, or with one that YAML does not take for a space."""
    if odd := _ODD_SPACE.match(text):
        what = "what stands after the colon looks like a space, but is another character, such as a no-break space"
        return _Mistake(what, f"write `{odd[2]}: ` with an ordinary space", (line, odd.end()))
    found = _TIGHT_KEY.match(text)
    if found is None:
        return None
    value = found[3].strip()[:_SHOWN]
    hint = f"write `{found[2]}: {value}`"
    return _Mistake("there is no space after the colon, so this is no key", hint, (line, found.end(2) + 1))


def _second_colon(stop: _ParserStop) -> _Mistake | None:
    """Explain a colon where no key can end."""
    before = stop.before
    key = re.match(r"\s*+(?:-\s++)*+([^:\s]{1,64}|\"[^\"]*\"|'[^']*'):\s+", before)
    if key is not None:
        value = _without_comment((before + stop.after)[key.end() :])
        hint = f"quote the whole value: {key[1]}: {_in_quotes(value)}"
        return _Mistake("a colon and a space within unquoted text begin a value", hint)
    number, above = stop.line_above(stop.line)
    if number and (said := _without_space(number, above)):
        return said
    start = (stop.line, _indent(stop.source.line(stop.line)) + 1)
    if number and _indent(above) < _indent(stop.source.line(stop.line)):
        if re.match(r"[^#]*:\s+\S", above):
            further, wanted = stop.line_above(number)[1], _indent(stop.source.line(stop.line))
            if _indent(further) == wanted or _opens(further, _indent(above)):
                what = f"the line is indented by less than line {stop.line}, which is a part of the same"
                return _Mistake(what, f"indent it by {count(wanted, 'space')}", (number, _indent(above) + 1))
            what = f"the line is indented as a part of line {number}, which has a value already"
            return _Mistake(what, f"indent it like line {number}", start)
        name = above.strip()[:_SHOWN]
        return _Mistake("there is no colon after the key", f"write `{name}:`", (number, len(above.rstrip()) + 1))
    return None


def _opens(line: str, indent: int) -> bool:
    """Return whether a line is a key without its value, which is to be indented by more than `indent`."""
    return _indent(line) >= indent and re.fullmatch(r"[^#]*:\s*(?:\s#.*)?", line) is not None


def _last_colon(stop: _ParserStop) -> _Mistake | None:
    word = re.match(r"[^][{},\s]+:(?=[][{},\s]|$)", stop.begun)
    if word is None:
        return None
    hint = f"write `{word[0][:-1]}`; or with the colon in quotes, where it is meant: {_in_quotes(word[0])}"
    return _Mistake(f"inside brackets, `{word[0]}` must not end in a colon", hint, stop.begin)


def _without_comment(text: str) -> str:
    return re.split(r"\s#", text, maxsplit=1)[0]


def _key_without_colon(stop: _ParserStop) -> _Mistake | None:
    line, column = stop.begin
    if said := _without_space(line, stop.source.line(line)[:_LOOKED_AT]):
        return said
    word = _without_comment(stop.begun).strip()
    key, _, value = word[:_SHOWN].partition(" ")
    hint = f"write `{key}: {value.strip() or 'VALUE'}`; or indent the line, if it continues the text above"
    hint = "write `---`, which begins a document" if re.fullmatch("-{1,2}", word) else hint
    return _Mistake("there is no colon after the key", hint, (line, column + len(word)))


def _among_keys(stop: _ParserStop) -> _Mistake | None:
    """Explain a line that does not continue its mapping or list."""
    if stop.before.strip() and not stop.before.strip().startswith("-"):
        return None
    line, column = stop.begin
    if stop.column == column:
        if "mapping" not in stop.context:
            return _Mistake("a key stands among list entries", "indent it under its entry, or begin the line with `- `")
        hint = "indent it under the key that it belongs to, or take the `-` out"
        return _Mistake("a list entry stands among keys", hint) if re.match(r"-(\s|$)", stop.after) else None
    number, above = stop.line_above(stop.line)
    like = f"line {line} ({count(column - 1, 'space')})"
    if number != line:
        like = f"line {number} ({count(_indent(above), 'space')}) or {like}"
    what = f"the line is indented by {count(stop.column - 1, 'space')}, as no line above"
    return _Mistake(what, f"indent it like {like}")


def _list_in_line(stop: _ParserStop) -> _Mistake:
    hint = f"write `[{stop.after.removeprefix('-').strip()[:_SHOWN]}]`, or begin the list on the next line"
    return _Mistake("a list with `-` cannot begin on the line of its key", hint)


def _conflict(stop: _ParserStop) -> _Mistake | None:
    for number in (stop.begin[0], stop.line, stop.line - 1):
        if _CONFLICT.match(stop.source.line(number)[:_LOOKED_AT]):
            hint = "resolve the conflict, then take out the lines with `<<<<<<<`, `=======` and `>>>>>>>`"
            return _Mistake("git left the marks of a conflict here", hint, (number, 1))
    return None


def _byte_order_mark(stop: _ParserStop) -> _Mistake | None:
    if "\ufeff" not in stop.before[-1:] + stop.after[:1]:
        return None
    hint = "take it out; an editor may not show it. It is left where files were joined"
    return _Mistake("a byte order mark (U+FEFF) stands within the file", hint)


def _document(stop: _ParserStop) -> _Mistake:
    number, above = stop.line_above(stop.line)
    if above.startswith("%"):
        return _Mistake("a directive needs a line `---` below it", f"write `---` after line {number}", (number, 1))
    return _Mistake("text follows the end of a document", "begin the next document with a line `---`")


_TABLE: Final[tuple[tuple[str, Callable[[_ParserStop], _Mistake | None]], ...]] = (
    ("", _conflict),
    ("", _byte_order_mark),
    ("scanning an alias", _begins("*", "an alias, which repeats another value")),
    ("scanning an anchor", _begins("&", "an anchor, which names a value")),
    ("a tag", _begins("!", "a tag, which names a type")),
    ("found a tab character", _tab),
    ("cannot start any token", _reserved),
    ("expected node content", _reserved),
    ("scanning a directive", _directive),
    ("scanning a block scalar", _block_text),
    ("unknown escape character", _escape),
    ("parsing a quoted scalar", _never_closed_quote),
    ("scanning a quoted scalar", _never_closed_quote),
    ("found unexpected ':'", _last_colon),
    ("parsing a flow", _brackets),
    ("mapping values are not allowed", _second_colon),
    ("could not find expected ':'", _key_without_colon),
    ("sequence entries are not allowed", _list_in_line),
    ("parsing a block", _behind_value),
    ("parsing a block", _among_keys),
    ("expected <document start>", _document),
    (
        "incompatible YAML document",
        lambda stop: _Mistake("gpolicy reads YAML 1.2", "take the line `%YAML` out", (stop.line, 1)),
    ),
)
"""Words of the parser, and what explains the place where it says them. The first explanation that fits counts."""
