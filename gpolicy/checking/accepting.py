"""What accepts findings beside the baseline: waivers, for a time, and comments at a finding's place; rules about both.

At the end of a line a comment (`# gpolicy: ignore[GP201] the reason`) is about the findings that begin on that line;
alone on a line about those that begin on the next line that is neither blank nor a comment.
`# gpolicy: ignore-file[...]`, before the first value of a file, is about all of the file.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from fnmatch import fnmatchcase
from itertools import chain
from typing import Final

from gpolicy import findings
from gpolicy.checking.rule import Hit
from gpolicy.findings import HOUSE, Accepted, Edit, Finding, Fix, RuleInfo, Span, error_rule, warning_rule
from gpolicy.guessing import MOST_GUESSES, closest
from gpolicy.policy import edits
from gpolicy.policy.kinds import Policy, Waiver
from gpolicy.policy.source_file import SourceFile

FindRule = Callable[..., tuple[RuleInfo | None, str]]
"""Returns the rule of a code or name; or None, and a hint, with a `guess` at what may have been meant."""

DRIFT: Final = warning_rule("GP821", "drift")
"""No check finds it, `gpolicy drift` does. It stands among the rules so that a waiver can name it."""
WAIVER_EXPIRED: Final = warning_rule("GP901", "waiver-expired")
WAIVER_UNUSED: Final = warning_rule("GP902", "waiver-unused", role=findings.Role.USES)
WAIVER_UNKNOWN_RULE: Final = error_rule("GP903", "waiver-unknown-rule")
WAIVER_NOT_POSSIBLE: Final = error_rule("GP904", "waiver-not-possible")
WAIVER_DATE: Final = error_rule("GP905", "waiver-date")


class Waivers:
    """The waivers of one policy, matched with its findings; `findings` are about the waivers themselves."""

    def __init__(self, waivers: Iterable[Waiver], find: FindRule, today: date) -> None:
        self._today = today
        self._find = find
        self._found: list[tuple[Finding, str, str]] = []  # with the rule and the place that it is about
        self._open: dict[str, list[Hit]] = defaultdict(list)  # what no waiver accepts, by rule
        self._active = [(waiver, info) for waiver in waivers if (info := self._in_force(waiver)) is not None]
        self._by_rule: dict[str, list[int]] = {}  # the places in `_active`
        for number, (_, info) in enumerate(self._active):
            self._by_rule.setdefault(info.key, []).append(number)
        self._used: set[int] = set()

    def covering(self, hit: Hit) -> Waiver | None:
        """Return the first waiver in force that accepts the finding, or None."""
        of_rule = {*self._by_rule.get(hit.finding.key, ()), *self._by_rule.get(hit.finding.code, ())}
        covering = [number for number in sorted(of_rule) if _covers(self._active[number][0].where, hit)]
        self._used.update(covering)
        if not covering:
            self._open[hit.finding.key].append(hit)
        return self._active[covering[0]][0] if covering else None

    @property
    def findings(self) -> list[Finding]:
        """What is found about the waivers themselves, with what lapsed ones would accept."""
        return [self._with_meant(*item) for item in self._found]

    def _with_meant(self, finding: Finding, rule: str, where: str) -> Finding:
        hits = (item for item in self._open[rule] if _covers(where, item))
        return replace(finding, consequences=tuple(item.finding for item in hits))

    def unused(self, ran: Callable[[str], bool], labels: Mapping[str, str], files: Sequence[str]) -> Iterator[Finding]:
        """Yield a finding for each waiver that covered nothing, if the rule it names (by its key) has run.

        Where its `where` names an object or one of `files`, it can go: nothing in it is misspelt. `labels` are the
        objects, with their names. A waiver of a base is left alone: another policy may need it.
        """
        first: dict[tuple[str, str], Waiver] = {}
        for number, (waiver, info) in enumerate(self._active):
            if waiver.span.file not in files:
                continue
            if number not in self._used and ran(info.key):
                is_known = any(fnmatchcase(label, waiver.where) for label in labels)
                is_known = is_known or any(_is_about(waiver.where, file) for file in files)
                why = "the waiver is not needed" if is_known else "no object and no file is called that"
                fix = self._removal(waiver) if is_known else None
                bare = waiver.where.rpartition("/")[2]  # without its kind, or with another word for that
                same = next((label for label, name in labels.items() if name == bare), waiver.where)
                near = None if is_known else closest(same, [*labels, *files])
                hint = f"Did you mean `{near}`?" if near else "remove the waiver, or correct its `where`"
                hint = "remove the waiver" if is_known else hint
                others = {item.label for item in self._open[info.key]} if near is None else set()
                if len(others) == 1 and (near := others.pop()):
                    why, fix = f"it is found at {near}", None
                    hint = f"is `where: {near}` meant? Else remove the waiver"
                message = f"{info.code} {info.name} finds nothing at {waiver.where!r}: {why}"
                kind, _, name = waiver.where.partition("/")
                missing = f"group {name}" if kind == "group" and not is_known else ""
                finding = WAIVER_UNUSED.finding(message, waiver.span, hint=hint, fix=fix, missing=missing)
                yield self._with_meant(finding, info.key, near or waiver.where)
            elif number in self._used and first.setdefault((info.key, waiver.where), waiver) is not waiver:
                message = f"another waiver accepts {info.code} {info.name} at {waiver.where!r} as well"
                fix, hint = self._removal(waiver), "keep the one that is right"
                yield WAIVER_UNUSED.finding(message, waiver.span, hint=hint, fix=fix)

    def _removal(self, waiver: Waiver) -> Fix | None:
        document, is_alone = waiver.document, len(waiver.document.root["waivers"]) == 1
        removed = edits.remove_document(document) if is_alone else edits.remove_entry(document, waiver.pointer)
        return edits.fix("remove the waiver", removed)

    def _in_force(self, waiver: Waiver) -> RuleInfo | None:
        """Return the rule that the waiver names, or None (and a finding) if the waiver can waive nothing."""
        info, hint = self._find(waiver.rule, guess=len(self._found) < MOST_GUESSES)
        last_day = None
        with suppress(ValueError):
            last_day = date.fromisoformat(waiver.until)
        if info is None:
            rule, message = WAIVER_UNKNOWN_RULE, f"there is no rule {waiver.rule!r}"
        elif reason := info.refusal:
            rule, message = WAIVER_NOT_POSSIBLE, f"{info.code} {info.name} cannot be waived: {reason}"
            hint = "fix what it finds"
        elif last_day is None:
            rule, message = WAIVER_DATE, f"{waiver.until} is not a day of the calendar"
            day = [part.zfill(2) for part in reversed(waiver.until.split("."))]  # of 30.06.2027
            hint = f"write the last day as {'-'.join(day) if len(day) == 3 else 'YYYY-MM-DD'}"
        elif last_day < self._today:
            rule, message = WAIVER_EXPIRED, f"the waiver of {waiver.rule} ended on {waiver.until}"
            hint = "remove the waiver, or agree on a new last day"
        else:
            return info
        meant = info or self._find(hint.partition("`")[2].partition("`")[0], guess=False)[0]
        lapsed = meant.key if meant is not None and rule is not WAIVER_NOT_POSSIBLE else ""
        finding = rule.finding(message, waiver.span, hint=hint, missing="" if info else message)
        self._found.append((finding, lapsed, waiver.where))
        return None


def _covers(where: str, hit: Hit) -> bool:
    """Return whether `where` names the object or the file of a finding; a file also by the end of its path."""
    return fnmatchcase(hit.label, where) or (hit.finding.span is not None and _is_about(where, hit.finding.span.file))


def _is_about(where: str, place: str) -> bool:
    return fnmatchcase(place, where) or fnmatchcase(place, f"*/{where}")


SUPPRESSION_UNUSED: Final = warning_rule("GP911", "suppression-unused")
SUPPRESSION_MALFORMED: Final = warning_rule("GP912", "suppression-malformed")
SUPPRESSION_UNKNOWN_RULE: Final = warning_rule("GP913", "suppression-unknown-rule")
SUPPRESSION_NOT_POSSIBLE: Final = warning_rule("GP914", "suppression-not-possible")

RulesNamed = Callable[..., tuple[tuple[RuleInfo, ...], str]]
"""Returns the rules that a code, a name or a family names; or none, and a hint (a `guess` at what may be meant)."""

_LINE, _FILE = "ignore", "ignore-file"
_COMMENT: Final = re.compile(
    r"(?<!\S)\#[ \t]*+gpolicy(?:(?P<colon>:)|[ \t]*+:?)[ \t]*+(?P<word>ignore[\w-]*+|[\w-]++(?=[ \t]*+\[))[ \t]*+"
    r"(?:\[(?P<rules>[^]\n\r]*+)(?P<end>\])?)?",
    re.IGNORECASE,
)
_MOST_WORDS: Final = 1000


@dataclass(slots=True)
class _IgnoreComment:
    """A comment that accepts findings of some rules on one line of a file, or in all of it (line 0).

    `codes` are what each of its words names that can be accepted, `used` the words that accepted something.
    """

    span: Span
    line: int
    words: tuple[str, ...]
    reason: str
    codes: dict[str, frozenset[str]] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)


class Suppressions:
    """The comments of one policy that accept findings; `findings` are about the comments themselves."""

    def __init__(self, policy: Policy, rules_named: RulesNamed) -> None:
        self.findings: list[Finding] = []
        self._rules_named = rules_named
        self._own_files = frozenset(policy.paths)
        self._files = policy.files
        tables = (item for item in policy.documents if isinstance(item.root, dict))
        self._templates = [item for item in tables if item.root.get("template") is True]
        self._comments: dict[tuple[str, int], list[_IgnoreComment]] = {}  # by file and line
        for file in policy.files.values():
            if _COMMENT.search(file.text):
                self._read_comments(file)

    def accepting(self, finding: Finding) -> Accepted | None:
        """Return the finding as the first comment accepts it; None if none does."""
        found, span = None, finding.span
        for place in ((span.file, span.line), (span.file, 0)) if self._comments and span else ():
            for comment in self._comments.get(place, ()):
                used = {word for word, codes in comment.codes.items() if finding.key in codes or finding.code in codes}
                if used and not comment.used and not comment.reason:
                    written = f"{_LINE if comment.line else _FILE}[{', '.join(comment.words)}]"
                    hint = f"write it behind the rules: # gpolicy: {written} agreed with the owners"
                    self._malformed(comment.span, "gives no reason", hint)
                comment.used |= used
                found = found or (Accepted(finding, findings.COMMENT, comment.span, comment.reason) if used else None)
        return found

    def unused(self, ran: Callable[[str], bool]) -> Iterator[Finding]:
        """Yield a finding for each rule of a comment that accepted nothing, if it (by its key) has run.

        Of a family some rules may not have run: then there is no fix. Comments in a base are left alone: another policy
        may need them.
        """
        for comment in filter(self._is_own, chain.from_iterable(self._comments.values())):
            idle = {word: [*map(ran, codes)] for word, codes in comment.codes.items() if word not in comment.used}
            unused = [word for word, have_run in idle.items() if all(have_run)]
            for word in (word for word, have_run in idle.items() if any(have_run) and not all(have_run)):
                hint = "remove it, or name the rule that it is for: some rules of the family did not run"
                yield SUPPRESSION_UNUSED.finding(f"{word} finds nothing here", comment.span, hint=hint)
            if unused:
                message = f"{', '.join(unused)} finds nothing here: the comment is not needed"
                fix = self._without(comment, unused)
                yield SUPPRESSION_UNUSED.finding(message, comment.span, hint=fix.message, fix=fix)

    def _is_own(self, comment: _IgnoreComment) -> bool:
        """Return whether what a comment is about is all in this policy: not in a document or a file that is a base."""
        if comment.span.file not in self._own_files:
            return False
        bases = (item.mark for item in self._templates if item.file == comment.span.file)
        return not any(comment.line == 0 or mark[0] <= comment.line <= mark[2] for mark in bases)

    def _read_comments(self, file: SourceFile) -> None:
        first_value = min((document.mark[0] for document in file.documents if document.root is not None), default=0)
        lines_about = _lines_about(file)
        for found in chain.from_iterable(_COMMENT.finditer(file.text, *comment) for comment in file.comments):
            span = file.span(*found.span())
            word = found["word"].lower()
            if not found["colon"]:
                if word in (_LINE, _FILE) and found["end"]:  # else it is a sentence about gpolicy
                    self._malformed(span, "lacks the colon", f"write gpolicy: {word}[{found['rules'].strip()[:60]}]")
                continue
            if word not in (_LINE, _FILE) or not found["end"]:
                self._malformed(span, *_what_is_wrong(word, found))
                continue
            words = tuple(dict.fromkeys(item.strip() for item in found["rules"].split(",") if item.strip()))
            before = file.before(found.start()).strip()
            own_line = not before or before.startswith("#")
            line = 0 if word == _FILE else lines_about[span.line] if own_line else span.line
            if not words or len(words) > _MOST_WORDS:
                self._malformed(span, "names no rules", "write the codes or names of rules, such as ignore[GP201]")
            elif word == _FILE and first_value and span.line > first_value:
                self._malformed(span, "is not at the head of the file", "move it above the first line of values")
            elif line or word == _FILE:
                self._add_comment(_IgnoreComment(span, line, words, file.behind(found.end()).strip(" \t-:#")))
            else:
                self._malformed(span, "is about nothing: no values follow", "remove it")

    def _add_comment(self, comment: _IgnoreComment) -> None:
        self._comments.setdefault((comment.span.file, comment.line), []).append(comment)
        for word in comment.words:
            infos, hint = self._rules_named(word, guess=len(self.findings) < MOST_GUESSES)
            codes = frozenset(info.key for info in infos if not info.refusal)
            if codes:
                comment.codes[word] = codes
            elif infos:
                message = f"{word} cannot be accepted by a comment: {infos[0].refusal}"
                self.findings.append(SUPPRESSION_NOT_POSSIBLE.finding(message, comment.span, hint="fix what it finds"))
            elif self._is_own(comment) or not word.startswith(HOUSE):  # another policy's rules are not known here
                said = f"there is no rule {word[:60]!r}"
                self.findings.append(SUPPRESSION_UNKNOWN_RULE.finding(said, comment.span, hint=hint, missing=said))

    def _malformed(self, span: Span, message: str, hint: str) -> None:
        self.findings.append(SUPPRESSION_MALFORMED.finding(f"this comment for gpolicy {message}", span, hint=hint))

    def _without(self, comment: _IgnoreComment, unused: list[str]) -> Fix:
        """Return the fix that takes rules out of a comment, or all of it if none is left."""
        file = self._files[comment.span.file]
        kept = [word for word in comment.words if word not in unused]
        begin = file.offset(comment.span.line, comment.span.column)
        if kept:
            opening = file.text.index("[", begin)
            place = file.span(opening + 1, file.text.index("]", opening))
            return Fix(f"remove {', '.join(unused)} from the comment", (Edit(place, ", ".join(kept)),))
        start = file.offset(comment.span.line, 1)
        before = file.text[start:begin]
        if before.strip():
            place = file.span(start + len(before.rstrip()), start + len(file.line(comment.span.line)))
        else:  # the line holds nothing else
            place = file.span(start, file.offset(comment.span.line + 1, 1))
        return Fix("remove the comment", (Edit(place, ""),))


def _what_is_wrong(word: str, found: re.Match[str]) -> tuple[str, str]:
    if word not in (_LINE, _FILE):
        return f"says {found['word'][:60]!r}", "write ignore[RULE, ...] or ignore-file[RULE, ...]"
    if found["rules"] is None:
        return "names no rules", f"write the codes or names of rules: {word}[RULE, ...]"
    return "lacks its closing bracket", f"write {word}[RULE, ...] on one line"


def _lines_about(file: SourceFile) -> list[int]:
    """Return for each line the next one that has a value (not blank, a comment or ---); 0 for none."""
    last = len(file.starts) - 1
    about = [0] * (last + 2)
    for number in range(last, 0, -1):
        stripped = file.line(number).strip()
        says = stripped and not stripped.startswith("#")
        about[number - 1] = (0 if stripped.startswith(("---", "...")) else number) if says else about[number]
    return about
