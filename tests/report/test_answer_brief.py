"""The short answer: every verb's on the shipped examples, and what it keeps of long ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial

import pytest

from gpolicy.printable import Tone
from gpolicy.reference.explaining import explain
from gpolicy.report.answer import Answer, Entries, Entry, Figure, Line, Name, Section, Style, Table
from gpolicy.report.answer_brief import COLUMNS, LINES
from gpolicy.report.forms import Display, render
from gpolicy.report.glossary import WORDS
from tests.cli.command_line import ROOT, gpolicy

STATE = ("--state", "snapshot:policies/two-groups.snapshot.json")
POLICIES = (
    *("policies/two-groups", "policies/large-cluster"),
    *(f"policies/design-documents/{name}" for name in ("failure-tags", "migration-tags", "resource-model")),
)
COMMANDS = (
    *((verb, policy, *STATE) for verb in ("plan", "drift", "capacity", "remedy") for policy in POLICIES),
    *((verb, policy) for verb in ("show", "test") for policy in POLICIES),
    ("capacity", "--lost", "node1", *STATE),
    ("place", "memory=2G", "vcpus=1", "disk=20G", *STATE),
    ("place", "memory=40G", "vcpus=8", "disk=200G", "group=default", *STATE),
    ("suggest", *STATE),
    ("suggest", "--group", "dedicated", "--mix", "full=1,half=1,quarter=2", "--empty", *STATE),
    ("size", "policies/two-groups", "-g", "shared", "--want", "10x large:max", "--like", "node4=5000", *STATE),
    ("evacuate", "node1", *STATE),
    ("evacuate", "--group", "default", *STATE),
    ("clusters", "policies/fleet"),
    ("capacity", "policies/two-groups", "--score", "--with", "2x half in dedicated", *STATE),
    ("place", "half", "group=dedicated", "--policy", "policies/two-groups", *STATE),
    ("suggest", "--group", "default", "--real-mix", *STATE),
    ("size", "policies/two-groups", "--group", "shared", *STATE),
)
explained = cache(partial(explain, terms=WORDS))


def brief(answer: Answer, *, quiet: bool = False) -> list[str]:
    return render(answer, Display(quiet=quiet)).splitlines()


def headings_of(sections: Sequence[Section]) -> Iterator[str]:
    for section in sections:
        yield section.title
        for table in section.tables:
            yield from (table.title, *table.headings)
        yield from headings_of(section.sections)


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[Answer]:
    """Return the answers that the test makes."""
    made: list[Answer] = []
    clean = Answer.__post_init__

    def remember(answer: Answer) -> None:
        clean(answer)
        made.append(answer)

    monkeypatch.setattr(Answer, "__post_init__", remember)
    return made


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_answer_fits_on_a_screen_and_explain_knows_its_words(
    command: tuple[str, ...], answers: list[Answer]
) -> None:
    run = gpolicy(*command, cwd=ROOT)
    lines = run.stdout.splitlines()
    assert run.returncode in (0, 1, 2), run.stderr
    if not lines:  # the policy is for another cluster
        assert "GP705" in run.stderr
        return
    assert len(lines) <= LINES + 1, run.stdout  # and the next command
    assert max(map(len, lines), default=0) <= COLUMNS, run.stdout
    verdict = gpolicy(*command, "-q", cwd=ROOT).stdout.splitlines()
    assert verdict
    assert verdict == lines[1 : 1 + len(verdict)]
    for word in {word for answer in answers for word in (*_names(answer), *headings_of(answer.sections))} - {""}:
        assert explained(str(word)), word


def _names(answer: Answer) -> Iterator[str]:
    yield from (figure.name for figure in answer.figures)
    yield from (listing.title for listing in answer.listings)


def an_answer(**parts: object) -> Answer:
    return Answer(verb="plan", title="Plan for", name="c.example.org", verdict="Can be applied", **parts)  # type: ignore[arg-type]


def changes(number: int, below: int = 0) -> Section:
    lines = tuple(Line(f"line {place}", mark="+") for place in range(below))
    entries = [Entry(f"key{place}: 1 → 2", mark="~", under=("group/a", ""), below=lines) for place in range(number)]
    return Section("changes", "What changes", [Entries("change", entries, Style.CHANGES)], summary="group/a")


def test_few_changes_are_shown_with_what_comes_and_goes() -> None:
    lines = brief(an_answer(sections=(changes(2, 2),)))
    assert lines[3:9] == [
        "What changes",
        "  ~ group/a: key0: 1 → 2",
        *_added(2),
        "  ~ group/a: key1: 1 → 2",
        *_added(1),
    ]


def _added(number: int) -> list[str]:
    return [f"      + line {place}" for place in range(number)]


def test_many_changes_have_one_line_each_then_one_an_object() -> None:
    assert "  ~ group/a: key7: 1 → 2: 2 in" in brief(an_answer(sections=(changes(8, 2),)))
    (summed,) = [line for line in brief(an_answer(sections=(changes(40),))) if "key0" in line]
    assert summed.startswith("  ~ group/a: 40 changes: key0, key1, ")
    assert summed.endswith("…")


def test_what_has_no_room_is_counted() -> None:
    rows = [(Name(f"node{number}.example.org"), "1") for number in range(90)]
    table = Table("", "nodes", ("node", "aside"), rows, brief=80, aside=("aside",))
    lines = brief(an_answer(sections=(Section("nodes", "Nodes", [table]),)))
    assert lines[5] == "  node0"  # in the cluster's own domain
    assert len(lines) == LINES
    assert lines[-3] == f"  and {90 - (LINES - 8)} more nodes"
    assert lines[-1] == "Add --details to see all of it."


def test_a_figure_has_the_clauses_that_fit() -> None:
    figure = Figure("capacity", "8 → 5", f"large in shared; {'long ' * 30}")
    assert brief(an_answer(figures=(figure,)))[2] == "  capacity  8 → 5  large in shared"


def test_what_fails_is_said_and_what_passes_is_not() -> None:
    entries = [Entry("fine", mark="passes", tone=Tone.GOOD), Entry("too few", mark="FAILS", tone=Tone.BAD)]
    lines = brief(an_answer(sections=(Section("guards", "Guards", [Entries("guard", entries)]),)))
    assert lines[2:] == ["", "  FAILS too few"]


def test_quiet_is_the_verdict_and_what_is_not_known() -> None:
    assert brief(an_answer(unknown=("2 values were not compared",)), quiet=True) == [
        "Can be applied; 2 values were not compared"
    ]


def test_what_is_not_known_stands_below_a_verdict_that_is_cut() -> None:
    long = Answer(verb="plan", title="Plan", name="", verdict="worse " * 90, unknown=("not known for group gold",))
    lines = brief(long, quiet=True)
    assert len(lines) == 4
    assert lines[2].endswith(" …")
    assert lines[3] == "not known for group gold"


def test_an_answer_without_more_says_no_more() -> None:
    assert brief(an_answer()) == ["Plan for c.example.org", "Can be applied"]
