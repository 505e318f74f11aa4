"""Read YAML by the rules of YAML 1.2's core schema, with the place of every node, within bounds.

`no`, `on`, `1:30` and `010` are what they look like: two strings, a string and the number ten. A key that stands
twice is an error that names both places. Untrusted text can neither hang nor crash the reader: size, depth and the
number of nodes, aliases followed, are bounded; nothing recurses.
"""

import re
import sys
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Any, Final

import yaml

from gpolicy.findings import Related, Span
from gpolicy.guessing import did_you_mean
from gpolicy.policy import source_file
from gpolicy.policy.source_file import Mark, SourceFile, YamlDocument, YamlMapping, YamlSequence

MAX_BYTES: Final = 16 * 1024 * 1024
MAX_DEPTH: Final = 64
MAX_NODES: Final = 500_000
"""The greatest number of values of a file, with aliases followed."""

_MOST_DOUBLES: Final = 20  # keys that a finding names

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
_BOOL: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT: Final = re.compile(r"[-+]?[0-9]+", re.ASCII)
_OCTAL: Final = re.compile(r"0o[0-7]+", re.ASCII)
_HEX: Final = re.compile(r"0x[0-9a-fA-F]+", re.ASCII)
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_SPECIAL_FLOAT: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", re.ASCII)
_MAX_DIGITS: Final = 400  # beyond a double's range; a longer number stays text and fails as such
_FIRST_OF_NUMBER: Final = frozenset("-+.0123456789")

_TAG: Final = "tag:yaml.org,2002:"
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    f"{_TAG}str": (str,),
    f"{_TAG}map": (YamlMapping,),
    f"{_TAG}seq": (YamlSequence,),
    f"{_TAG}bool": (bool,),
    f"{_TAG}int": (int,),
    f"{_TAG}float": (float,),
    f"{_TAG}null": (type(None),),
}
_ODD: Final = re.compile("[\x85\u2028\u2029]|(?!^)\ufeff")
"""Letters that some readers take for the end of a line, or for the beginning of a text, and others do not."""


def read_yaml(text: str, file: str) -> SourceFile:
    """Return the file of `text`, called `file` in findings; after a syntax error, with the documents before it."""
    source = SourceFile(file, text)
    if len(text) > MAX_BYTES:
        message = f"the file is larger than {MAX_BYTES // 1024**2} MiB"
        hint = "split it into several files"
        source.findings.append(source_file.ALIAS_BOMB.finding(message, Span(file, 1, 1, 1, 1), hint=hint))
        return source
    reader = _YamlReader(source)
    try:
        next_event = _LOADER(text).get_event
        event = next_event()
        while type(event) is not yaml.StreamEndEvent and not reader.full:
            reader.take(event)
            event = next_event()
    except yaml.MarkedYAMLError as error:
        from gpolicy.policy.yaml_mistakes import syntax_finding  # noqa: PLC0415 (for errors only)

        if "nesting depth" in str(error.problem):  # PyYAML from 6.0.4 on looks ahead, and counts as well
            at = (error.problem_mark.line + 1, error.problem_mark.column + 1) if error.problem_mark else (1, 1)
            reader.stop_too_deep((*at, *at))
        else:
            source.findings.append(syntax_finding(error, source))
    except yaml.reader.ReaderError as error:
        letter = error.character if isinstance(error.character, str) else chr(error.character)
        place = max(text.find(letter), 0)  # its first place: YAML counts in bytes
        message = f"YAML allows the character U+{ord(letter):04X} nowhere"
        hint = "take it out; an editor may not show it"
        source.findings.append(source_file.YAML_SYNTAX.finding(message, source.span(place, place + 1), hint=hint))
    except (yaml.YAMLError, ValueError) as error:  # an unpaired surrogate, which no file can have, has no place
        message = " ".join(str(error).split())[:300]
        source.findings.append(source_file.YAML_SYNTAX.finding(message, Span(file, 1, 1, 1, 1)))
    source.unfinished = reader.unfinished
    if not source.findings and (odd := _ODD.search(text)):
        message = f"the character U+{ord(odd[0]):04X}: some readers of YAML end a line there, others do not"
        hint = "take it out, or write it as an escape in double quotes; an editor may not show it"
        source.findings.append(source_file.UNSUPPORTED_YAML.finding(message, source.span(*odd.span()), hint=hint))
    return source


