from __future__ import annotations

import json

import jsonschema
import pytest

from tests.cli.command_line import ROOT, gpolicy

STATE = f"snapshot:{ROOT / 'policies' / 'two-groups.snapshot.json'}"
POLICY = str(ROOT / "policies" / "two-groups")
SCHEMA = json.loads((ROOT / "schemas" / "output" / "place.json").read_text())


def test_the_answer_comes_first_and_the_exit_code_agrees() -> None:
    done = gpolicy("place", "--state", STATE, "memory=1G", "vcpus=1", "disk=20G", "--details")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(
        "Where an instance goes on cluster ganeti.example.org\n"
        "new (1G memory, 1 CPU, 20G disk, drbd) goes to node2.example.org / node1.example.org in group default\n"
    )
    assert "ipolicy.minmax (6): no size of the policy allows such an instance" in done.stdout


def test_the_verdict_says_what_ganeti_refuses_though_hail_accepts() -> None:
    done = gpolicy(
        "place", "--state", STATE, "name=build1.example.org", "memory=1G", "vcpus=1", "disk=20G", "--details"
    )
    verdict = done.stdout.splitlines()[1]
    assert (
        "goes to node2.example.org / node1.example.org in group default, says hail, but Ganeti would refuse" in verdict
    )
    assert "an instance build1.example.org exists already" in verdict
    assert done.returncode == 1


@pytest.mark.parametrize("words", [[POLICY], [POLICY, "half"], ["half", POLICY]])
def test_a_policy_among_the_words_is_told_its_option(words: list[str]) -> None:
    done = gpolicy("place", "--state", STATE, *words)
    assert done.returncode == 3
    assert (
        f"this is a directory, not a word of the request\n  a policy follows --policy or -p: write -p {POLICY}"
        in done.stderr
    )


def test_a_named_size_under_a_policy() -> None:
    done = gpolicy("place", "--state", STATE, "quarter", "group=dedicated", "--policy", POLICY, "--format", "json")
    data = json.loads(done.stdout)
    jsonschema.validate(data, SCHEMA)
    assert data["metric"]["name"] == "lost-allocations"
    assert data["metric"]["sizes"] == ["full", "half", "quarter"]
    assert data["ok"] is (done.returncode == 0)


