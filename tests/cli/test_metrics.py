"""`--format prometheus` of one cluster and of many, as the node exporter reads the file."""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.cli.command_line import ROOT, STATE, gpolicy

SNAPSHOT = ROOT / "policies" / "two-groups.snapshot.json"
FINE, FINDINGS, CHANGES, COULD_NOT_RUN = range(4)


def series(file: Path, name: str) -> dict[str, float]:
    """Return the values of a metric by target (or policy)."""
    families = {item.name: item for item in text_string_to_metric_families(file.read_text(encoding="utf-8"))}
    return {sample.labels.get("target", ""): sample.value for sample in families[name].samples}


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """A repository with three clusters: one is well, one is not there, one has a policy with an error."""
    shutil.copy(SNAPSHOT, tmp_path / "state.json")
    for name in ("ham", "ber", "muc"):
        shutil.copytree(ROOT / "policies" / "two-groups", tmp_path / name)
    (tmp_path / "muc" / "wrong.yaml").write_text("gpolicy: v1\nkind: NodeGroup\nname: x\nbogus: 1\n", encoding="utf-8")
    tables = [
        f'[clusters.{name}]\npolicy = "{name}"\nstate = "snapshot:{file}"\n'
        for name, file in (("ham", "state.json"), ("ber", "none.json"), ("muc", "state.json"))
    ]
    (tmp_path / "gpolicy.toml").write_text("".join(tables), encoding="utf-8")
    return tmp_path


def test_a_cluster_that_cannot_be_read_is_a_metric_and_hides_no_other(fleet: Path) -> None:
    file = fleet / "capacity.prom"
    command = ("capacity", "--all", "--output", f"prometheus={file}")
    done = gpolicy(*command, cwd=fleet)
    assert (done.returncode, done.stdout) == (COULD_NOT_RUN, "")
    assert "ber: " in done.stderr
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert series(file, "gpolicy_capacity_up") == {"ham": 1, "ber": 0, "muc": 1}
    assert series(file, "gpolicy_capacity_cluster_nodes") == {"ham": 8, "muc": 8}
    counted = series(file, "gpolicy_capacity_last_success_timestamp_seconds")
    (fleet / "none.json").write_bytes(SNAPSHOT.read_bytes())
    (fleet / "state.json").unlink()
    done = gpolicy(*command, cwd=fleet)
    assert done.returncode == COULD_NOT_RUN
    assert series(file, "gpolicy_capacity_up") == {"ham": 0, "ber": 1, "muc": 0}
    assert series(file, "gpolicy_capacity_cluster_nodes") == {"ham": 8, "ber": 8, "muc": 8}
    again = series(file, "gpolicy_capacity_last_success_timestamp_seconds")
    assert (again["ham"], again["muc"]) == (counted["ham"], counted["muc"])


def test_drift_of_many_clusters(fleet: Path) -> None:
    file = fleet / "drift.prom"
    done = gpolicy("drift", "--all", "--output", f"prometheus={file}", cwd=fleet)
    assert done.returncode == COULD_NOT_RUN
    assert "muc: the policy has" in done.stderr
    assert series(file, "gpolicy_drift_up") == {"ham": 1, "ber": 0, "muc": 0}
    families = {item.name: item for item in text_string_to_metric_families(file.read_text(encoding="utf-8"))}
    assert {sample.labels["policy"] for sample in families["gpolicy_drift_up"].samples} == {
        str(fleet / name) for name in ("ham", "ber", "muc")
    }


def test_metrics_go_to_standard_output_too(fleet: Path) -> None:
    done = gpolicy("capacity", "--state", "ham", "--format", "prometheus", cwd=fleet)
    assert done.returncode == FINE
    assert 'gpolicy_capacity_up{target="ham"} 1\n' in done.stdout


def test_one_cluster_by_its_address_and_under_a_policy(tmp_path: Path) -> None:
    policy = ROOT / "policies" / "two-groups"
    done = gpolicy("capacity", policy, "--state", f"snapshot:{SNAPSHOT}", "--format", "prometheus")
    assert done.returncode == FINE
    assert f'gpolicy_capacity_up{{target="snapshot:{SNAPSHOT}",policy="{policy}"}} 1\n' in done.stdout


def test_figures_that_are_missing_are_a_failure(tmp_path: Path) -> None:
    file = tmp_path / "capacity.prom"
    done = gpolicy("capacity", "--state", STATE, "--output", f"prometheus={file}")
    assert done.returncode == COULD_NOT_RUN
    assert "show no memory" in done.stderr
    assert series(file, "gpolicy_capacity_up") == {STATE: 0}


@pytest.mark.parametrize("state", ["rapi://me:hunter2@[nonsense", "rapi:me:hunter2@x", "me:hunter2@x", "hunter2:x"])
def test_no_secret_of_an_address_gets_into_the_metrics(tmp_path: Path, state: str) -> None:
    file = tmp_path / "capacity.prom"
    done = gpolicy("capacity", "--state", state, "--output", f"prometheus={file}")
    assert done.returncode == COULD_NOT_RUN
    assert "hunter2" not in file.read_text(encoding="utf-8")
    assert list(series(file, "gpolicy_capacity_up").values()) == [0]


def test_other_reports_are_for_their_owner_and_of_one_cluster(fleet: Path) -> None:
    file = fleet / "capacity.json"
    assert gpolicy("capacity", "--state", "ham", "--format", "json", "-o", file, cwd=fleet).returncode == FINE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text(encoding="utf-8"))["groups"]
    done = gpolicy("capacity", "--all", "--format", "json", "-o", file, cwd=fleet)
    assert done.returncode == COULD_NOT_RUN
    assert "--format prometheus" in done.stderr
