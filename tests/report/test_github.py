from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given, strategies as st

from gpolicy.findings import Finding, Severity, Span
from gpolicy.impact.impact import Impact
from gpolicy.plan.plan import Plan
from gpolicy.printable import printable
from gpolicy.report.findings_text import MOST_ANNOTATIONS, findings_github
from gpolicy.report.plan_answer import plan_answer
from gpolicy.report.plan_github import plan_github
from tests.report.impact_samples import full_impact
from tests.report.plan_samples import HOSTILE, empty_plan, full_plan, hostile

PLACE = Span("policies/gold.yaml", 3, 7, 3, 11)


def read(line: str) -> tuple[str, dict[str, str], str] | None:
    """Return what GitHub's runner reads of a line: level, properties and message, as its documentation has them."""
    match = re.fullmatch(r"::(\w+)(?: (.*?))?::(.*)", line)
    if match is None:
        return None
    pairs = (pair.split("=", 1) for pair in (match[2] or "").split(","))
    properties = {key: _unescaped(value, {"%3A": ":", "%2C": ","}) for key, value in pairs}
    return match[1], properties, _unescaped(match[3], {})


def _unescaped(text: str, more: dict[str, str]) -> str:
    for code, letter in {**more, "%0A": "\n", "%0D": "\r", "%25": "%"}.items():
        text = text.replace(code, letter)
    return text


def commands(text: str) -> list[tuple[str, dict[str, str], str]]:
    return [found for line in text.splitlines() if (found := read(line))]


def finding(severity: Severity, code: str = "GP201", span: Span | None = PLACE) -> Finding:
    return Finding(code, "spec-overlap", severity, "100% of x: y, z", span, "move it")


def test_a_finding_beside_its_line() -> None:
    text = findings_github([finding(Severity.ERROR)], locate=lambda file: f"sub/{file}")
    place = "file=sub/policies/gold.yaml,line=3,endLine=3,col=7,endColumn=10"
    assert text.splitlines() == [
        f"::error {place},title=GP201 spec-overlap::100%25 of x: y, z%0Ahint: move it",
        "1 error",
    ]


def test_columns_need_one_line_and_a_place_is_optional() -> None:
    several = finding(Severity.INFO, span=Span("a,b:c.yaml", 3, 7, 5, 2))
    text = findings_github([several, finding(Severity.INFO, span=None)])
    assert text.splitlines()[:2] == [
        "::notice file=a%2Cb%3Ac.yaml,line=3,endLine=5,title=GP201 spec-overlap::100%25 of x: y, z%0Ahint: move it",
        "::notice title=GP201 spec-overlap::100%25 of x: y, z%0Ahint: move it",
    ]


def test_the_worst_first_and_of_each_level_no_more_than_are_shown() -> None:
    many = [finding(Severity.INFO)] * 3 + [finding(Severity.WARNING, f"GP{n % 2 + 1}01") for n in range(25)]
    text = findings_github([*many, finding(Severity.ERROR)])
    found = commands(text)
    assert [level for level, _, _ in found] == ["error"] + ["warning"] * MOST_ANNOTATIONS + ["notice"] * 3
    assert found[MOST_ANNOTATIONS][1]["title"] == "16 more of this level"
    assert found[MOST_ANNOTATIONS][2].startswith("GP201 spec-overlap (8), GP101 spec-overlap (8). GitHub shows ten")
    plain = [line for line in text.splitlines() if read(line) is None]
    assert len(plain) == 16 + 1
    assert plain[0].startswith("policies/gold.yaml:3:7: warning: GP")
    assert plain[-1] == "1 error, 25 warnings, 3 info"


def test_ten_of_a_level_need_no_summary() -> None:
    assert "more of this level" not in findings_github([finding(Severity.ERROR)] * MOST_ANNOTATIONS)


@given(st.lists(st.tuples(st.text(), st.text(), st.text(min_size=1) | st.sampled_from(HOSTILE)), max_size=14))
def test_no_text_becomes_a_command_of_its_own(texts: list[tuple[str, str, str]]) -> None:
    found = [Finding("GP1", name, Severity.ERROR, text, Span(file, 1, 1, 1, 2)) for name, file, text in texts]
    shown = findings_github(found)
    assert len(shown.splitlines()) == len(texts) + 1 + (len(texts) > MOST_ANNOTATIONS)
    read_back = commands(shown)
    assert len(read_back) == min(len(texts), MOST_ANNOTATIONS)
    assert not re.search(r"^(?!::).*##\[", shown, re.MULTILINE)
    for (_, properties, message), (name, file, text) in zip(read_back[: MOST_ANNOTATIONS - 1], texts, strict=False):
        assert message == "\n".join(map(printable, text.split("\n")))
        assert properties["title"] == printable(f"GP1 {name}")
        assert properties.get("file", "") == printable(file)


def annotated(plan: Plan, *, impact: Impact | None = None, places: Mapping[str, Span] | None = None) -> str:
    return plan_github(plan, plan_answer(plan, impact=impact), impact=impact, guard_places=places)


def test_a_plan_says_guards_violations_and_what_gets_worse() -> None:
    place = Span("policies/guards.yaml", 5, 3, 5, 10)
    text = annotated(full_plan(), impact=full_impact(), places={"no-shrink": place})
    found = commands(text)
    level, properties, message = found[0]
    assert (level, properties["file"], properties["line"]) == ("error", "policies/guards.yaml", "5")
    assert message == "size large of shared: 8 → 3, more than 10 %\noverride it with --allow no-shrink, if you must"
    titles = [properties["title"] for _, properties, _ in found]
    assert titles[0] == "guard no-shrink fails"
    assert "guard disks-stay is overridden" in titles
    web = next(item for item in found if item[1]["title"] == "web newly violates the policy")
    assert web[1]["file"] == "policies/groups.yaml"
    assert web[2] == "memory-size 96G is 32G above 64G; disk-size of disk 1 5G is 5G below 10G"
    node = next(item for item in found if item[1]["title"] == "node1 newly violates the policy")
    assert node[2].startswith("25 virtual CPUs in use, 16 allowed: 8 CPUs times vcpu-ratio 2; 66 spindles in use")
    assert "Capacity" in titles
    assert "guard survive" not in text
    unknown = next(message for _, properties, message in found if properties["title"] == "Not everything was looked at")
    assert unknown.startswith("not known for group remote: no measured memory\n")
    verdict = "; ".join(("Not to be applied: 1 guard of 3 fails", *unknown.splitlines()))
    assert text.splitlines()[-1] == f"{verdict} (7 changes in 2 steps)"


def test_hostile_names_of_a_plan_stay_in_their_lines() -> None:
    plain = annotated(full_plan(), impact=full_impact())
    wild = annotated(full_plan(hostile), impact=full_impact(hostile))
    assert len(wild.splitlines()) == len(plain.splitlines())
    assert len(commands(wild)) == len(commands(plain))


def test_a_plan_without_a_change_says_so_and_no_more() -> None:
    assert annotated(empty_plan(), impact=full_impact()) == ("No changes: the cluster is what the policy declares\n")
    refused = replace(empty_plan(), findings=(finding(Severity.ERROR),))
    assert commands(annotated(refused))[0][0] == "error"
