"""The environment of programs: stand-ins for Ganeti's commands and ssh record it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from gpolicy.cluster.process import child_environment, run
from gpolicy.errors import UnreachableError
from tests.apply.same_process import gpolicy

ROOT = Path(__file__).resolve().parents[2]
SECRET = "hush-5d3e90"  # noqa: S105 (of this test alone)
SECRETS = dict.fromkeys(
    [
        *("GPOLICY_RAPI_PASSWORD", "GPOLICY_GITLAB_TOKEN", "GITHUB_TOKEN", "CI_JOB_TOKEN", "ACTIONS_RUNTIME_TOKEN"),
        *(
            "AWS_SECRET_ACCESS_KEY",
            "PGPASSWORD",
            "A_NAME_THAT_NOBODY_THOUGHT_OF",
            "LC_MINE",
            "GNT_GROUP",
            "SSH_ASKPASS",
        ),
    ],
    SECRET,
)
POLICY = """gpolicy: v1
kind: NodeGroup
name: gold
alloc_policy: preferred
"""
DUMP = """#!/bin/sh
told={root}/told/${{0##*/}}.$$
env > "$told.environment"
printf '%s\\n' "$@" > "$told.arguments"
"""
BEHAVIOUR = {
    "gnt-node": 'cat "{data}/node-list.txt"',
    "gnt-instance": 'cat "{data}/instance-list.txt"',
    "gnt-cluster": "echo 17",
    "gnt-group": "echo 17; echo 'the job failed' >&2; exit 1",
    "gnt-job": "case $* in *watch*) ;; *) echo '17|error' ;; esac",
    "flock": 'shift 4; exec "$@"',
    "ssh": 'while [ "$1" != -- ]; do shift; done; shift 2; exec sh -c "$*"',
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The master's root directory, with programs that write down what they are told."""
    data = ROOT / "tests" / "data" / "clusters" / "full"
    for name in ("bin", "told", "var/lib/ganeti"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "var/lib/ganeti/config.data").write_bytes((data / "config.data").read_bytes())
    for name, behaviour in BEHAVIOUR.items():
        program = tmp_path / "bin" / name
        program.write_text(DUMP.format(root=tmp_path) + behaviour.format(data=data) + "\n")
        program.chmod(0o755)
    (tmp_path / "policy.yaml").write_text(POLICY)
    return tmp_path


def run_gpolicy(root: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    environ = {
        "PATH": f"{root / 'bin'}:{os.environ['PATH']}",
        "HOME": str(root),
        "XDG_RUNTIME_DIR": str(root),
        "GANETI_ROOTDIR": str(root),
        "GPOLICY_RAPI_USER": "tool",
        **SECRETS,
    }
    return gpolicy(*arguments, env=environ)


@pytest.mark.parametrize("way", ["local:", "ssh://root@master"])
def test_no_program_gets_a_secret(root: Path, way: str) -> None:
    state = way if way == "local:" else f"{way}{root}/var/lib/ganeti/config.data"
    plan = root / "plan.json"
    made = run_gpolicy(root, "plan", root / "policy.yaml", "--state", state, "--save", plan)
    assert plan.exists(), made.stderr
    done = run_gpolicy(root, "apply", plan, "--to", state, "--yes", "--journal", root / "journal")
    assert "the job failed" in done.stderr, done.stderr
    told = {file.name.partition(".")[0] for file in (root / "told").iterdir()}
    assert told == {"gnt-node", "gnt-instance", "gnt-group", "gnt-job"} | ({"ssh", "flock"} if "ssh" in way else set())
    for file in (root / "told").iterdir():
        assert SECRET not in file.read_text(), file.name
    for output in (made.stdout, made.stderr, done.stdout, done.stderr):
        assert SECRET not in output
    for file in (plan, root / "journal"):
        assert SECRET not in file.read_text()


def test_the_environment_of_a_program() -> None:
    own = {"HOME": "/root", "LC_ALL": "C.UTF-8", "SSH_AUTH_SOCK": "/run/agent", "GANETI_ROOTDIR": "/srv"}
    assert child_environment({**own, **SECRETS, "PATH": "/usr/sbin:/usr/bin"}) == {**own, "PATH": "/usr/sbin:/usr/bin"}


@pytest.mark.parametrize("path", ["bin", ".", "", ":/nowhere", "/nowhere:", "bin:/nowhere::."])
def test_no_program_of_the_current_directory_is_run(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in (tmp_path, tmp_path / "bin"):
        place.mkdir(exist_ok=True)
        (place / "gnt-trap").write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
        (place / "gnt-trap").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnreachableError, match="cannot be run"):
        run(["gnt-trap"], environ={"PATH": path}, seconds=10, limit=1024)
    assert not (tmp_path / "sprung").exists()
