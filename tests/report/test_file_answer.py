"""`gpolicy show FILE`: a plan, a remedy, a snapshot and a journal in any form, without the cluster."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpolicy.cluster.record import Record
from gpolicy.errors import InputError
from gpolicy.report.answer_file import read_answer
from gpolicy.report.forms import Display, render
from tests.cli.command_line import ROOT, gpolicy

SNAPSHOT = ROOT / "policies/two-groups.snapshot.json"
STATE = ("--state", f"snapshot:{SNAPSHOT}")
POLICY = ROOT / "policies/two-groups"
MADE: dict[str, tuple[str | Path, ...]] = {
    "plan": ("plan", POLICY, *STATE),
    "remedy": ("remedy", POLICY, *STATE),
    "evacuation": ("evacuate", "node2", *STATE),
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    files = {name: tmp_path_factory.mktemp("kept") / f"{name}.json" for name in MADE}
    for name, words in MADE.items():
        assert gpolicy(*words, "--save", files[name]).returncode in (0, 1)
    return files


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("form", [(), ("--details",), ("-f", "markdown"), ("-f", "html"), ("-q",)])
def test_a_file_shows_what_its_verb_showed(name: str, form: tuple[str, ...], kept: dict[str, Path]) -> None:
    told, shown = (gpolicy(*words, *form).stdout for words in (MADE[name], ("show", kept[name])))
    rows = None if form else 6  # one line of a screen says what was checked
    assert _timeless(shown)[:rows] == _timeless(told)[:rows]
    assert "as the file says" in shown or form == ("-q",)


def _timeless(text: str) -> list[str]:
    """Return lines without those that say when something was made, and what to do next."""
    left_out = ("made 20", "next: add", "as the file says")
    return [line for line in text.splitlines() if line and not any(words in line for words in left_out)]


@pytest.mark.parametrize("name", MADE)
def test_as_json_a_file_is_what_its_verb_answers(name: str, kept: dict[str, Path]) -> None:
    whole = json.loads(kept[name].read_text(encoding="utf-8"))
    del whole["answer"]
    assert json.loads(gpolicy("show", kept[name], "-f", "json").stdout) == whole


def test_a_snapshot_is_shown_as_the_values_of_the_cluster() -> None:
    done = gpolicy("show", SNAPSHOT)
    assert done.stdout.splitlines()[:2] == [
        "Cluster ganeti.example.org",
        "3 groups, 8 nodes, 20 instances; Ganeti 3.0.2",
    ]
    assert "group/spare: alloc_policy unallocable" in done.stdout
    details = gpolicy("show", SNAPSHOT, "--details").stdout
    inherited = [line.split() for line in details.splitlines() if line.split()[:1] == ["ipolicy.vcpu-ratio"]]
    assert ["ipolicy.vcpu-ratio", "4", "inherited", "from", "cluster"] in inherited
    assert gpolicy("show", SNAPSHOT, "-f", "json").stdout == SNAPSHOT.read_text(encoding="utf-8")


DAMAGED: dict[str, Any] = {
    "no mapping": [],
    "no title": {"is": "Answer", "verb": "plan", "name": "x", "verdict": "fine"},
    "another kind": {"is": "Section", "key": "x", "title": "y"},
    "a wrong type": {"is": "Answer", "verb": "plan", "title": "x", "name": "x", "verdict": 5},
    "a tone that is none": {"is": "Answer", "verb": "p", "title": "x", "name": "x", "verdict": "v", "tone": "PINK"},
    "a picture of nothing": {
        "is": "Answer",
        "verb": "plan",
        "title": "x",
        "name": "x",
        "verdict": "v",
        "sections": [
            {"is": "Section", "key": "k", "title": "t", "parts": [{"is": "Picture", "macro": "nodes", "draw": [{}]}]}
        ],
    },
}


@pytest.mark.parametrize("answer", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_report_is_refused(answer: Any, kept: dict[str, Path], tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(json.loads(kept["plan"].read_text(encoding="utf-8")) | {"answer": answer}))
    done = gpolicy("show", file, "-f", "html")
    assert (done.returncode, done.stdout) == (3, "")
    assert f"{file}: answer" in done.stderr
    assert len(done.stderr.splitlines()) <= 2


def test_a_report_that_does_not_fit_the_plan_is_refused(kept: dict[str, Path], tmp_path: Path) -> None:
    whole = json.loads(kept["plan"].read_text(encoding="utf-8"))
    assert whole["answer"]["verdict"].startswith("Not to be applied: ")
    whole["answer"]["verdict"] = "Can be applied"
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(whole))
    done = gpolicy("show", file, "-q")
    assert (done.returncode, done.stdout) == (3, "")
    assert "its report says 'Can be applied', but the plan is: Not to be applied: 1 guard of 4 fails" in done.stderr


def test_a_changed_plan_is_refused_and_one_without_a_report_says_so(kept: dict[str, Path], tmp_path: Path) -> None:
    whole = json.loads(kept["plan"].read_text(encoding="utf-8"))
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(whole | {"steps": whole["steps"][1:]}))
    assert "the file was changed after the plan was made" in gpolicy("show", file).stderr
    del whole["answer"]
    file.write_text(json.dumps(whole))
    assert "its cost is not in the file" in gpolicy("show", file).stdout.splitlines()[1]
    file.write_text("{}")
    assert gpolicy("show", file).returncode == 3


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each place in a JSON value: what holds it, and its key."""
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from _places(value[key])


@pytest.mark.parametrize("name", MADE)
def test_whatever_is_changed_in_a_report_it_is_refused_or_shown(name: str, kept: dict[str, Path]) -> None:
    whole = json.loads(kept[name].read_text(encoding="utf-8"))["answer"]
    chance = random.Random(name)  # noqa: S311
    refused = 0
    for _ in range(120):
        damaged = json.loads(json.dumps(whole))
        for holder, key in chance.sample(list(_places(damaged)), 2):
            holder[key] = chance.choice(["x", "Name", 5, -1, 1e300, None, True, [], {}, [[1]], {"is": "Table"}])
        try:
            answer = read_answer(Record.of(damaged, "it"))
        except InputError:
            refused += 1
            continue
        for form in ("text", "markdown", "html"):
            assert render(answer, Display(form=form, details=chance.random() < 0.5))
    assert refused > 0
