"""Run what the GitHub Action and the GitLab component say, as a runner would: their own shell, in a directory."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.cli.command_line import gpolicy

ROOT = Path(__file__).resolve().parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
COMPONENT = ROOT / "templates" / "gpolicy.yml"
STATE = "snapshot:../cluster.json"
"""The cluster of the policy in a `workspace`, beside the checkout."""
BROKEN = "gpolicy: v1\nkind: NodeGroup\nname: shared\nipolicy:\n  vcpu-ration: 4\n"
FAILING = """  - name: two CPUs with 4 GiB are allowed
    check_instance: {group: dedicated, memory-size: 4G, cpu-count: 2, disks: [40G]}
    expect: {refused: false}
"""
"""A third test for the policy's own two, which fails."""

BASH = shutil.which("bash") or "/bin/bash"
_EXPRESSION = re.compile(r"\$\{\{ *(.*?) *\}\}")


@dataclass
class Run:
    """The result of an action: exit code of the last step that ran, the output of all, and what it uploads, by name."""

    code: int = 0
    log: str = ""
    summary: str = ""
    ran: list[str] = field(default_factory=list)
    outputs: dict[str, str] = field(default_factory=dict)
    artifacts: dict[str, Path] = field(default_factory=dict)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    directory = tmp_path / "checkout"
    shutil.copytree(ROOT / "policies" / "two-groups", directory / "policy")
    cluster = json.loads((ROOT / "policies" / "two-groups.snapshot.json").read_text(encoding="utf-8"))
    (tmp_path / "cluster.json").write_text(json.dumps({**cluster, "instances": {}}), encoding="utf-8")  # soon planned
    return directory


