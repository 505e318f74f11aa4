"""`plan` shows what check warns of on the cluster, unless it is accepted; neither exit code nor plan file suffer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command_line import ROOT, gpolicy

EXAMPLE = ROOT / "tests" / "data" / "clusters" / "full"
STATE = f"config:{EXAMPLE / 'config.data'}"
GROUP = "gpolicy: v1\nkind: NodeGroup\nname: default\n"
UNMATCHED = f'{GROUP}nodes: ["nodex*.example.org"]\n'
ACCEPT = '{rule: GP606, where: group/default, reason: new racks, until: "2099-12-31"}'
ACCEPTED = {
    "comment": ("  # gpolicy: ignore[GP606] new racks", ""),
    "waiver": ("", f"---\ngpolicy: v1\nkind: Waiver\nwaivers: [{ACCEPT}]\n"),
}
MANY = f"""\
{UNMATCHED}ipolicy: {{vcpu-ratio: 0.5, spindle-ratio: 500}}
diskparams: {{drbd: {{resync-rate: 1M, dynamic-resync: false, c-max-rate: 100M}}}}
ndparams: {{cpu_speed: 900, spindle_count: 5000}}
tags: ["htools:iextags:x"]
---
gpolicy: v1
kind: Guards
guards:
  - {{name: few, max_changes: 1}}
  - {{name: nothing, newly_violating: 100000}}
---
gpolicy: v1
kind: NodeSet
name: racks
nodes: ["rack*.example.org"]
tags: ["rack:a"]
"""
FORMS = ("text", "markdown", "html", "json", "github")


def plan(directory: Path, text: str, *options: str) -> tuple[int, str]:
    (directory / "policy.yaml").write_text(text)
    done = gpolicy("plan", directory, "--state", STATE, "--detailed-exitcode", *options, "--details")
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("form", FORMS)
def test_a_glob_without_nodes_is_a_warning_of_the_plan(tmp_path: Path, form: str) -> None:
    code, text = plan(tmp_path, UNMATCHED, "--format", form)
    assert code == 0
    assert "GP606" in text
    assert "policy.yaml:4:9" in text or '"line": 4' in text or "line=4" in text


@pytest.mark.parametrize("form", FORMS)
def test_every_warning_of_check_is_shown_in_every_format(tmp_path: Path, form: str) -> None:
    (tmp_path / "gpolicy.toml").write_text('[check.per-file-ignores]\n"gone/*" = ["GP2"]\n')
    code, text = plan(tmp_path, MANY, "--format", form)
    done = gpolicy("check", tmp_path, "--state", STATE, "--format", "json")
    found = [item for one in json.loads(done.stdout)["findings"] for item in (one, *one["consequences"])]
    warned = {item["code"] for item in found if item["severity"] == "warning"}
    said_by_guards = {"GP741", "GP742", "GP748", "GP749", "GP750"}
    assert len(warned - said_by_guards) >= 6, warned
    assert "GP748" in warned
    assert code == 1
    assert "few" in text
    missing = {code for code in warned - said_by_guards if code not in text}
    assert not missing


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("by", ACCEPTED)
def test_what_is_accepted_is_no_warning_and_shown_apart(tmp_path: Path, by: str, form: str) -> None:
    behind, below = ACCEPTED[by]
    code, text = plan(tmp_path, f"{UNMATCHED.rstrip()}{behind}\n{below}", "--format", form)
    assert code == 0
    assert "glob-unmatched" not in text
    assert ("GP606" in text) is (form in ("text", "markdown", "html"))
    assert f"1 by {by}" in text or form in ("json", "github")


def test_what_the_settings_ignore_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "gpolicy.toml").write_text('[check]\nignore = ["GP606"]\n')
    assert "GP606" not in plan(tmp_path, UNMATCHED)[1]


def test_infos_are_not_shown(tmp_path: Path) -> None:
    (tmp_path / "gpolicy.toml").write_text('[check.severity]\nGP606 = "info"\n')
    assert "GP606" not in plan(tmp_path, UNMATCHED)[1]


def test_the_exit_code_is_that_of_the_changes(tmp_path: Path) -> None:
    assert plan(tmp_path, UNMATCHED)[0] == 0
    assert plan(tmp_path, f"{UNMATCHED}alloc_policy: last_resort\n")[0] == 2


def test_a_plan_file_with_warnings_is_rendered(tmp_path: Path) -> None:
    kept = tmp_path / "plan.json"
    assert plan(tmp_path, f"{UNMATCHED}alloc_policy: last_resort\n", "--save", str(kept))[0] == 2
    written = json.loads(kept.read_text())
    assert ("GP606", "warning") in [(item["code"], item["severity"]) for item in written["findings"]]
    assert written["summary"]["safe"]
    done = gpolicy("render", kept)
    assert (done.returncode, "gnt-group modify" in done.stdout) == (0, True)


def test_groups_without_a_document_are_named_as_not_managed(tmp_path: Path) -> None:
    """Also where the file of a group was removed: that removes no group."""
    snapshot = f"snapshot:{ROOT / 'policies' / 'two-groups.snapshot.json'}"
    adopted = tmp_path / "my"
    assert gpolicy("adopt", "--state", snapshot, "--save", adopted).returncode == 0
    assert "not managed" not in gpolicy("plan", adopted, "--state", snapshot, "--details").stdout
    (adopted / "groups" / "spare.yaml").unlink()
    told = gpolicy("plan", adopted, "--state", snapshot, "--details").stdout.splitlines()
    assert told[1] == "No changes: the cluster is what the policy declares"
    assert "not managed: group spare, which no document declares" in told
