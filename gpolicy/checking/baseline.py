"""The baseline: a file of the findings that a policy has when gpolicy is introduced, so that only new ones count.

An entry is known by its rule, its file (from the baseline's directory) and a fingerprint that survives moved lines:
of the rule, the object and the text at its place. Of equal ones there is a count.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from gpolicy.errors import InputError
from gpolicy.findings import BASELINE, Accepted, Finding, RuleInfo, Severity, Span
from gpolicy.json_values import FROM_ONE, Document, Many, Shape, version_key
from gpolicy.opening import read_named, reason
from gpolicy.policy.files import Boundary, boundary, relative_path
from gpolicy.policy.source_file import Files, YamlMapping

_MAX_BYTES: Final = 64 * 1024**2
_MAX_COUNT: Final = 1_000_000

BASELINE_STALE: Final = RuleInfo(code="GP915", name="baseline-stale", severity=Severity.INFO)
FindingKey = tuple[str, str, str]
"""The rule's key, file from the baseline's directory, fingerprint."""
_WRITE: Final = "gpolicy check --write-baseline FILE writes one"
_FINGERPRINT: Final = re.compile(r'"([0-9a-f]{32})"')
_COMMENT: Final = re.compile(r"(?:^|\s)#.*")
_LENGTH: Final = 32  # hex digits


@dataclass(slots=True)
class Baseline:
    """The findings that are accepted, with how many of each."""

    path: Path
    within: Boundary
    counts: dict[FindingKey, int] = field(default_factory=dict)
    lines: dict[FindingKey, int] = field(default_factory=dict)

    def split(
        self, findings: Iterable[Finding], files: Files, acceptable: frozenset[str]
    ) -> tuple[list[Finding], list[Accepted], Counter[FindingKey]]:
        """Return findings that are new, that are accepted (of `acceptable` codes), and how often each entry was met."""
        met: Counter[FindingKey] = Counter()
        new, accepted = [], []
        for finding in findings:
            key = key_of(finding, files, self.path)
            if finding.code in acceptable and met[key] < self.counts.get(key, 0):
                met[key] += 1
                accepted.append(Accepted(finding, BASELINE, self._span_of_entry(key)))
            else:
                new.append(finding)
        return new, accepted, met

    def stale(self, met: Counter[FindingKey], files: Iterable[str], ran: Callable[[str], bool]) -> Iterator[Finding]:
        """Yield a finding for each entry that accepts too much: of rules that `ran`, in these files or missing ones."""
        own = {relative_path(file, self.path.parent) for file in files}
        for key, count in self.counts.items():
            code, file, _ = key
            gone = count - met[key]
            if ran(code) and gone > 0 and (file in own or self._is_gone(file)):
                what = "a finding that no longer exists" if gone == 1 else f"{gone} findings that no longer exist"
                message = f"the baseline accepts {what}: {code} in {file or 'no file'}"
                hint = f"write a new one: gpolicy check --write-baseline {self.path}"
                yield BASELINE_STALE.finding(message, self._span_of_entry(key), hint=hint)

    def _span_of_entry(self, key: FindingKey) -> Span:
        line = self.lines.get(key, 1)
        return Span(str(self.path), line, 1, line, 1)

    def _is_gone(self, file: str) -> bool:
        """Return whether a file that the baseline names no longer exists; False for a file outside the repository."""
        try:
            return not self.within.real(self.path.parent / file).exists()
        except OSError:
            return False


def key_of(finding: Finding, files: Files, baseline: Path) -> FindingKey:
    """Return what identifies a finding in a baseline."""
    file = relative_path(finding.span.file, baseline.parent) if finding.span else ""
    return finding.key, file, fingerprint(finding, files)


_ENTRY: Final = Shape(dict).with_keys(
    rule={"type": "string", "pattern": "^(GP[0-9]{3}|house/[a-z0-9]+(-[a-z0-9]+)*)$"},
    file=str,
    fingerprint={"type": "string", "pattern": f"^[0-9a-f]{{{_LENGTH}}}$"},
    count={**FROM_ONE, "maximum": _MAX_COUNT},
    message=str,
)
BASELINE_DOCUMENT: Final = Document(
    "gpolicy check --write-baseline",
    Shape(dict).with_keys(format_version=version_key("1.0"), findings=Many(_ENTRY)),
)


def baseline_text(findings: Iterable[tuple[Finding, FindingKey]]) -> str:
    """Return the text of a baseline that accepts these findings: one entry a line, in a stable order."""
    same: dict[FindingKey, list[str]] = {}
    for finding, key in findings:
        same.setdefault(key, []).append(finding.message)
    entries = [
        {"rule": code, "file": file, "fingerprint": mark, "count": len(messages), "message": messages[0][:200]}
        for (code, file, mark), messages in sorted(same.items(), key=lambda item: (item[0][1], *item[0]))
    ]
    data = BASELINE_DOCUMENT.data({"findings": entries})
    lines = ",\n".join(f"    {json.dumps(entry)}" for entry in data["findings"])
    body = f"[\n{lines}\n  ]" if entries else "[]"
    return f'{{\n  "format_version": "{data["format_version"]}",\n  "findings": {body}\n}}\n'


def read_baseline(path: Path, *, named: bool = True, text: str | None = None) -> Baseline:
    """Return the baseline in a file, `named` by whoever runs us, or by settings. Raise InputError if it is none.

    `text` is read in place of what is in the file; nothing is a baseline that accepts nothing.
    """
    within = boundary(path)
    if text == "":
        return Baseline(path, within)
    text = text or _stored_text(path, None if named else within)
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        what = "nested too deep" if isinstance(error, RecursionError) else f"not JSON: {error}"
        raise InputError(f"{path}: {what}", hint=_WRITE) from None
    if not isinstance(data, dict) or not re.fullmatch(r"1\.[0-9]{1,6}", str(data.get("format_version"))):
        raise InputError(f"{path}: not a baseline of version 1", hint=_WRITE)
    entries = data.get("findings")
    if not isinstance(entries, list):
        raise InputError(f"{path}: `findings` is not a list", hint=_WRITE)
    result = Baseline(path, within)
    for number, entry in enumerate(entries):
        match entry:
            case {"rule": str(code), "file": str(file), "fingerprint": str(mark), "count": int(count)} if (
                type(count) is int and 0 < count <= _MAX_COUNT
            ):
                result.counts[code, file, mark] = result.counts.get((code, file, mark), 0) + count
            case _:
                raise InputError(f"{path}: findings[{number}] lacks rule, file, fingerprint or count", hint=_WRITE)
    marks = reversed(list(_FINGERPRINT.finditer(text))) if len(text) < 1024**2 else ()  # of more nobody looks it up
    places = {found[1]: text.count("\n", 0, found.start()) + 1 for found in marks}  # the first of each
    result.lines = {key: places[key[2]] for key in result.counts if key[2] in places}
    return result


def _stored_text(path: Path, within: Boundary | None) -> str:
    try:
        data = read_named(path, _MAX_BYTES) if within is None else within.read(path, _MAX_BYTES)
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start})", hint=_WRITE) from None
    except FileNotFoundError:
        raise InputError(f"{path}: no such baseline", hint=_WRITE) from None
    except OSError as error:
        raise InputError(f"{path}: {reason(error)}", hint=_WRITE) from None


def fingerprint(finding: Finding, files: Files) -> str:
    """Return 32 hex digits that stay the same while the text of the finding's line does.

    They hold neither the file's name nor the message, so a policy that is checked from another directory, or by a
    later gpolicy with better words, has the same. Two equal mistakes in one document have one fingerprint: count them.
    """
    span = finding.span
    file = files.get(span.file) if span else None
    if span is None or file is None:
        return _digest(finding.key, finding.message if span is None else "")
    line = " ".join(_COMMENT.sub("", file.line(span.line)).split())
    marked = file.written(span) if span.end_line == span.line else ""
    document = file.document_at(span.line)
    root = document.root if document is not None and isinstance(document.root, YamlMapping) else ()
    about = " ".join(document.written((key,)) for key in root if document and key in ("kind", "name"))
    return _digest(finding.key, about, line, " ".join(marked.split()))


def unique_fingerprints(findings: Iterable[Finding], files: Files, *, locate: Callable[[str], str] = str) -> list[str]:
    """Return a fingerprint for each finding that no other has, for readers that know findings by it alone.

    It also tells files apart, by the name that `locate` gives, and the second of two equal mistakes from the first.
    """
    seen: Counter[str] = Counter()
    result = []
    for finding in findings:
        file = locate(finding.span.file) if finding.span else ""
        plain = _digest(file, fingerprint(finding, files))
        seen[plain] += 1
        result.append(_digest(plain, str(seen[plain])) if seen[plain] > 1 else plain)
    return result


def _digest(*parts: str) -> str:
    from hashlib import sha256  # noqa: PLC0415 (loads OpenSSL; most checks need no fingerprint)

    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:_LENGTH]