@dataclass(slots=True)
class _Open:
    """A collection that is being read. `key` is the mapping key whose value comes next."""

    value: YamlMapping | YamlSequence
    mark: Mark
    anchor: str | None
    nodes: int = 1
    key: str | None = None
    key_mark: Mark = (1, 1, 1, 1)
    dropped: bool = False  # the next value belongs to a dropped key
    doubles: tuple[str, ...] = ()  # keys that occur twice
    reported: int = 0  # the place of the finding about them

    def add(self, value: Any, mark: Mark) -> None:
        """Add an item, or the value of the key that came last."""
        if isinstance(self.value, YamlSequence):
            self.value.append(value)
            self.value.marks.append(mark)
            return
        if self.key is not None:
            self.value[self.key] = value
            self.value.key_marks[self.key] = self.key_mark
            self.value.value_marks[self.key] = mark
        self.key, self.dropped = None, False


class _YamlReader:
    def __init__(self, source: SourceFile) -> None:
        self.full = False
        self._source = source
        self._nodes = 0
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Any, Mark, int]] = {}
        self._lines: dict[str, int] | None = None  # of the anchors of all documents, once one is missing

    @property
    def unfinished(self) -> YamlDocument | None:
        """The document that is being read, if it is a mapping."""
        root = self._open[0] if self._open else None
        is_mapping = root is not None and isinstance(root.value, YamlMapping)
        return YamlDocument(self._source, root.value, root.mark) if root is not None and is_mapping else None

    def take(self, event: Any) -> None:
        kind = type(event)
        if kind is yaml.ScalarEvent:
            mark = _mark(event)
            self._source.scalars.append(mark)
            text = sys.intern(event.value)  # the same words are frequent
            is_read = event.implicit[0] if event.tag is None else event.tag != f"{_TAG}str"
            value = resolve(text) if is_read else text
            if event.tag is not None:
                self._check_tag(event.tag, value, mark)
            merges = text == "<<" and event.implicit[0]  # to readers of YAML 1.1; in quotes it is a word like others
            self._put(value, mark, 1, event.anchor, text=text, merges=merges)
        elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
            self._begin(event, YamlMapping() if kind is yaml.MappingStartEvent else YamlSequence())
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            done = self._open.pop()
            mark = _same_mark((*done.mark[:2], event.end_mark.line + 1, event.end_mark.column + 1))
            self._put(done.value, mark, done.nodes, done.anchor)
        elif kind is yaml.AliasEvent:
            self._alias(event)
        elif kind is yaml.DocumentStartEvent:
            self._anchors = {}
            self._source.document_lines.append(event.start_mark.line + 1)

    def _begin(self, event: Any, value: YamlMapping | YamlSequence) -> None:
        mark = _mark(event)
        self._check_tag(event.tag, value, mark)
        if len(self._open) >= MAX_DEPTH:
            self.stop_too_deep(mark)
        else:
            self._open.append(_Open(value, mark, event.anchor))

    def _check_tag(self, tag: str | None, value: Any, mark: Mark) -> None:
        """Report a tag that no policy has, or that is not the one of the value."""
        if tag is not None and tag not in _TYPES:
            self._unsupported(f"the tag {tag!r} means nothing in a policy", mark, hint="if it is text, quote it")
        elif tag is not None and type(value) not in _TYPES[tag]:
            message = f"the tag !!{tag.removeprefix(_TAG)} does not fit its value"
            self._unsupported(message, mark, hint="leave the tag out")

    def _alias(self, event: Any) -> None:
        mark = _mark(event)
        known = self._anchors.get(event.anchor)
        if known is None:
            inside = any(opened.anchor == event.anchor for opened in self._open)
            reason = "refers to itself" if inside else f"has no anchor `&{event.anchor}` above it"
            quote = f'if it is text, quote it: "*{event.anchor}"'
            meant = did_you_mean(event.anchor, self._anchors) if not inside else "write the value out"
            if self._lines is None:
                found = re.finditer(r"(?<=[\s\[{,])&([^\s,\]}]{1,100})", self._source.text)
                self._lines = {item[1]: self._source.span(*item.span()).line for item in islice(found, 1000)}
            line = self._lines.get(event.anchor)
            if line is not None and not inside:
                is_above = line < mark[0]
                where = "in another document" if is_above else "below"
                reason = f"has its anchor `&{event.anchor}` {where}, in line {line}"
                meant = "write the value out, or share it with extends" if is_above else "put the anchor above"
            self._unsupported(f"the alias `*{event.anchor}` {reason}", mark, hint=meant.replace("`", "`*", 1) or quote)
            self._put(None, mark, 1, None)
            return
        value, _, nodes = known
        self._put(value, mark, nodes, None, text=value if isinstance(value, str) else None)

    def _put(
        self, value: Any, mark: Mark, nodes: int, anchor: str | None, *, text: str | None = None, merges: bool = False
    ) -> None:
        """Add a finished node to its collection. `text` is how a scalar is written; `merges`: it is an unquoted <<."""
        total = (self._open[-1].nodes if self._open else self._nodes) + nodes
        if total > MAX_NODES:
            self._stop(f"more than {MAX_NODES:,} values once its aliases are followed", mark)
            return
        if anchor in self._anchors:
            message = f"the anchor `&{anchor}` occurs twice, first in line {self._anchors[anchor][1][0]}"
            self._unsupported(message, mark, hint="give one of them another name, so that each alias has one meaning")
        if anchor is not None:
            self._anchors[anchor] = (value, mark, nodes)
        if not self._open:
            self._nodes = total
            self._source.documents.append(YamlDocument(self._source, value, mark))
            return
        parent = self._open[-1]
        parent.nodes = total
        if isinstance(parent.value, YamlMapping) and parent.key is None and not parent.dropped:
            self._add_key(parent, parent.value, text, mark, merges=merges)
        else:
            parent.add(value, mark)

    def _add_key(self, parent: _Open, keys: YamlMapping, key: str | None, mark: Mark, *, merges: bool) -> None:
        if key is None:
            self._unsupported("a key must be a plain word, not a list or a mapping", mark)
            parent.dropped = True
        elif merges:
            self._unsupported("YAML 1.2 has no merge key <<", mark, hint="use extends: to share settings")
            parent.dropped = True
        elif key in keys:
            self._double(parent, keys, key, mark)
            parent.dropped = True
        else:
            parent.key, parent.key_mark = key, mark

    def _double(self, parent: _Open, keys: YamlMapping, key: str, mark: Mark) -> None:
        """Report a key that occurs twice, in the finding about the first of them where a mapping has several."""
        findings = self._source.findings
        if not parent.doubles:
            parent.doubles, parent.reported = (key,), len(findings)
            related = (Related(Span(self._source.name, *keys.key_marks[key]), "first here"),)
            below = f", or write all below one `{key}:`" if isinstance(keys[key], YamlMapping) else ""
            hint = f"keep one of the two{below}; YAML would silently take the last"
            place, message = Span(self._source.name, *mark), f"the key {key!r} occurs twice here"
            findings.append(source_file.DUPLICATE_KEY.finding(message, place, hint=hint, related=related))
        elif key not in parent.doubles and len(parent.doubles) < _MOST_DOUBLES:
            parent.doubles += (key,)
            new = "gpolicy" in parent.doubles
            missing = "the line --- before the second document" if new else "a `- ` before an item"
            message = f"the keys {', '.join(map(repr, parent.doubles))} occur twice here"
            hint = f"add what may be missing, {missing}, or keep one of each"
            findings[parent.reported] = replace(findings[parent.reported], message=message, hint=hint)

    def _unsupported(self, message: str, mark: Mark, hint: str = "") -> None:
        span = Span(self._source.name, *mark)
        self._source.findings.append(source_file.UNSUPPORTED_YAML.finding(message, span, hint=hint))

    def stop_too_deep(self, mark: Mark) -> None:
        self._stop(f"nested more than {MAX_DEPTH} levels deep", mark)

    def _stop(self, message: str, mark: Mark) -> None:
        hint = "no policy needs this; write the values out, or split the file"
        self._source.findings.append(source_file.ALIAS_BOMB.finding(message, Span(self._source.name, *mark), hint=hint))
        self.full = True


@lru_cache(maxsize=8192)  # the same words and numbers are frequent
def resolve(text: str) -> bool | int | float | str | None:
    """Return the value of an unquoted scalar by YAML 1.2's core schema."""
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    if text[0] in _FIRST_OF_NUMBER and len(text) <= _MAX_DIGITS:
        if _INT.fullmatch(text):
            return int(text)
        if _FLOAT.fullmatch(text):
            return float(text)
        if _OCTAL.fullmatch(text):
            return int(text, 8)
        if _HEX.fullmatch(text):
            return int(text, 16)
        if _SPECIAL_FLOAT.fullmatch(text):
            return float(text.replace(".", ""))
    return text


def _mark(event: Any) -> Mark:
    start, end = event.start_mark, event.end_mark
    return _same_mark((start.line + 1, start.column + 1, end.line + 1, end.column + 1))


@lru_cache(maxsize=8192)  # files of one form have values at the same places: each is kept once
def _same_mark(mark: Mark) -> Mark:
    return mark
