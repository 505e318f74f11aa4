"""The policy and the state are given in one way to all verbs: PATH or --policy, --state or GPOLICY_STATE."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli import command_line
from tests.cli.command_line import ROOT, Done

POLICY = ROOT / "policies" / "two-groups"
STATE = f"snapshot:{ROOT / 'policies' / 'two-groups.snapshot.json'}"
INSTANCE = ("memory=1G", "vcpus=1", "disk=1G")
OF_A_POLICY: dict[str, list[str]] = {
    "check": [],
    "fmt": ["--check"],
    "show": [],
    "test": [],
    "plan": ["-s", STATE, "--no-impact"],
    "drift": ["-s", STATE],
    "capacity": ["-s", STATE, "-g", "spare"],
}
OF_A_STATE: dict[str, list[str | Path]] = {
    "plan": [POLICY, "--no-impact"],
    "drift": [POLICY],
    "capacity": ["-g", "default"],
    "place": [*INSTANCE, "group=default"],
    "suggest": ["-g", "default"],
    "adopt": ["--save", "adopted"],
    "snapshot": ["--save", "kept.json"],
}


def gpolicy(*words: str | Path, cwd: Path = ROOT, env: dict[str, str] | None = None) -> Done:
    """Run gpolicy at a fixed time: two runs that are compared may be seconds apart."""
    return command_line.gpolicy(*words, cwd=cwd, env={"SOURCE_DATE_EPOCH": "1767225600", **(env or {})})


@pytest.mark.parametrize("verb", OF_A_POLICY)
def test_a_policy_is_an_argument_or_an_option(verb: str, tmp_path: Path) -> None:
    options = OF_A_POLICY[verb]
    by_argument = gpolicy(verb, POLICY, *options)
    assert by_argument.stdout
    for word in ("-p", "--policy"):
        by_option = gpolicy(verb, word, POLICY, *options, cwd=tmp_path)
        assert (by_option.returncode, by_option.stdout) == (by_argument.returncode, by_argument.stdout)
    here = gpolicy(verb, *options, cwd=POLICY)
    if verb != "capacity":  # which without a policy counts on the cluster as it is
        assert here.returncode == by_argument.returncode


@pytest.mark.parametrize("verb", ["show", "test", "plan", "drift", "capacity"])
def test_two_policies_are_refused(verb: str) -> None:
    done = gpolicy(verb, POLICY, "-p", "other", *OF_A_POLICY[verb])
    assert (done.returncode, done.stdout) == (3, "")
    assert "two policies are given" in done.stderr


@pytest.mark.parametrize("verb", ["check", "fmt"])
def test_verbs_that_take_several_policies_take_them_both_ways(verb: str, tmp_path: Path) -> None:
    for name in ("one.yaml", "two.yaml"):
        (tmp_path / name).write_text(f"gpolicy: v1\nkind: Cluster\nname:   {name}\n")
    done = gpolicy(verb, "one.yaml", "-p", "two.yaml", *OF_A_POLICY[verb], cwd=tmp_path)
    both = gpolicy(verb, "one.yaml", "two.yaml", *OF_A_POLICY[verb], cwd=tmp_path)
    assert (done.returncode, done.stdout) == (both.returncode, both.stdout)


@pytest.mark.parametrize("verb", OF_A_STATE)
def test_the_environment_gives_the_state(verb: str, tmp_path: Path) -> None:
    arguments = OF_A_STATE[verb]
    for name in ("option", "variable", "both"):
        (tmp_path / name).mkdir()
    by_option = gpolicy(verb, *arguments, "-s", STATE, cwd=tmp_path / "option")
    by_variable = gpolicy(verb, *arguments, env={"GPOLICY_STATE": STATE}, cwd=tmp_path / "variable")
    following = by_option.stdout.replace(f" --state {STATE} ", " ")  # the next command finds the variable, too
    assert (by_variable.returncode, by_variable.stdout) == (by_option.returncode, following)
    assert by_variable.stderr == f"state: {STATE} (GPOLICY_STATE)\n{by_option.stderr}"
    both = gpolicy(verb, *arguments, "-s", STATE, env={"GPOLICY_STATE": "snapshot:gone"}, cwd=tmp_path / "both")
    assert vars(both) == {**vars(by_option), "args": both.args}


@pytest.mark.parametrize("verb", OF_A_STATE)
@pytest.mark.parametrize("env", [{}, {"GPOLICY_STATE": ""}])
def test_without_a_state_the_ways_to_it_are_shown(verb: str, env: dict[str, str], tmp_path: Path) -> None:
    done = gpolicy(verb, *OF_A_STATE[verb], env=env, cwd=tmp_path)
    assert done.returncode == 3
    for word in ("--state", "GPOLICY_STATE", "ssh://", "snapshot:FILE"):
        assert word in done.stderr


@pytest.mark.parametrize("verb", ["check", "test"])
def test_the_environment_sends_no_check_to_a_cluster(verb: str) -> None:
    plain, done = gpolicy(verb, POLICY), gpolicy(verb, POLICY, env={"GPOLICY_STATE": "snapshot:gone"})
    assert (done.returncode, done.stdout, done.stderr) == (plain.returncode, plain.stdout, plain.stderr)


@pytest.mark.parametrize(
    "twice",
    [
        ["-s", STATE, "--state", STATE],
        ["-f", "json", "--format=text"],
        ["--cpus-after-failure", "--no-cpus-after-failure"],
    ],
)
def test_an_option_with_one_value_is_given_once(twice: list[str], tmp_path: Path) -> None:
    done = gpolicy("capacity", *twice, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert "is given twice" in done.stderr


def test_what_may_be_repeated_may_be(tmp_path: Path) -> None:
    repeated = ["--score", "--score", "--offline", "node1", "--offline", "node2"]
    assert gpolicy("capacity", "-s", STATE, "-g", "default", *repeated, cwd=tmp_path).returncode == 0
