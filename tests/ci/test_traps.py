"""A checkout full of traps: the action and the component trigger none of them, with secrets in the environment.

gpolicy is really installed here, by `ci/install` from its locked packages, which takes a package index.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.ci.services import component, repository, run_action, run_job
from tests.posting.comment_server import TOKEN, Comments

pytestmark = pytest.mark.slow
PASSWORD = "hush-rapi-4471"  # noqa: S105 (of this test alone)
MODULES = (
    *("gpolicy/__init__.py", "gpolicy/__main__.py", "gpolicy/posting/__init__.py", "gpolicy/posting/__main__.py"),
    *("venv.py", "venv/__main__.py", "ensurepip.py", "pip.py", "pip/__main__.py", "sitecustomize.py"),
    *("usercustomize.py", "json.py", "ssl.py", "os.py", "re.py", "typing.py", "runpy.py", "encodings/__init__.py"),
    *("yaml/__init__.py", "typer.py", "hatchling/build.py", "hatch_build.py", "setup.py", "conftest.py"),
    *(".gpolicy-venv/lib/python3.11/site-packages/sitecustomize.py", "trap_of_a_pth.py"),
)
PROGRAMS = (
    *("python", "python3", "pip", "git", "ssh", "cc", "sh", "bash", "env", "rm", "cat", "cp", "mkdir", "mktemp"),
    *("dirname", "sed", "od", "tr", "chmod", "gpolicy", "gnt-node"),
)
PLACES = ("", "bin/", "policy/", ".gpolicy-venv/bin/", "venv/bin/", ".venv/bin/")


@dataclass(frozen=True)
class Traps:
    """A checkout, and the directory in which a trap that springs leaves its name."""

    checkout: Path
    sprung: Path
    precious: Path

    def names(self) -> list[str]:
        return sorted(file.name for file in self.sprung.iterdir())


@pytest.fixture
def traps(workspace: Path, tmp_path: Path) -> Traps:  # noqa: C901 (one trap after another)
    """A correct policy, and beside it files that could make a program run."""
    sprung, precious = tmp_path / "sprung", tmp_path / "precious"
    sprung.mkdir()
    precious.write_text("precious")
    made = Traps(workspace, sprung, precious)

    def lay(name: str, text: str) -> None:
        file = workspace / name
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            file.chmod(0o755)

    def touch(name: str) -> str:
        return f'touch "{sprung}/{name.replace("/", ":")}"'

    for name in MODULES:
        lay(name, f'open("{sprung}/{name.replace("/", ":")}", "w")\n')
    for place in PLACES:
        for name in PROGRAMS:
            lay(f"{place}{name}", f"#!/bin/sh\n/usr/bin/{touch(place + name)}\n")
    lay(".gpolicy-venv/lib/python3.11/site-packages/trap.pth", "import trap_of_a_pth\n")
    lay(".gpolicy-venv/pyvenv.cfg", f"home = {workspace}/bin\n")
    for name in ("pyvenv.cfg", "bin/pyvenv.cfg"):
        lay(name, f"home = {workspace}/bin\ninclude-system-site-packages = true\n")
    index = f"[global]\nindex-url = file://{workspace}/simple\nno-index = true\n[install]\nprefix = {sprung}\n"
    for name in ("pip.conf", ".pip/pip.conf", ".config/pip/pip.conf", "pip.ini", "setup.cfg", "tox.ini"):
        lay(name, index)
    build = '[build-system]\nrequires = []\nbuild-backend = "setup"\nbackend-path = ["."]\n'
    lay("pyproject.toml", build + '[tool.gpolicy.check]\nignore = ["GP113"]\n')
    lay(".python-version", "3.99.0\n")
    for name in (".env", ".envrc", ".bashrc", ".bash_profile", ".profile", ".inputrc"):
        lay(name, f"PATH={workspace}/bin\nexport PATH\n{touch(name)}\n")
    program = f"!/usr/bin/{touch('git-config')}"
    lay(
        ".git/config",
        "[core]\n\trepositoryformatversion = 0\n"
        f'\tfsmonitor = "{workspace}/git"\n\thooksPath = {workspace}/bin\n\tsshCommand = "{workspace}/ssh"\n'
        f'\tpager = "{workspace}/cat"\n[alias]\n\tinit = "{program}"\n\tfetch = "{program}"\n'
        f'[credential]\n\thelper = "{program}"\n[url "{workspace}/"]\n\tinsteadOf = "/"\n',
    )
    lay(".git/HEAD", "ref: refs/heads/main\n")
    for name in ("post-checkout", "pre-commit", "reference-transaction", "post-index-change"):
        lay(f".git/hooks/{name}", f"#!/bin/sh\n/usr/bin/{touch(f'hook-{name}')}\n")
    lay(".gitconfig", f"[core]\n\thooksPath = {workspace}/.git/hooks\n")
    (job,) = component({"source": "", "commit": ""}).values()
    for name in job["artifacts"]["paths"]:
        (workspace / name).symlink_to(precious)
    for names in job["artifacts"]["reports"].values():
        for name in [names] if isinstance(names, str) else names:
            (workspace / name).symlink_to(precious)
    (workspace / ".gpolicy-packages").symlink_to(tmp_path)
    for name in ("source", "room", "check.md", "plan.json"):
        (workspace / name).symlink_to(tmp_path)
    return made


@pytest.fixture(scope="module")
def committed(sources: Path) -> dict[str, str]:
    """The inputs by which the component finds the sources."""
    return repository(sources, {})


def environment(tmp_path: Path) -> dict[str, str]:
    """The environment of a job that has secrets, whose PATH even leads into the checkout."""
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "REQUESTS_"))}
    secrets = {"GPOLICY_RAPI_USER": "tool", "GPOLICY_RAPI_PASSWORD": PASSWORD}
    (tmp_path / "home").mkdir()
    path = f".:bin::policy:.venv/bin:{os.environ['PATH']}"
    return {**kept, **secrets, "PATH": path, "HOME": str(tmp_path / "home")}


def test_the_action_springs_no_trap(tmp_path: Path, traps: Traps, sources: Path, server: Comments) -> None:
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7}}), encoding="utf-8")
    own = {
        "GITHUB_API_URL": server.base,
        "GITHUB_REPOSITORY": "o/r",
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_WORKSPACE": str(traps.checkout),
    }
    runner = tmp_path / "runner"
    runner.mkdir()
    shutil.copy(tmp_path / "cluster.json", traps.checkout)
    inputs = {"path": "policy", "state": "snapshot:cluster.json", "token": TOKEN}
    done = run_action(runner, traps.checkout, inputs, environment(tmp_path) | own, source=sources)
    assert traps.names() == [], done.log
    assert done.ran == ["Name the cache", "Install gpolicy", "Check", "Test", "Plan", "Comment", "Verdict"], done.log
    assert (done.outputs["check-exit-code"], done.outputs["plan-exit-code"]) == ("0", "1"), done.log
    assert "dedicated" in server.comments[0]["body"]
    assert "policy: policy (" in server.comments[0]["body"]  # named from the top of the checkout
    assert "gpolicy check" not in server.comments[0]["body"]  # its warnings are those of the plan
    assert f"`{traps.checkout}" not in server.comments[0]["body"]
    assert traps.precious.read_text() == "precious"
    for secret in (PASSWORD, TOKEN):
        assert secret not in done.log + done.summary + server.comments[0]["body"]


def test_the_template_springs_no_trap(
    tmp_path: Path, traps: Traps, committed: dict[str, str], server: Comments
) -> None:
    own = {
        "CI_API_V4_URL": server.base,
        "CI_PROJECT_ID": "3",
        "CI_MERGE_REQUEST_IID": "7",
        "CI_PROJECT_DIR": str(traps.checkout),
        "GPOLICY_GITLAB_TOKEN": TOKEN,
    }
    shutil.copy(tmp_path / "cluster.json", traps.checkout)
    inputs = {"path": "policy", "state": "snapshot:cluster.json", **committed}
    done = run_job(traps.checkout, inputs, environment(tmp_path) | own)
    assert traps.names() == [], done.stderr
    assert done.returncode == 1, done.stderr  # a guard fails
    assert "dedicated" in server.comments[0]["body"]
    assert traps.precious.read_text() == "precious"
    plan = traps.checkout / "gpolicy-plan.json"
    assert json.loads(plan.read_text(encoding="utf-8"))["steps"]
    assert not plan.is_symlink()
    for secret in (PASSWORD, TOKEN):
        assert secret not in done.stdout + done.stderr + plan.read_text() + server.comments[0]["body"]
    quality = json.loads((traps.checkout / "gpolicy-code-quality.json").read_text(encoding="utf-8"))
    assert all(entry["location"]["path"].startswith("policy/") for entry in quality)
    packages = traps.checkout / ".gpolicy-packages"
    assert not packages.is_symlink()
    assert len(list(packages.glob("*.whl"))) > 10
