"""`gpolicy remedy`: its forms, what its JSON promises, and the script that it writes."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from tests.cli.command_line import ROOT, gpolicy

SNAPSHOT = ("--state", f"snapshot:{ROOT / 'policies' / 'two-groups.snapshot.json'}")
POLICY = ROOT / "policies" / "two-groups"
SCHEMA = json.loads((ROOT / "schemas/output/remedy.json").read_text(encoding="utf-8"))
SAID = "5 moves, 1780G to copy, cure 5 of 6 faults"

GNT = """#!/bin/sh
# a cluster whose instances are files: what gnt-instance would do to them
cd "$INSTANCES"
program=$(basename "$0")
case "$program $1" in
  "gnt-group "* | "gnt-node "* | "gnt-cluster list-tags") cat "../$program $*" 2>/dev/null; exit 0 ;;
esac
[ "$program" = gnt-cluster ] && { printf 'Cluster name: ganeti.example.org\\nCluster UUID: %s\\n' "$UUID"; exit; }
verb=$1
for name do :; done
read -r primary secondary < "$name"
[ "$(cat stuck 2>/dev/null)" != "$verb" ] || exit 1
case "$verb" in
  list) for name do :; done; printf '%s/%s\\n' "$primary" "$secondary" ;;
  migrate | failover) echo "$secondary $primary" > "$name" ;;
  replace-disks) echo "$primary $3" > "$name" ;;
  move) echo "$4" > "$name" ;;
esac
"""


@cache
def answered(*words: str, source: tuple[str, str] = SNAPSHOT) -> dict[str, object]:
    done = gpolicy("remedy", *words, *source, "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    data: dict[str, object] = json.loads(done.stdout)
    Draft7Validator(SCHEMA).validate(data)
    assert {*data, "answer"} == set(SCHEMA["properties"])
    return data


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plan of the policy, whose guards fail."""
    file = tmp_path_factory.mktemp("planned") / "plan.json"
    assert gpolicy("plan", POLICY, *SNAPSHOT, "--save", file, "--details").returncode == 1
    return file


@pytest.fixture
def plan(planned: Path, tmp_path: Path) -> Path:
    """A plan of one's own."""
    return Path(shutil.copy(planned, tmp_path))


@pytest.mark.parametrize("words", [(), (str(POLICY),), (str(POLICY), "--lost", "node1")])
def test_the_json_is_what_the_schema_promises(words: tuple[str, ...]) -> None:
    answered(*words)


def test_a_score_that_is_no_number_is_null_and_a_command_that_only_rapi_has(tmp_path: Path) -> None:
    state = json.loads((ROOT / "policies" / "two-groups.snapshot.json").read_text(encoding="utf-8"))
    state["nodes"]["node8.example.org"]["resources"]["cpu_total"] = 0
    state["instances"]["web1.example.org"] |= {"minmem": 17, "maxmem": 17}  # the command line rounds sizes up to 4M
    file = tmp_path / "state.json"
    file.write_text(json.dumps(state), encoding="utf-8")
    answer: dict[str, Any] = answered(str(POLICY), source=("--state", f"snapshot:{file}"))
    assert {step["score"] for step in answer["steps"]} == {None}
    back = {item["instance"]: item["back"] for item in answer["sizes"]}["web1.example.org"]
    assert [(command["argv"], command["rapi"]["body"]) for command in back] == [
        (None, {"beparams": {"minmem": 17, "maxmem": 17}})
    ]


def test_the_text_shows_a_command_that_only_rapi_has() -> None:
    state = ROOT / "tests" / "data" / "allocator" / "asked-by-score.data"
    assert "RAPI only: PUT /2/instances/" in gpolicy("remedy", "--state", f"text:{state}").stdout


def test_the_text_says_what_is_cured_and_what_is_left() -> None:
    done = gpolicy("remedy", POLICY, *SNAPSHOT, "--details")
    assert SAID in done.stdout
    assert "gnt-instance replace-disks -n node1.example.org warehouse.example.org" in done.stdout
    assert "3 instances of group shared have the tag, for 2 values of rack" in done.stdout


def test_a_plan_has_the_remedy_of_its_policy(plan: Path) -> None:
    one, other = answered(str(plan)), answered(str(POLICY))
    assert one["steps"] == other["steps"]
    assert one["left"] == other["left"]
    assert one["sizes"] == other["sizes"]  # with the names of spec pairs, which no state has
    assert "(small)" in gpolicy("remedy", plan, *SNAPSHOT, "--details").stdout
    stops = [note for note in one["notes"] if note.startswith(f"no move cures what stops {plan}, ")]  # type: ignore[attr-defined]
    failed = [guard for guard in json.loads(plan.read_text(encoding="utf-8"))["guards"] if not guard["ok"]]
    assert len(stops) == len(failed) > 0
    assert all(guard["name"] in note for guard, note in zip(failed, stops, strict=True))


