from __future__ import annotations

from hypothesis import given, strategies as st

from gpolicy.checking.baseline import fingerprint, unique_fingerprints
from gpolicy.findings import Finding, Severity, Span
from gpolicy.policy.yaml_reader import read_yaml

TEXT = """\
gpolicy: v1
kind: NodeGroup
name: gold
ipolicy: {vcpu-ratio: 1, spindle-ratio: 1}
---
gpolicy: v1
kind: NodeGroup
name: silver
ipolicy:
  vcpu-ratio: 1
  vcpu-ratio: 1
"""


def found(line: int, column: int = 1, end_column: int = 1, code: str = "GP201", file: str = "f") -> Finding:
    return Finding(code, "x", Severity.ERROR, "message", Span(file, line, column, line, end_column))


def at(text: str, line: int, column: int = 1, end_column: int = 1, code: str = "GP201") -> str:
    return fingerprint(found(line, column, end_column, code), {"f": read_yaml(text, "f")})


@given(st.lists(st.sampled_from(["# comment", "", "# kind: Other", "---"])))
def test_a_moved_line_keeps_its_fingerprint(above: list[str]) -> None:
    moved = "".join(f"{line}\n" for line in above) + "---\n" + TEXT
    for line in (4, 9, 10):
        assert at(moved, line + len(above) + 1) == at(TEXT, line)


def test_fingerprints_ignore_blanks_comments_and_line_ends() -> None:
    assert at(TEXT.replace("  vcpu-ratio: 1", "    vcpu-ratio:   1  # why"), 10) == at(TEXT, 10)
    assert at(TEXT.replace("\n", "\r\n"), 10) == at(TEXT, 10)


def test_a_fingerprint_depends_on_place_rule_line_and_object() -> None:
    one = at(TEXT, 4, 11, 24)
    assert at(TEXT, 4, 26, 42) != one  # another place of the line
    assert at(TEXT, 4, 11, 24, code="GP202") != one
    assert at(TEXT.replace("vcpu-ratio: 1", "vcpu-ratio: 2"), 4, 11, 24) != one
    assert at(TEXT.replace("gold", "bronze"), 4, 11, 24) != one
    assert at(TEXT, 10) == at(TEXT, 11)  # equal mistakes


def test_unique_fingerprints_distinguish_equal_mistakes_and_files() -> None:
    findings = [found(10), found(11), found(10, file="g"), Finding("GP201", "x", Severity.ERROR, "no place")]
    files = {name: read_yaml(TEXT, name) for name in ("f", "g")}
    result = unique_fingerprints(findings, files)
    assert len(set(result)) == 4
    assert all(len(text) == 32 and int(text, 16) >= 0 for text in result)
    assert unique_fingerprints(findings, files, locate=lambda file: f"there/{file}") != result


def test_a_place_in_no_known_file_or_behind_its_end() -> None:
    assert fingerprint(found(1), {}) == fingerprint(found(7), {})
    assert fingerprint(found(99, 99, 99), {"f": read_yaml(TEXT, "f")})
    assert fingerprint(found(1), {"f": read_yaml("", "f")})
    assert fingerprint(Finding("GP001", "x", Severity.ERROR, "a"), {}) != fingerprint(
        Finding("GP001", "x", Severity.ERROR, "b"), {}
    )
