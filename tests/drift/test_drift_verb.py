"""`gpolicy drift` as it is run: exit codes, files, and what an alert sees when nothing could be compared."""

from __future__ import annotations

import contextlib
import io
import json
import os
import stat
import subprocess
from pathlib import Path

import pytest
from jsonschema import Draft7Validator
from prometheus_client.parser import text_string_to_metric_families

from gpolicy.cli.running import run
from tests.cli.command_line import CONFIG, STATE, policy

FINE, FINDINGS, CHANGES, COULD_NOT_RUN = range(4)
CHANGE = "candidate_pool_size: 3\n"
ACCEPTED = (
    f"{CHANGE}---\ngpolicy: v1\nkind: Waiver\nwaivers:\n"
    '  - {rule: drift, where: "cluster:candidate_pool_size", reason: agreed, until: "2099-12-31"}\n'
)


def gpolicy(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run gpolicy in this process and return what it did."""
    command, out, err = [*map(str, arguments)], io.StringIO(), io.StringIO()
    with contextlib.chdir(cwd or "."), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(command)
    return subprocess.CompletedProcess(command, code, out.getvalue(), err.getvalue())


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
        done = gpolicy("drift", file, "--state", STATE, "--output", f"{form}={target}")
        assert (done.returncode, bool(done.stdout)) == (CHANGES, form != "prometheus")
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
        return gpolicy("drift", file, "--state", state, "--output", f"prometheus={target}").returncode

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
    done = gpolicy("drift", policy(tmp_path), "--state", STATE, "--output", f"prometheus={target}")
    assert done.returncode == COULD_NOT_RUN
    assert done.stderr.count("not a regular file") == 1
    done = gpolicy("drift", policy(tmp_path), "--state", "config:/nonexistent", "--output", f"prometheus={target}")
    assert done.returncode == COULD_NOT_RUN
    assert (done.stderr.count("not a regular file"), done.stderr.count("/nonexistent")) == (1, 1)


def test_no_secret_of_an_address_gets_into_the_metrics(tmp_path: Path) -> None:
    target = tmp_path / "drift.prom"
    done = gpolicy(
        "drift", policy(tmp_path), "--state", "rapi://me:hunter2@[nonsense", "--output", f"prometheus={target}"
    )
    assert done.returncode == COULD_NOT_RUN
    assert "hunter2" not in target.read_text() + done.stderr + done.stdout
    assert up(target) == 0
    assert os.fsencode(str(tmp_path)) in target.read_bytes()


SCHEMA = json.loads((Path(__file__).parent.parent.parent / "schemas/output/drift.json").read_text(encoding="utf-8"))


def test_drift_is_written_into_the_policy_and_the_second_run_finds_none(tmp_path: Path) -> None:
    file = policy(tmp_path, "# jobs\nmax_running_jobs: 99  # at once\ncandidate_pool_size: 3\n")
    done = gpolicy("drift", tmp_path, "--state", STATE, "--write", "--format", "json")
    assert done.returncode == FINE, done
    data = json.loads(done.stdout)
    Draft7Validator(SCHEMA).validate(data)
    assert [(item["path"], item["how"], item["line"]) for item in data["written"]["values"]] == [
        ("candidate_pool_size", "in-place", 7),
        ("max_running_jobs", "in-place", 6),
    ]
    assert data["written"]["files"] == [str(file)]
    assert (data["summary"]["drift"], data["written"]["left"]) == (2, 0)
    text = file.read_text()
    assert "# jobs\nmax_running_jobs: 20  # at once\ncandidate_pool_size: 1\n" in text
    again = gpolicy("drift", tmp_path, "--state", STATE, "--write")
    assert (again.returncode, file.read_text()) == (FINE, text)
    assert json.loads(gpolicy("drift", tmp_path, "--state", STATE, "--format", "json").stdout)["written"] is None
    assert "No changes" in gpolicy("plan", tmp_path, "--state", STATE).stdout


def test_what_is_left_is_named_with_its_reason_and_makes_exit_code_2(tmp_path: Path) -> None:
    file = policy(tmp_path, "max_running_jobs: 99\nzeroing_image: http://example.org/image\n")
    done = gpolicy("drift", tmp_path, "--state", STATE, "--write", "--details")
    assert done.returncode == CHANGES
    assert "1 value written; left: 1 difference" in done.stdout
    assert "cannot be emptied again" in done.stdout
    assert file.read_text().endswith("max_running_jobs: 20\nzeroing_image: http://example.org/image\n")


def test_only_the_selected_is_written(tmp_path: Path) -> None:
    file = policy(tmp_path, "max_running_jobs: 99\ncandidate_pool_size: 3\n")
    done = gpolicy("drift", tmp_path, "--state", STATE, "--write", "--select", "cluster:max_running_jobs")
    assert done.returncode == CHANGES
    assert file.read_text().endswith("max_running_jobs: 20\ncandidate_pool_size: 3\n")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--select", "cluster"], "say --write as well"),
        (["--in-bases"], "say --write as well"),
        (["--write", "--select", "group/nowhere"], "names no object of this cluster"),
    ],
)
def test_options_that_say_what_to_write(tmp_path: Path, options: list[str], said: str) -> None:
    file = policy(tmp_path, CHANGE)
    before = file.read_text()
    done = gpolicy("drift", tmp_path, "--state", STATE, *options)
    assert (done.returncode, file.read_text()) == (COULD_NOT_RUN, before)
    assert said in done.stderr


def test_a_part_of_a_policy_and_a_link_are_not_written(tmp_path: Path) -> None:
    file = policy(tmp_path, CHANGE)
    (tmp_path / "other.yaml").write_text("gpolicy: v1\nkind: NodeGroup\nname: default\n", encoding="utf-8")
    before = file.read_text()
    done = gpolicy("drift", file, "--state", STATE, "--write")
    assert (done.returncode, "name the directory of the policy" in done.stderr) == (COULD_NOT_RUN, True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "config.data").write_bytes(CONFIG.read_bytes())
    settings = f'[clusters.ham]\npolicy = "{file.name}"\nstate = "config:config.data"\n'
    (tmp_path / "gpolicy.toml").write_text(settings, encoding="utf-8")
    done = gpolicy("drift", "--all", "--write", cwd=tmp_path)  # here the settings file says that this one is whole
    assert (done.returncode, file.read_text() == before) == (FINE, False), done.stderr
    (tmp_path / "gpolicy.toml").unlink()
    file.write_text(before, encoding="utf-8")
    file.rename(elsewhere / "real")
    file.symlink_to(elsewhere / "real")
    done = gpolicy("drift", tmp_path, "--state", STATE, "--write")
    assert (done.returncode, "nothing was changed" in done.stderr) == (COULD_NOT_RUN, True)
    assert (elsewhere / "real").read_text() == before


def test_the_policies_of_several_clusters_are_written_one_after_another(tmp_path: Path) -> None:
    """Both drifted from their base: the first gets a value of its own, so that for the second the base is free."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "config.data").write_bytes(CONFIG.read_bytes())
    base = tmp_path / "base.yaml"
    base.write_text("gpolicy: v1\nkind: Cluster\nname: base\ntemplate: true\nmax_running_jobs: 99\n", encoding="utf-8")
    settings, before = "", base.read_text()
    for name in ("ham", "ber"):
        (tmp_path / name).mkdir()
        policy(tmp_path / name, "extends: ../base.yaml\n")
        settings += f'[clusters.{name}]\npolicy = "{name}"\nstate = "config:config.data"\n'
    (tmp_path / "gpolicy.toml").write_text(settings, encoding="utf-8")
    done = gpolicy("drift", "--all", "--write", "--format", "json", cwd=tmp_path)
    assert done.returncode == FINE, done
    ham, ber = (tmp_path / name / "policy.yaml" for name in ("ham", "ber"))
    assert ham.read_text().endswith("extends: ../base.yaml\nmax_running_jobs: 20\n")
    assert ber.read_text().endswith("extends: ../base.yaml\n")
    assert base.read_text() == before.replace("99", "20")
    policy(tmp_path / "ham", "extends: ../base.yaml\n")
    base.write_text(before, encoding="utf-8")
    done = gpolicy("drift", "--all", "--write", "--in-bases", cwd=tmp_path)
    assert done.returncode == FINE, done
    assert base.read_text() == before.replace("99", "20")
    assert "max_running_jobs" not in ham.read_text() + ber.read_text()