@pytest.fixture(scope="session")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources of gpolicy, to be built: that is done in their directory."""
    directory = tmp_path_factory.mktemp("gpolicy")
    lock = directory / "small.txt"
    text = (ROOT / "ci" / "requirements.txt").read_text(encoding="utf-8")
    lock.write_text(text[text.index("mdurl==") :].partition("\npackaging==")[0] + "\n")
    asked = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--require-hashes", "-r", str(lock)]
    if subprocess.run([*asked, "-d", str(directory)], capture_output=True, check=False).returncode:
        pytest.skip("no package index can be reached")
    left_out = shutil.ignore_patterns("__pycache__", "*.so")
    for name in ("gpolicy", "schemas", "templates", "ci"):
        shutil.copytree(ROOT / name, directory / "source" / name, ignore=left_out)
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, directory / "source")
    return directory / "source"


def workflow_of(service: str) -> dict[str, Any]:
    """Return what the page of CI shows for several jobs side by side on a service."""
    page = (ROOT / "docs" / "guides" / "ci.md").read_text(encoding="utf-8").partition("### In several jobs")[2]
    blocks = {"github": "# .github/workflows/", "gitlab": "# .gitlab-ci.yml\n"}
    (text,) = re.findall(rf"```yaml\n({blocks[service]}.*?)```", page, re.DOTALL)
    workflow: dict[str, Any] = yaml.safe_load(text)
    return workflow


def unchanging(directory: Path) -> None:
    """Put the policy that the cluster of STATE has now into a directory: its plan has no changes."""
    shutil.rmtree(directory, ignore_errors=True)
    assert gpolicy("adopt", "--state", STATE, "--save", directory, cwd=directory.parent).returncode == 0


NO_PART: Final = (
    ({"shard": "5/4", "clusters": "all"}, "the part could not be planned"),
    ({"shard": "1/4"}, "the part could not be planned"),
    ({"shard": "1/4", "clusters": "all", "join": "parts"}, "shard and join exclude one another"),
)
"""Inputs with which a job of several writes no part, and what it says."""


def fleet_of(workspace: Path) -> None:
    """Put three clusters into a checkout, with kept snapshots of two."""
    snapshot = (workspace.parent / "cluster.json").read_text(encoding="utf-8")
    tables = []
    for name in ("ham", "ber", "muc"):
        shutil.copytree(workspace / "policy", workspace / name)
        for file in (workspace / name).rglob("*.yaml"):
            text = file.read_text(encoding="utf-8").replace("example.org", f"{name}.example.org")
            file.write_text(text, encoding="utf-8")
        tables.append(
            f'[clusters.{name}]\npolicy = "{name}"\nstate = "rapi://{name}.example.org"\nlabels = {{stage = "prod"}}\n'
        )
        if name != "muc":
            kept = workspace / "kept" / name / "20260101T000000Z.json"
            kept.parent.mkdir(parents=True)
            kept.write_text(snapshot.replace("example.org", f"{name}.example.org"), encoding="utf-8")
    shutil.rmtree(workspace / "policy")
    (workspace / "gpolicy.toml").write_text("".join(tables), encoding="utf-8")


def declared_guards(policy: Path) -> str:
    """Return the names of the guards that a policy declares, with spaces between."""
    return " ".join(re.findall(r"name: ([a-z0-9-]+)", (policy / "guards.yaml").read_text(encoding="utf-8")))


def standing_in(python: Path) -> str:
    """Return a script that stands in for `ci/install`: the Python of the environment that it makes is this one."""
    return f'#!/bin/sh\nmkdir -p "$2/venv/bin"\nln -sf "{python}" "$2/venv/bin/python"\n'


def run_action(
    directory: Path,
    workspace: Path,
    inputs: dict[str, str],
    environ: dict[str, str],
    *,
    fork: bool = False,
    source: Path = ROOT,
    python: Path | None = None,
) -> Run:
    """Run the steps of the action that are shell, each when its condition holds.

    `source` is where the action is. A `python` that has gpolicy spares the installation.
    """
    if python is not None:
        command = ["sh", "-c", standing_in(python), "install", sys.executable, str(directory / "gpolicy")]
        subprocess.run(command, check=True)
    result = Run()
    files = {name: directory / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    defaults = {name: str(about.get("default", "")) for name, about in ACTION["inputs"].items()}
    context = {f"inputs.{name}": value for name, value in (defaults | inputs).items()}
    head = "somebody/policies" if fork else "company/policies"
    context |= {"github.event.pull_request.head.repo.full_name": head, "github.repository": "company/policies"}
    context |= {"github.event.pull_request.number": "7", "runner.temp": str(directory)}
    context |= {"github.action_path": str(source), "steps.python.outputs.python-path": sys.executable}
    for step in STEPS:
        if not holds(step.get("if", ""), context):
            continue
        if step.get("uses", "").startswith("actions/upload-artifact@"):
            name, path = (resolved(step["with"][key], context) for key in ("name", "path"))
            result.artifacts[name] = Path(path)
        if "run" not in step or (python is not None and step["name"] in ("Name the cache", "Install gpolicy")):
            continue
        for file in files.values():
            file.touch()
        files["GITHUB_OUTPUT"].write_text("", encoding="utf-8")
        own = {name: resolved(value, context) for name, value in step["env"].items()}
        shell = [BASH, "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        paths = {name: str(file) for name, file in files.items()}
        everything = {"PATH": os.environ["PATH"], "RUNNER_TEMP": str(directory), **paths, **environ, **own}
        done = subprocess.run(shell, cwd=workspace, env=everything, capture_output=True, text=True, check=False)
        result.ran.append(step["name"])
        result.log += done.stdout + done.stderr
        result.code = done.returncode
        for line in files["GITHUB_OUTPUT"].read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition("=")
            context[f"steps.{step['id']}.outputs.{name}"] = value
        if done.returncode:
            break
    result.summary = files["GITHUB_STEP_SUMMARY"].read_text(encoding="utf-8")
    result.outputs = {name: resolved(about["value"], context) for name, about in ACTION["outputs"].items()}
    return result


def resolved(text: str, context: dict[str, str]) -> str:
    """Return a text with its expressions replaced, of the two forms that the action uses: NAME and NAME || NAME."""

    def value(found: re.Match[str]) -> str:
        return next(filter(None, (context.get(name, "") for name in found[1].split(" || "))), "")

    return _EXPRESSION.sub(value, text)


def holds(condition: str, context: dict[str, str]) -> bool:
    """Return whether a condition of the form `NAME == VALUE && (NAME != VALUE || …) && …` holds."""

    def one(part: str) -> bool:
        name, operator, wanted = part.split(" ")
        return (context.get(name, "") == wanted.strip("'")) is (operator == "==")

    return all(any(map(one, part.strip("()").split(" || "))) for part in filter(None, condition.split(" && ")))


SECRETS = dict.fromkeys(
    (
        "GPOLICY_RAPI_USER",
        "GPOLICY_RAPI_PASSWORD",
        "GPOLICY_GITLAB_TOKEN",
        "GITHUB_TOKEN",
        "CI_JOB_TOKEN",
        "DEPLOY_KEY",
    ),
    "hush-90c1",
)
TELLING = """#!/bin/sh
env >> "{seen}"
for last; do :; done
case $* in *"-m venv"*) mkdir -p "$last/bin" && cp "$0" "$last/bin/python" ;; esac
"""


def environments(script: str, directory: Path, environ: dict[str, str]) -> tuple[str, str]:
    """Run a script that installs gpolicy; return the environment of every Python and of every git in it."""
    programs, seen, by_git = directory / "programs", directory / "seen", directory / "seen-by-git"
    programs.mkdir()
    git = f'#!/bin/sh\nenv >> "{by_git}"\nexec "{shutil.which("git")}" "$@"\n'
    for name, text in {"python3": TELLING.format(seen=seen), "git": git}.items():
        (programs / name).write_text(text, encoding="utf-8")
        (programs / name).chmod(0o755)
    everything = {"PATH": f"{programs}:{os.environ['PATH']}", **SECRETS, "PYTHON": str(programs / "python3"), **environ}
    subprocess.run([BASH, "-eo", "pipefail", "-c", script], cwd=directory, env=everything, check=True)
    return seen.read_text(encoding="utf-8"), by_git.read_text(encoding="utf-8") if by_git.exists() else ""


def repository(directory: Path, files: dict[str, str]) -> dict[str, str]:
    """Make a git repository of files; return the inputs by which the GitLab component finds it."""

    def git(*arguments: str) -> str:
        own = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
        command = ["git", "-C", str(directory), *own, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text, encoding="utf-8")
        (directory / name).chmod(0o755)
    git("init", "--quiet")
    git("add", "--all")
    git("commit", "--quiet", "--message", "all")
    return {"source": str(directory), "commit": git("rev-parse", "HEAD")}


def component(inputs: dict[str, str]) -> dict[str, Any]:
    """Return the GitLab component with its inputs, as GitLab does: its only job."""
    header, _, body = COMPONENT.read_text(encoding="utf-8").partition("\n---\n")
    known = yaml.safe_load(header)["spec"]["inputs"]
    assert set(inputs) <= set(known)
    given = {name: inputs.get(name, about.get("default")) for name, about in known.items()}
    missing = [name for name, value in given.items() if value is None]
    assert not missing, f"an input has no value: {missing}"

    def filled(value: Any) -> Any:
        match value:
            case str():
                return re.sub(r"\$\[\[ inputs\.([a-z-]+) \]\]", lambda found: str(given[found[1]]), value)
            case dict():
                return {filled(key): filled(item) for key, item in value.items()}
            case list():
                return [filled(item) for item in value]
        return value

    filled_in: dict[str, Any] = filled(yaml.safe_load(body))
    return filled_in


def run_job(workspace: Path, inputs: dict[str, str], environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the job of the GitLab component as its runner does: one shell, with its variables, which may name others."""
    (job,) = component(inputs).values()
    script = "\n".join([*job["before_script"], *job["script"]])
    variables = {
        name: re.sub(r"\$([A-Z_]+)", lambda found: environ.get(found[1], ""), str(value))
        for name, value in job["variables"].items()
    }
    everything = {"PATH": os.environ["PATH"], **environ, **variables}
    shell = [BASH, "-eo", "pipefail", "-c", script]
    return subprocess.run(shell, cwd=workspace, env=everything, capture_output=True, text=True, check=False)