@pytest.mark.parametrize(
    ("name", "uuid", "said"),
    [
        (
            "other.example.org",
            None,
            "is a plan for cluster other.example.org: another cluster answers: ",
        ),
        ("ganeti.example.org", "a-b-c", "another cluster with the name ganeti.example.org answers: its UUID is "),
    ],
)
def test_a_plan_for_another_cluster_is_refused(name: str, uuid: str | None, said: str, plan: Path) -> None:
    data = json.loads(plan.read_text(encoding="utf-8"))
    plan.write_text(json.dumps({**data, "cluster": name, "cluster_uuid": uuid}), encoding="utf-8")
    done = gpolicy("remedy", plan, *SNAPSHOT)
    assert (done.returncode, done.stdout) == (3, "")
    assert said in done.stderr


def test_a_saved_remedy_is_the_json_and_says_how_it_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "remedy.json"
    done = gpolicy("remedy", POLICY, *SNAPSHOT, "--save", file, "--format", "json")
    assert done.returncode == 0, done.stderr
    kept = json.loads(file.read_text(encoding="utf-8"))
    assert kept.pop("answer")["verb"] == "remedy"
    assert kept == answered(str(POLICY))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    *_, wrote, said = gpolicy("remedy", POLICY, *SNAPSHOT, "--save", file).stdout.splitlines()
    assert wrote == f"wrote {file}: gpolicy show {file} shows it again"
    assert said == f"next once the policy holds: gpolicy apply {file} --to DST --job-timeout 32400"


