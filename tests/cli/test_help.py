"""Help: of all verbs and of each, on a terminal of 80 columns; and what was meant by names that nobody knows."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from gpolicy.cli.app import GROUPS, VERBS, app, explained
from gpolicy.data import read_data
from gpolicy.ganeti.releases import VERSIONS
from gpolicy.guessing import closest, did_you_mean, did_you_mean_one_of
from tests.cli.command_line import ROOT, STATE, gpolicy, gpolicy_child

SNAPSHOT = f"snapshot:{ROOT / 'policies' / 'two-groups.snapshot.json'}"
POLICY = ROOT / "policies" / "two-groups"


@pytest.mark.parametrize("arguments", [["help"], ["--help"], ["-h"]])
def test_the_help_has_a_whole_line_on_each_verb(arguments: list[str]) -> None:
    done = gpolicy(*arguments, env={"COLUMNS": "80"})
    lines = done.stdout.splitlines()
    assert done.returncode == 0
    assert "..." not in done.stdout.partition("\nBegin:")[2]
    assert all(len(line) <= 80 for line in lines)
    below = [line for line in lines[lines.index("Begin:") :] if line]
    assert [line.removesuffix(":") for line in below if not line.startswith(" ")] == list(GROUPS)
    assert [line.split()[0] for line in below if line.startswith(" ")] == [*VERBS, "help"]


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_verb_fits_80_columns(verb: str) -> None:
    done = gpolicy("help", verb, env={"COLUMNS": "80"})
    assert (done.returncode, done.stdout) == (0, gpolicy(verb, "--help", env={"COLUMNS": "80"}).stdout)
    assert f"gpolicy {verb}" in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines())


def test_each_option_says_what_it_is_for_and_no_text_is_of_none() -> None:
    tree: Any = get_command(app)
    given = {verb: {item.name: item.help for item in explained(tree.get_command(None, verb)).params} for verb in VERBS}
    assert [(verb, name) for verb, texts in given.items() for name, text in texts.items() if not text] == []
    texts = read_data("options.toml")
    several = texts["several_verbs"]
    of_verbs = {verb: own for verb, own in texts.items() if own is not several}
    assert [(verb, name) for verb, own in of_verbs.items() for name in own if name not in given[verb]] == []
    users = {
        name: [verb for verb, own in given.items() if name in own.keys() - texts.get(verb, {})] for name in several
    }
    assert [name for name, verbs in users.items() if len(verbs) < 2] == []


def test_the_own_options_of_a_verb_come_before_those_that_it_shares() -> None:
    text = gpolicy("help", "plan", "--all").stdout
    assert text == gpolicy("plan", "--help", "--all").stdout
    places = [
        text.index(f"\n  {option}") for option in ("-s, --state", "--save", "-o, --output", "--with", "--rapi-ca")
    ]
    assert places == sorted(places)


def test_rare_options_are_named_only() -> None:
    text = gpolicy("help", "plan").stdout
    assert "\n  --with" not in text
    assert "  What if        --with, --without, " in text


@pytest.mark.parametrize("verb", VERBS)
def test_the_examples_are_command_lines(verb: str) -> None:
    tree: Any = get_command(app)
    for example in read_data("reference.toml")["examples"].get(verb, ()):
        first, *words = shlex.split(example)
        assert first == verb
        assert tree.get_command(None, verb).make_context(verb, words).params


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["evacuate", "default"], "write `--group default`"),
        (["capacity", "memory=61G", "disk=1T"], "is it a size? `gpolicy place memory=4G disk=20G` says"),
        (["place", "web1.example.org"], "it is an instance; one more of its size is `memory=8G vcpus=3 disks=40G`"),
    ],
)
def test_a_word_of_another_kind_gets_the_words_for_it(arguments: list[str], hint: str) -> None:
    done = gpolicy(*arguments, "-s", SNAPSHOT)
    assert done.returncode == 3
    assert done.stderr.splitlines()[1].startswith(f"  {hint}")


def test_the_version_says_what_counts_and_what_is_known() -> None:
    told = gpolicy_child("--version").stdout
    assert gpolicy("--no-pager", "--version").stdout == told
    first, *others = told.splitlines()
    assert first.startswith("gpolicy ")
    known = dict(line.split(": ", 1) for line in others)
    assert known.keys() == {"engine", "Python", "Ganeti"}
    assert known["engine"] == "compiled"
    assert known["Ganeti"].split(", ") == list(VERSIONS)


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["chek"], "check"),
        (["help", "plann"], "plan"),
        (["plan", "--stat", STATE], "--state"),
        (["plan", POLICY, "-s", SNAPSHOT, "--alow", "no-shrink"], "--allow"),
        (["plan", POLICY, "-s", SNAPSHOT, "--allow", "no-shrnk"], "no-shrink"),
        (["plan", POLICY, "-s", "snapshto:x"], "snapshot:"),
        (["plan", POLICY, "-s", SNAPSHOT, "-f", "markdwn"], "markdown"),
        (["schema", "NodeGruop"], "NodeGroup"),
        (["explain", "spec-overlapp"], "spec-overlap"),
        (["capacity", "-s", SNAPSHOT, "-g", "dedicatd"], "dedicated"),
        (["capacity", "-s", SNAPSHOT, "-t", "dbrd"], "drbd"),
        (["place", "-s", SNAPSHOT, "memory=1G", "vcpus=1", "disk=1G", "group=defualt"], "default"),
        (["place", "-s", SNAPSHOT, "-p", POLICY, "quater"], "quarter"),
        (["place", "-s", SNAPSHOT, "memory=1G", "vcpus=1", "disk=1G", "nodes=node1.exampel.org"], "node1.example.org"),
        (["place", "-s", SNAPSHOT, "memroy=1G"], "memory"),
        (["place", "-s", SNAPSHOT, "-p", POLICY, "quarter:mx"], "quarter:max"),
        (["evacuate", "-s", SNAPSHOT, "nod1"], "node1.example.org"),
        (["capacity", "-s", SNAPSHOT, "--with", "2x like:nod1"], "node1.example.org"),
        (
            ["capacity", "-s", f"snapshot:{ROOT}/policies/two-groups.snapshto.json"],
            f"{SNAPSHOT.removeprefix('snapshot:')}",
        ),
        (["capacity", "-s", SNAPSHOT, "--weight", "n1_count=2"], "n1_cnt"),
        (["suggest", "-s", SNAPSHOT, "-g", "Spare"], "spare"),
    ],
)
def test_every_name_is_guessed(arguments: list[str | Path], meant: str) -> None:
    done = gpolicy(*arguments)
    assert done.returncode == 3
    assert done.stderr.splitlines()[1] == f"  Did you mean `{meant}`?"


@pytest.mark.parametrize("arguments", [["plan", "--save"], ["place"], ["plan", "--budget", "much"], ["init", "a", "b"]])
def test_a_wrong_command_line_leads_to_the_help_of_its_verb(arguments: list[str]) -> None:
    assert f"`gpolicy help {arguments[0]}`" in gpolicy(*arguments).stderr


def test_a_guess_is_of_the_closest_word() -> None:
    known = ("node-group", "node-set", "Cluster")
    assert closest("NODE_GROUP", known) == "node-group"
    assert closest("cluser", known) == "Cluster"
    assert closest("waiver", known) is None
    assert closest("shared", ["spare", "gold"]) is None
    assert closest("halve", ["full", "half"]) == "half"
    assert closest("halves", ["full", "half", "quarter"]) == "half"
    assert closest("waives", ["wait", "quarter"]) is None
    assert closest("vcpu_rato", ["spindle-ratio", "vcpu-ratio"]) == "vcpu-ratio"
    assert did_you_mean("waiver", known, "look it up") == "look it up"
    assert did_you_mean_one_of("x", "groups", []) == "there are no groups"
    assert did_you_mean_one_of("x", "groups", [f"group-{n:02}" for n in range(25)]).endswith(" and 5 more")
    assert closest("group-1", [f"group-{n}" for n in range(2000)]) is None  # among so many a guess means nothing


@pytest.mark.parametrize(
    ("verb", "meant"),
    [("validate", "check"), ("import", "adopt"), ("Lint", "check"), ("diff", "plan"), ("chekc", "check")],
)
def test_what_other_programs_call_a_verb_is_guessed(verb: str, meant: str) -> None:
    done = gpolicy(verb)
    assert done.returncode == 3
    assert done.stderr == f"gpolicy: there is no verb `{verb}`\n  Did you mean `{meant}`?\n"


def test_no_guess_is_a_verb() -> None:
    elsewhere = read_data("reference.toml")["called_elsewhere"]
    assert elsewhere.keys() <= VERBS.keys()
    assert VERBS.keys().isdisjoint(word for words in elsewhere.values() for word in words)


def test_an_argument_too_many_may_be_meant_as_the_group() -> None:
    done = gpolicy("suggest", "default", "-s", SNAPSHOT)
    assert (done.returncode, done.stdout) == (3, "")
    assert "too many arguments: `default`" in done.stderr
    assert "Write `--group default`" in done.stderr
    assert "`gpolicy help plan`" in gpolicy("plan", POLICY, POLICY).stderr