@pytest.mark.parametrize("words", [["memory=1G"], ["memory=1G", "disk=5G", "template=plain"], ["memory=999G"]])
def test_json_is_as_its_schema_says(words: list[str]) -> None:
    done = gpolicy("place", "--state", STATE, "--format", "json", *words)
    data = json.loads(done.stdout)
    jsonschema.validate(data, SCHEMA)
    assert (done.returncode == 0) is data["ok"] is bool(data["nodes"])


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_a_group_that_was_not_tried_is_named_once(form: str) -> None:
    done = gpolicy("place", "--state", STATE, "memory=1G", "vcpus=1", "disk=20G", "--format", form, "--details")
    assert "group spare was not tried: error Not enough online nodes" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["size=4G"], "unknown key 'size'"),
        (["memory="], "has no value"),
        (["memory=much"], "memory=much: not a size"),
        (["vcpus=1.5"], "not a whole number"),
        (["vcpus=99999999999"], "not a whole number of at most nine digits"),
        (["mem=4G"], "  Did you mean `memory`?"),
        (
            ["memory=4G,disk=3G"],
            "memory=4G,disk=3G: not a size: write a number of MiB, or a number with M, G or T\n  one word",
        ),
        (["disk=1G:x"], "a disk is SIZE or SIZE:SPINDLES"),
        (["missing.yaml"], "missing.yaml: No such file"),
        (["enormous"], "there is no size 'enormous'"),
        (
            ["half"],
            "in group dedicated: size 1 (memory 61G to 250G, disk 1T to 12T); in group default, spare: size 1 (memory",
        ),
        (["half"], "None has a name: a policy gives one (name: half, beside min and max), --policy PATH names it"),
        (["half", "group=default"], "'half' in group default\n  the sizes are, in group default: size 1 (memory"),
        (
            ["half", "--policy", POLICY, "group=default"],
            "there is no group 'default'\n  the groups are dedicated, shared",
        ),
        (["tiny", "--policy", POLICY], "the sizes are, in group dedicated: full ("),
        (
            ["half", "--policy", POLICY, "group=shared"],
            "'half' in group shared\n  group dedicated has it; the sizes are,",
        ),
        (["memory=4G", "drbd"], "there is no size 'drbd'\n  Did you mean `template=drbd`?"),
        (["half", "drbd"], "drbd: size is given twice\n  Did you mean `template=drbd`?"),
        (["memory=4G", "dedicated"], "  Did you mean `group=dedicated`?"),
        (["memory=4G", "node1.example.org"], "  Did you mean `nodes=node1.example.org`?"),
        (["disk=10G:0"], "disks=10G:0: a disk needs at least 1 spindle"),
        (["disk=0x10G"], "disks=0x10G: not a disk"),
        (["nodes=node1.example.org,node1.example.org"], "node node1.example.org is named twice"),
        (["tags=,"], "tags=,: empty before or after a comma"),
        ([""], "gpolicy: '': has no value"),
        (["memory=1G", "group=none"], "there is no group 'none'"),
    ],
)
def test_an_invalid_request_is_one_line_and_exit_code_3(words: list[str], message: str) -> None:
    done = gpolicy("place", "--state", STATE, *words)
    assert (done.returncode, done.stdout) == (3, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_sizes_are_for_people_and_exact_where_they_are_compared() -> None:
    done = gpolicy("place", "--state", STATE, "memory=20004M", "vcpus=1", "disk=3x1G", "template=drbd", "--details")
    assert done.stdout.splitlines()[1].startswith("new (20004M ≈ 19.5G memory, 1 CPU, 3 times 1G disk, drbd) goes to ")
    possible = done.stdout.partition("disk left\n")[2].partition("\n\n")[0]
    assert "T\n" in possible
    assert "M\n" not in possible
    assert "memory-size 20004M (61G to 250G), disk-size 1G (1T to 12T)" in done.stdout
    data = json.loads(gpolicy("place", "--state", STATE, "-f", "json", "memory=20004M", "vcpus=1", "disk=1G").stdout)
    assert data["instance"]["memory"] == 20004


def test_a_name_in_use_is_noted_beside_hails_answer() -> None:
    done = gpolicy(
        "place", "--state", STATE, "memory=1G", "vcpus=1", "disk=1G", "name=search1.example.org", "--details"
    )
    assert done.returncode == 1
    assert "note: an instance search1.example.org exists already: Ganeti refuses a second one" in done.stdout


def test_reasons_of_htools_are_explained_with_a_way_out() -> None:
    state = f"snapshot:{ROOT / 'policies' / 'two-groups.snapshot.json'}"
    said = gpolicy("place", "-s", state, "memory=300G", "vcpus=2", "disk=1G", "--details").stdout
    assert "[FailDisk, FailMem]" in said
    assert "\nFailMem: htools' word " in said
    assert "\nFailDisk: htools' word " in said
    assert "FailTags" not in said
    assert "spindle-use unknown (1 to 12)" in said
    assert "\nspindle-use unknown: " in said
    assert "write disk=SIZE:SPINDLES\n" in said
    given = gpolicy("place", "-s", state, "memory=300G", "vcpus=2", "disk=1G:1", "--details").stdout
    assert "spindle-use unknown" not in given


def test_a_refusal_says_what_would_fit() -> None:
    words = ["memory=40G", "vcpus=8", "disk=200G", "group=default"]
    done = gpolicy("place", "--state", STATE, *words, "--details")
    assert "refused by ipolicy.minmax (12 candidates); memory=32G would fit" in done.stdout.splitlines()[1]
    assert "\n  memory=32G  node1.example.org / node3.example.org\n" in done.stdout
    data = json.loads(gpolicy("place", "--state", STATE, *words, "--format", "json").stdout)
    jsonschema.validate(data, SCHEMA)
    assert data["instead"] == [{"words": "memory=32G", "nodes": ["node1.example.org", "node3.example.org"]}]
    fits = gpolicy("place", "--state", STATE, *words, "--format", "json", "--ignore-ipolicy")
    assert json.loads(fits.stdout)["instead"] is None


@pytest.mark.parametrize(
    ("spec", "end", "size"),
    [
        ("1", "smallest", "128M"),
        ("1:min", "smallest", "128M"),
        ("size 1:max", "largest", "32G"),
        ("pair 1:max", "largest", "32G"),
        ("1:max", "largest", "32G"),
    ],
)
def test_a_spec_stands_for_its_minimum_or_its_maximum(spec: str, end: str, size: str) -> None:
    done = gpolicy("place", "--state", STATE, spec, "group=default")
    assert f"\nsize 1 at its {end} ({size} memory, " in done.stdout


def test_all_means_all_clusters() -> None:
    done = gpolicy("place", "memory=1G", "--all")
    assert "no settings file names clusters" in done.stderr


def test_the_group_can_be_an_option() -> None:
    done = gpolicy("place", "--state", STATE, "memory=1G", "-g", "dedicated", "--details")
    assert "group default was not tried: not requested" in done.stdout
    twice = gpolicy("place", "--state", STATE, "memory=1G", "group=default", "--group", "dedicated", "--details")
    assert "group is given twice" in twice.stderr


def test_the_first_part_of_a_nodes_name_is_enough() -> None:
    words = ("place", "memory=1G", "vcpus=1", "disk=1G", "template=drbd", "--state", STATE, "--format", "json")
    short = gpolicy(*words, "nodes=node3,node4")
    full = gpolicy(*words, "nodes=node3.example.org,node4.example.org")
    assert short.stdout == full.stdout
    assert json.loads(short.stdout)["nodes"] == ["node3.example.org", "node4.example.org"]
