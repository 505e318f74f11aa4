from __future__ import annotations

from pathlib import Path

import pytest

from gpolicy.cli.options import Shown
from gpolicy.report.forms import ANSWER_FORMS, COMMENT_BUDGET, LEAST_BUDGET, forms_of
from tests.cli.command_line import GOOD, ROOT, gpolicy, policy

EXAMPLE = ROOT / "policies/two-groups"
SNAPSHOT = f"snapshot:{ROOT / 'policies/two-groups.snapshot.json'}"
BAD = GOOD + "nonsense: 1\n"


def test_the_default_budget_is_that_of_a_comment() -> None:
    assert Shown(form="markdown").outputs("plan").display.budget == COMMENT_BUDGET


@pytest.mark.parametrize(
    ("form", "begins"),
    [("markdown", "<!-- gpolicy plan ganeti.example.org -->\n"), ("html", "<!DOCTYPE html>\n"), ("github", "::error ")],
)
def test_a_plan_in_every_form(form: str, begins: str) -> None:
    run = gpolicy("plan", str(EXAMPLE), "-s", SNAPSHOT, "--no-impact", "-f", form)
    assert run.returncode == 1  # a guard that cannot be measured fails
    assert run.stdout.startswith(begins)
    assert run.stderr == ""


def test_a_plan_as_markdown_with_its_impact() -> None:
    run = gpolicy("plan", str(EXAMPLE), "-s", SNAPSHOT, "-f", "markdown", "--budget", "6000")
    assert "| group | size | at its largest | today | after |" in run.stdout
    assert len(run.stdout.encode()) <= 6000
    assert "left out" in run.stdout.lower()


def test_a_check_in_every_form(tmp_path: Path) -> None:
    bad = policy(tmp_path, BAD)
    markdown = gpolicy("check", str(bad), "-f", "markdown")
    assert markdown.returncode == 1
    assert markdown.stdout.startswith("<!-- gpolicy check -->\n")
    assert "- **error** GP0" in markdown.stdout


def test_annotations_name_files_from_the_top_of_the_checkout(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    bad = policy(tmp_path / "below", BAD)
    run = gpolicy("check", bad, "-f", "github", env={"GITHUB_WORKSPACE": str(tmp_path)})
    assert run.stdout.startswith("::error file=below/policy.yaml,line=")
    assert gpolicy("check", bad, "-f", "github", cwd=tmp_path).stdout == run.stdout


def test_capacity_as_markdown() -> None:
    run = gpolicy("capacity", "-s", SNAPSHOT, "-f", "markdown")
    assert run.returncode == 0
    assert run.stdout.startswith("<!-- gpolicy capacity ganeti.example.org -->\n")
    assert "| `default` | drbd | size 1 | 8 | 8 to 10 | 8 | 32G · 8 CPU · 1T | n1-reserve (FailMem) |" in run.stdout


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["check", str(EXAMPLE), "-f", "pdf"], "text, json, markdown, html, concise, github, sarif, junit, gitlab"),
        (["plan", str(EXAMPLE), "-s", SNAPSHOT, "-f", "junit"], "text, json, markdown, html, github"),
        (["capacity", "-s", SNAPSHOT, "-f", "github"], "text, json, markdown, html"),
        (["check", str(EXAMPLE), "-f", "markdown", "--budget", "3999"], f"the minimum is {LEAST_BUDGET}"),
    ],
)
def test_a_format_that_a_verb_lacks_is_refused_at_once(arguments: list[str], word: str) -> None:
    run = gpolicy(*arguments)
    assert run.returncode == 3
    assert run.stdout == ""
    assert word in run.stderr
    assert len(run.stderr.splitlines()) == 2


ANSWERS = (
    ("capacity", ("capacity", "-s", SNAPSHOT), " ganeti.example.org"),
    ("show", ("show", str(EXAMPLE)), ""),
    ("check", ("check", str(EXAMPLE)), ""),
    ("place", (*("place", "-s", SNAPSHOT), "memory=4G", "vcpus=2", "disk=20G"), " ganeti.example.org"),
    ("suggest", ("suggest", "-s", SNAPSHOT), " ganeti.example.org"),
    ("size", ("size", "-g", "default", "-s", SNAPSHOT), " ganeti.example.org"),
    (
        "evacuate",
        ("evacuate", "node2", "--primary-only", "--ignore-soft-errors", "-s", SNAPSHOT),
        " ganeti.example.org",
    ),
    ("remedy", ("remedy", "-s", SNAPSHOT), " ganeti.example.org"),
    ("test", ("test", str(EXAMPLE)), ""),
)


@pytest.mark.parametrize(("verb", "words", "name"), ANSWERS, ids=[verb for verb, _, _ in ANSWERS])
def test_answers_as_markdown_and_as_a_page(verb: str, words: tuple[str, ...], name: str) -> None:
    markdown = gpolicy(*words, "-f", "markdown")
    assert markdown.returncode == 0, markdown.stderr
    assert markdown.stdout.startswith(f"<!-- gpolicy {verb}{name} -->\n### ")
    page = gpolicy(*words, "-f", "html")
    assert page.stdout.startswith("<!DOCTYPE html>\n")
    assert page.returncode == 0
    few = gpolicy(*words, "-f", "markdown", "--budget", "4000")
    assert len(few.stdout.encode()) <= 4000
    assert gpolicy(*words, "-f", "markdown", "--budget", "10").returncode == 3
    refused = gpolicy(*words, "-f", "xml")
    assert refused.returncode == 3
    assert "the formats are text, json, " in refused.stderr


def test_drift_in_the_forms_that_all_verbs_have() -> None:
    markdown, page = (gpolicy("drift", str(EXAMPLE), "-s", SNAPSHOT, "-f", form) for form in ("markdown", "html"))
    assert markdown.returncode == page.returncode == 2
    assert markdown.stdout.startswith("<!-- gpolicy drift ganeti.example.org -->\n### ")
    assert "```diff\n# cluster  last changed no later than 2026-" in markdown.stdout
    assert page.stdout.startswith("<!DOCTYPE html>\n")


@pytest.mark.parametrize(
    "verb", ["check", "show", "plan", "drift", "capacity", "place", "suggest", "size", "evacuate", "remedy", "test"]
)
def test_every_verb_has_the_forms_of_answers_and_its_help_says_so(verb: str) -> None:
    assert set(ANSWER_FORMS) | {"json"} <= set(forms_of(verb))
    shown = gpolicy(verb, "--help", env={"COLUMNS": "200"}).stdout
    assert f"Form of the output: {', '.join(forms_of(verb))}." in " ".join(shown.split())


@pytest.mark.parametrize(
    "verb", ["check", "plan", "capacity", "place", "suggest", "size", "evacuate", "remedy", "test"]
)
def test_a_budget_of_a_form_that_is_never_cut_is_refused(verb: str) -> None:
    words = {
        "place": ["memory=1G"],
        "capacity": [],
        "suggest": [],
        "size": [],
        "evacuate": ["node1"],
        "remedy": [],
    }.get(verb, [str(EXAMPLE)])
    state = [] if verb in ("check", "test") else ["-s", SNAPSHOT]
    for form in ([], ["-f", "json"]):
        done = gpolicy(verb, *words, *state, *form, "--budget", "6000")
        assert (done.returncode, done.stdout) == (3, "")
        name = form[1] if form else "text"
        assert done.stderr.startswith(f"gpolicy: --budget cuts --format markdown only, not {name}\n")
