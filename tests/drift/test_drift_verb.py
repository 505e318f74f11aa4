"""`gpolicy drift` as it is run: exit codes, files, and what an alert sees when nothing could be compared."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from command_line import CONFIG, STATE, gpolicy, policy
from prometheus_client.parser import text_string_to_metric_families

from gpolicy.cli.running import run

FINE, FINDINGS, CHANGES, COULD_NOT_RUN = range(4)
CHANGE = "candidate_pool_size: 3\n"
ACCEPTED = (
    f"{CHANGE}---\ngpolicy: v1\nkind: Waiver\nwaivers:\n"
    '  - {rule: drift, where: "cluster:candidate_pool_size", reason: agreed, until: "2099-12-31"}\n'
)


def up(file: Path) -> float:
    found = {family.name: family for family in text_string_to_metric_families(file.read_text(encoding="utf-8"))}
    return found["gpolicy_drift_up"].samples[0].value


@pytest.mark.parametrize(
    ("text", "code"),
    [("", FINE), (CHANGE, CHANGES), (ACCEPTED, FINE), ("bogus: 1\n", FINDINGS)],
)
@pytest.mark.parametrize("form", ["text", "json", "prometheus"])
def test_exit_codes(tmp_path: Path, text: str, code: int, form: str) -> None:
    assert run(["drift", str(policy(tmp_path, text)), "--state", STATE, "--format", form]) == code


@pytest.mark.parametrize(
    ("settings", "code", "notes"),
    [
        ('[check]\nignore = ["GP821"]\n', FINE, 1),
        ('[check.per-file-ignores]\n"*.yaml" = ["drift"]\n', FINE, 1),
        ('[check.per-file-ignores]\n"other.yaml" = ["drift"]\n', CHANGES, 0),
        ('[check]\nignore = ["GP201"]\n', CHANGES, 0),
        ('[check]\nselect = ["GP2"]\n', CHANGES, 0),
        ('[check]\nselect = ["GP2"]\nignore = ["GP8"]\n', FINE, 1),
    ],
)
def test_ignored_drift_does_not_count_and_is_noted(tmp_path: Path, settings: str, code: int, notes: int) -> None:
    file = policy(tmp_path, CHANGE)
    (tmp_path / "gpolicy.toml").write_text(settings, encoding="utf-8")
    done = gpolicy("drift", file, "--state", STATE, "--format", "json")
    assert done.returncode == code, done.stderr
    said = [note for note in json.loads(done.stdout)["notes"] if "ignores GP821 drift" in note]
    assert len(said) == notes


def test_an_unreachable_cluster_and_an_unknown_form(tmp_path: Path) -> None:
    file = policy(tmp_path)
    assert gpolicy("drift", file, "--state", "config:/nonexistent").returncode == COULD_NOT_RUN
    done = gpolicy("drift", file, "--state", STATE, "--format", "xml")
    assert (done.returncode, "prometheus" in done.stderr) == (COULD_NOT_RUN, True)


def test_nothing_is_changed(tmp_path: Path) -> None:
    before = CONFIG.read_bytes()
    gpolicy("drift", policy(tmp_path, CHANGE), "--state", STATE)
    assert CONFIG.read_bytes() == before
    assert [item.name for item in tmp_path.iterdir()] == ["policy.yaml"]


def test_metrics_are_for_the_exporter_and_other_files_for_their_owner(tmp_path: Path) -> None:
    file = policy(tmp_path, CHANGE)
    for form, mode in (("prometheus", 0o644), ("json", 0o600), ("text", 0o600)):
        target = tmp_path / f"out.{form}"
        done = gpolicy("drift", file, "--state", STATE, "--format", form, "-o", target)
        assert (done.returncode, done.stdout) == (CHANGES, "")
        assert stat.S_IMODE(target.stat().st_mode) == mode
    assert up(tmp_path / "out.prometheus") == 1
    assert json.loads((tmp_path / "out.json").read_text())["summary"]["drift"] == 1
    assert sorted(item.name for item in tmp_path.iterdir()) == [
        "out.json", "out.prometheus", "out.text", "policy.yaml",
    ]  # fmt: skip


@pytest.mark.parametrize("failure", ["state", "policy", "no policy"])
def test_a_failure_shows_in_the_metrics_and_keeps_the_last_comparison(tmp_path: Path, failure: str) -> None:
    file, target = policy(tmp_path, CHANGE), tmp_path / "drift.prom"

    def drift(state: str = STATE) -> int:
        return gpolicy("drift", file, "--state", state, "--format", "prometheus", "-o", target).returncode

    assert (drift(), up(target)) == (CHANGES, 1)
    good = target.read_text()
    if failure == "state":
        assert drift("config:/nonexistent") == COULD_NOT_RUN
    elif failure == "policy":
        policy(tmp_path, "bogus: 1\n")
        assert drift() == FINDINGS
    else:
        file.unlink()
        assert drift() == COULD_NOT_RUN
    assert up(target) == 0
    kept = [line for line in good.splitlines() if "_up" not in line and "_last_run" not in line]
    assert len(kept) > 10
    assert target.read_text().splitlines()[6:] == kept
    policy(tmp_path, CHANGE)
    assert (drift(), up(target)) == (CHANGES, 1)


def test_a_file_that_cannot_be_written_is_one_line_and_the_old_one_stays(tmp_path: Path) -> None:
    target = tmp_path / "drift.prom"
    target.mkdir()
    done = gpolicy("drift", policy(tmp_path), "--state", STATE, "--format", "prometheus", "-o", target)
    assert done.returncode == COULD_NOT_RUN
    assert done.stderr.count("not a regular file") == 1
    done = gpolicy("drift", policy(tmp_path), "--state", "config:/nonexistent", "--format", "prometheus", "-o", target)
    assert done.returncode == COULD_NOT_RUN
    assert (done.stderr.count("not a regular file"), done.stderr.count("/nonexistent")) == (1, 1)


def test_no_secret_of_an_address_gets_into_the_metrics(tmp_path: Path) -> None:
    target = tmp_path / "drift.prom"
    done = gpolicy(
        "drift", policy(tmp_path), "--state", "rapi://me:hunter2@[nonsense", "--format", "prometheus", "-o", target
    )
    assert done.returncode == COULD_NOT_RUN
    assert "hunter2" not in target.read_text() + done.stderr + done.stdout
    assert up(target) == 0
    assert os.fsencode(str(tmp_path)) in target.read_bytes()
