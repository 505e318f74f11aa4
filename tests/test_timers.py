"""The services of the Debian package: their command lines are run as systemd runs them, with the settings they take."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.ci.services import fleet_of

ROOT = Path(__file__).resolve().parent.parent
DEBIAN = ROOT / "debian"
TEXTFILES = "/var/lib/prometheus/node-exporter"
PAGES = "/var/lib/gpolicy/pages"


@dataclass
class Machine:
    """A machine with gpolicy, the clusters of a gpolicy.toml, and the directory that the node exporter reads."""

    directory: Path

    @property
    def clusters(self) -> Path:
        return self.directory / "checkout"

    def start(self, name: str, settings: str) -> int:
        """Run a service with what /etc/default holds; return its exit code, 0 for each that counts as success."""
        unit = (DEBIAN / f"gpolicy.gpolicy-{name}.service").read_text(encoding="utf-8")
        fields = dict(re.findall(r"^(\w+)=(.*)$", unit, re.MULTILINE))
        environ = dict(word.split("=", 1) for word in shlex.split(fields["Environment"]))
        environ |= dict(line.split("=", 1) for line in settings.splitlines())
        line = fields["ExecStart"].replace(TEXTFILES, str(self.directory / "textfiles"))
        line = line.replace(PAGES, str(self.directory / "pages"))
        words = [part for word in shlex.split(line) for part in _expanded(word, environ)]
        environ |= {"HOME": str(self.directory), "PATH": f"{self.directory}:/usr/bin:/bin"}
        words = [word.replace("/usr/bin/gpolicy", str(self.directory / "gpolicy")) for word in words]
        done = subprocess.run(words, cwd="/", env=environ, capture_output=True, text=True, check=False)
        fine = {"0", *fields.get("SuccessExitStatus", "").split()}
        return 0 if str(done.returncode) in fine else done.returncode

    def metrics(self, name: str) -> dict[str, str]:
        """Return the metrics that the node exporter finds, each with its value."""
        text = (self.directory / "textfiles" / f"gpolicy_{name}.prom").read_text(encoding="utf-8")
        if shutil.which("promtool"):
            subprocess.run(["promtool", "check", "metrics"], input=text, text=True, check=True)
        series = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
        return {name: value for name, _, value in series}


def _expanded(word: str, environ: dict[str, str]) -> list[str]:
    """Return the words of one of a command line: `$NAME` alone is split at spaces, and `$$` is a dollar."""
    alone = re.fullmatch(r"\$(\w+)", word)
    return environ[alone[1]].split() if alone else [word.replace("$$", "$")]


@pytest.fixture
def machine(tmp_path: Path, warm_python: Path) -> Machine:
    state = json.loads((ROOT / "policies" / "two-groups.snapshot.json").read_text(encoding="utf-8"))
    (tmp_path / "cluster.json").write_text(json.dumps({**state, "taken_at": "2026-01-01T00:00:00Z"}), encoding="utf-8")
    shutil.copytree(ROOT / "policies" / "two-groups", tmp_path / "checkout" / "policy")
    shutil.copytree(ROOT / "policies" / "two-groups", tmp_path / "one policy")
    fleet_of(tmp_path / "checkout")
    settings = tmp_path / "checkout" / "gpolicy.toml"
    text = settings.read_text(encoding="utf-8")
    for file in (tmp_path / "checkout" / "kept").rglob("*.json"):
        text = text.replace(f"rapi://{file.parent.name}.example.org", f"snapshot:{file}")
    settings.write_text(text.replace("rapi://muc.example.org", "rapi://127.0.0.1:1"), encoding="utf-8")
    (tmp_path / "textfiles").mkdir()
    program = tmp_path / "gpolicy"
    program.write_text(f'#!/bin/sh\nexec "{warm_python}" -I -m gpolicy "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return Machine(tmp_path)


@pytest.mark.parametrize("name", ["capacity", "drift"])
def test_all_clusters_of_the_settings_are_watched(name: str, machine: Machine) -> None:
    """As the file in /etc/default proposes; a cluster that does not answer is told, and hides no other."""
    proposed = (DEBIAN / f"gpolicy-{name}.default").read_text(encoding="utf-8")
    (line,) = re.findall(r"^#(CLUSTERS=.*)$", proposed, re.MULTILINE)
    settings = line.replace("/etc/gpolicy", str(machine.clusters))
    assert machine.start(name, settings) == 3
    found = machine.metrics(name)
    up = {re.findall('target="(.*?)"', key)[0]: value for key, value in found.items() if "_up{" in key}
    assert up == {"ham": "1", "ber": "1", "muc": "0"}
    assert machine.start(name, settings.replace("--all", "--label name=[hb]*")) == 0
    assert len(machine.metrics(name)) > 30


def test_all_clusters_of_the_settings_have_pages(machine: Machine) -> None:
    """As the files in /etc/default propose; the page of a cluster that does not answer is not written."""
    proposed = (DEBIAN / "gpolicy-pages.default").read_text(encoding="utf-8")
    lines = re.findall(r"^#(\w+=.*)$", proposed, re.MULTILINE)
    settings = "\n".join(lines).replace("/etc/gpolicy", str(machine.clusters))
    settings = settings.replace("/var/lib/gpolicy/snapshots", str(machine.clusters / "kept"))
    assert machine.start("pages", settings) == 3
    pages = machine.directory / "pages"
    assert {file.name for file in pages.iterdir()} == {"index.html", "ber.html", "ham.html"}
    assert "1 could not be looked at: muc" in (pages / "index.html").read_text(encoding="utf-8")


def test_one_cluster_is_compared_with_its_policy(machine: Machine) -> None:
    policy = machine.directory / "one policy"
    settings = f"POLICY={policy}\nSTATE=snapshot:{machine.directory}/cluster.json"
    assert machine.start("drift", settings) == 0
    found = machine.metrics("drift")
    assert found[f'gpolicy_drift_up{{policy="{policy}"}}'] == "1"
    assert found[f'gpolicy_drift_differences{{policy="{policy}",kind="cluster"}}'] != "0"  # which is no failure
    (machine.directory / "cluster.json").unlink()
    assert machine.start("drift", settings) == 3
    assert machine.metrics("drift")[f'gpolicy_drift_up{{policy="{policy}"}}'] == "0"


def test_one_cluster_is_counted_with_more_options(machine: Machine) -> None:
    state = f"snapshot:{machine.directory}/cluster.json"
    assert machine.start("capacity", f"CLUSTERS=--state {state}\nOPTIONS=--max-node-failures 2") == 0
    assert machine.metrics("capacity")[f'gpolicy_capacity_up{{target="{state}"}}'] == "1"
    age = "gpolicy_capacity_state_timestamp_seconds"
    assert machine.metrics("capacity")[f'{age}{{target="{state}"}}'] == "1767225600"


@pytest.mark.parametrize("name", ["capacity", "drift"])
def test_without_settings_it_is_the_cluster_of_this_master(name: str, machine: Machine) -> None:
    assert machine.start(name, "") == 3  # here is none
    (up,) = (key for key in machine.metrics(name) if "_up{" in key)
    assert machine.metrics(name)[up] == "0"
    assert ("local:" in up) is (name == "capacity")