def test_a_script_without_a_policy_waits_for_none(tmp_path: Path) -> None:
    script = tmp_path / "remedy.sh"
    done = gpolicy("remedy", *SNAPSHOT, "--script", script)
    assert done.stdout.endswith(f"wrote {script}: read it, and run it on the master of the cluster\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--rate", "fast"), "--rate 'fast': not a size"),
        (("--rate", "0"), "at least 1M a second"),
        (("--script", "x.sh", "--offline", "node1"), "not for a supposed one"),
        (("--script", "x", "--save", "x"), "x is named twice: it would be overwritten"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(words: tuple[str, ...], said: str) -> None:
    done = gpolicy("remedy", *SNAPSHOT, *words)
    assert (done.returncode, done.stdout) == (3, "")
    assert said in done.stderr


@pytest.mark.parametrize("words", [("plan",), ("remedy",), ("remedy", "--script", "x.sh")])
def test_what_is_read_is_not_overwritten(words: tuple[str, ...], tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("gpolicy: v1\nkind: Cluster\nname: ganeti.example.org\n", encoding="utf-8")
    before = policy.read_bytes()
    done = gpolicy(*words, policy, *SNAPSHOT, "--save", f"{tmp_path}/../{tmp_path.name}/policy.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert "is named twice: it would be overwritten" in done.stderr
    assert policy.read_bytes() == before


@pytest.mark.parametrize("verb", ["plan", "remedy", "suggest"])
def test_a_file_called_like_a_report_gets_nothing_else(verb: str, tmp_path: Path) -> None:
    words = (POLICY,) if verb == "plan" else ()
    done = gpolicy(verb, *words, *SNAPSHOT, "--format", "html", "--save", tmp_path / "page.HTML")
    assert (done.returncode, done.stdout) == (3, "")
    assert "page.HTML: what is written there is no report\n  for the report write `--output html=" in done.stderr
    assert not list(tmp_path.iterdir())


def test_no_plan_is_overwritten_by_what_is_made_of_it(plan: Path) -> None:
    before = plan.read_bytes()
    for words in (("render", plan, "--script"), ("remedy", plan, *SNAPSHOT, "--save")):
        assert "it would be overwritten" in gpolicy(*words, plan).stderr
    assert plan.read_bytes() == before


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("script") / "remedy.sh"
    assert f"wrote {file}" in gpolicy("remedy", POLICY, *SNAPSHOT, "--script", file, "--details").stdout
    return file


@pytest.fixture
def cluster(script: Path, tmp_path: Path) -> Pretended:
    return Pretended(tmp_path, script)


class Pretended:
    """A cluster of files for the script: one for each instance, with its nodes."""

    def __init__(self, folder: Path, script: Path) -> None:
        self.data = answered(str(POLICY))
        self.script, self.instances = script, folder / "instances"
        self.instances.mkdir()
        for program in ("gnt-instance", "gnt-cluster", "gnt-group", "gnt-node"):
            (folder / program).write_text(GNT)
            (folder / program).chmod(0o755)
        self.folder = folder
        for effect in self.data["supposes"]["effects"]:  # type: ignore[index]
            self.make(effect)
        state = json.loads((ROOT / "policies/two-groups.snapshot.json").read_text(encoding="utf-8"))
        for name, item in state["instances"].items():
            (self.instances / name).write_text(" ".join((item["primary_node"], *item["secondary_nodes"])) + "\n")
        uuid = state["cluster"]["identity"]["uuid"]
        self.environ = {"PATH": f"{folder}:{os.environ['PATH']}", "INSTANCES": str(self.instances), "UUID": uuid or ""}

    def make(self, effect: dict[str, Any]) -> None:
        """Let the commands show that a change of the policy was made."""
        level, _, name = effect["object"].partition("/")
        match effect["keys"]:
            case ["tags", tag]:
                question, line = f"gnt-{level} list-tags {name}".strip(), tag
            case ["name"]:
                question, line = "gnt-group list --no-headers -o name", name
            case [("group" | "alloc_policy") as column]:
                question, line = f"gnt-{level} list --no-headers -o {column} {name}", str(effect["after"])
            case _:
                return
        if effect["after"] is not None:
            with (self.folder / question).open("a", encoding="utf-8") as file:
                file.write(f"{line}\n")

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = ["sh", str(self.script), *words]
        return subprocess.run(command, env=self.environ, capture_output=True, text=True, check=False)

    def places(self) -> dict[str, list[str]]:
        return {file.name: file.read_text().split() for file in self.instances.iterdir() if file.name != "stuck"}


def test_the_script_leads_where_the_remedy_says_and_back(cluster: Pretended) -> None:
    before = cluster.places()
    assert stat.S_IMODE(cluster.script.stat().st_mode) & 0o077 == 0
    shown = cluster.run("-n")
    assert (shown.returncode, cluster.places()) == (0, before), shown.stderr
    assert "gnt-instance move -f -n" in shown.stdout
    steps = {step["instance"]: step["nodes_after"] for step in cluster.data["steps"]}  # type: ignore[attr-defined]
    done = cluster.run()
    assert (done.returncode, done.stderr) == (0, "")
    assert cluster.places() == {**before, **steps}
    again = cluster.run()
    assert (again.returncode, cluster.places()) == (0, {**before, **steps})
    assert again.stdout.count("done already") == len(steps)
    back = cluster.run("--back")
    assert (back.returncode, cluster.places()) == (0, before), back.stderr


def test_a_script_waits_for_its_policy(cluster: Pretended) -> None:
    before, shown = cluster.places(), cluster.folder / "gnt-node list-tags node8.example.org"
    shown.unlink()
    with (cluster.folder / "gnt-group list --no-headers -o name").open("a", encoding="utf-8") as file:
        file.write("default\n")
    refused = cluster.run()
    assert (refused.returncode, cluster.places()) == (1, before)
    assert refused.stderr.splitlines() == [
        "  not made: group/default: removed",
        '  not made: node/node8.example.org: tag "rack:b" added',
        f"this script is for the cluster as {POLICY} makes it; these changes of it are not there: nothing was done",
    ]
    assert cluster.run("-n").returncode == 0


def test_a_script_that_fails_goes_on_later_and_leaves_moved_instances_alone(cluster: Pretended) -> None:
    (cluster.instances / "stuck").write_text("replace-disks")
    failed = cluster.run()
    assert failed.returncode == 1
    assert "set 1 failed; the sets after it were not run" in failed.stderr
    (cluster.instances / "stuck").unlink()
    (cluster.instances / "warehouse.example.org").write_text("node8.example.org node1.example.org\n")
    stopped = cluster.run()
    assert stopped.returncode == 1
    assert "warehouse.example.org is on node8.example.org/node1.example.org" in stopped.stderr
    assert cluster.places()["warehouse.example.org"] == ["node8.example.org", "node1.example.org"]


@pytest.mark.parametrize("words", [(), ("--back",)])
def test_a_move_that_stopped_half_way_goes_on_or_back(words: tuple[str, ...], cluster: Pretended) -> None:
    before, stuck = cluster.places(), cluster.instances / "stuck"
    stuck.write_text("migrate")
    assert cluster.run().returncode == 1
    assert cluster.places()["ci1.example.org"] == ["node1.example.org", "node8.example.org"]
    stuck.unlink()
    done = cluster.run(*words)
    assert (done.returncode, done.stderr) == (0, "")
    steps = {step["instance"]: step["nodes_after"] for step in cluster.data["steps"]}  # type: ignore[attr-defined]
    assert cluster.places() == (before if words else {**before, **steps})
