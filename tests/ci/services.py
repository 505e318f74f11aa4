"""Run what the GitHub Action and the GitLab template say, as a runner would: their own shell, in a directory."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
TEMPLATE: dict[str, Any] = yaml.safe_load((ROOT / "ci" / "gitlab" / "gpolicy.yml").read_text(encoding="utf-8"))
STATE = f"snapshot:{ROOT / 'policies' / 'two-groups.snapshot.json'}"
BROKEN = "gpolicy: v1\nkind: NodeGroup\nname: shared\nipolicy:\n  vcpu-ration: 4\n"
_EXPRESSION = re.compile(r"\$\{\{ *(.*?) *\}\}")


@dataclass
class Run:
    """What came of an action: exit code of the last step that ran, and what all of them wrote."""

    code: int = 0
    log: str = ""
    summary: str = ""
    ran: list[str] = field(default_factory=list)
    outputs: dict[str, str] = field(default_factory=dict)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    directory = tmp_path / "checkout"
    shutil.copytree(ROOT / "policies" / "two-groups", directory / "policy")
    return directory


def declared_guards(policy: Path) -> str:
    """Return the names of the guards that a policy declares, with spaces between."""
    return " ".join(re.findall(r"name: ([a-z0-9-]+)", (policy / "guards.yaml").read_text(encoding="utf-8")))


def installed(directory: Path) -> Path:
    """Make the environment that the Install step makes, of this checkout; return its directory of programs."""
    programs = directory / "gpolicy" / "venv" / "bin"
    programs.mkdir(parents=True, exist_ok=True)
    run = f'PYTHONPATH="{ROOT}" exec "{sys.executable}"'
    for name, command in {"gpolicy": f'{run} -m gpolicy "$@"', "python": f'{run} "$@"'}.items():
        (programs / name).write_text(f"#!/bin/sh\n{command}\n", encoding="utf-8")
        (programs / name).chmod(0o755)
    return programs


def run_action(directory: Path, workspace: Path, inputs: dict[str, str], environ: dict[str, str], *, fork: bool) -> Run:
    """Run the steps of the action that are shell, but the installation, each when its condition holds."""
    installed(directory)
    result = Run()
    files = {name: directory / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    defaults = {name: str(about.get("default", "")) for name, about in ACTION["inputs"].items()}
    context = {f"inputs.{name}": value for name, value in (defaults | inputs).items()}
    context |= {"github.event.pull_request.head.repo.fork": "true" if fork else "false", "runner.temp": str(directory)}
    context["github.action_path"] = str(ROOT)
    for step in STEPS:
        if "run" not in step or step["name"] == "Install gpolicy" or not holds(step.get("if", ""), context):
            continue
        for file in files.values():
            file.touch()
        files["GITHUB_OUTPUT"].write_text("", encoding="utf-8")
        own = {name: resolved(value, context) for name, value in step["env"].items()}
        shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
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
    """Return whether a condition of the form `NAME == VALUE && …` holds."""
    for part in filter(None, condition.split(" && ")):
        name, operator, wanted = part.split(" ")
        if (context.get(name, "") == wanted.strip("'")) is not (operator == "=="):
            return False
    return True


SECRETS = dict.fromkeys(("GPOLICY_RAPI_USER", "GPOLICY_RAPI_PASSWORD", "GPOLICY_GITLAB_TOKEN"), "secret")


def environment_of_pip(script: str, directory: Path, environ: dict[str, str]) -> str:
    """Run a script that makes an environment and installs into it; return what pip finds in its environment variables.

    `python -m venv DIRECTORY` is stood in for: what it makes holds a pip that writes down its variables.
    """
    seen = directory / "seen"
    pip = f'#!/bin/sh\nenv > "{seen}"\n'
    python = (
        "#!/bin/sh\n"
        f'mkdir -p "$3/bin" && cp "{directory}/pip" "$3/bin/pip" && echo "PATH=$3/bin:\\$PATH" > "$3/bin/activate"\n'
    )
    for name, text in {"pip": pip, "python": python}.items():
        (directory / name).write_text(text, encoding="utf-8")
        (directory / name).chmod(0o755)
    everything = {"PATH": f"{directory}:{os.environ['PATH']}", **SECRETS, **environ}
    subprocess.run(["bash", "-eo", "pipefail", "-c", script], cwd=directory, env=everything, check=True)
    return seen.read_text(encoding="utf-8")


def run_job(name: str, workspace: Path, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the script of a job of the GitLab template as its runner does, with the variables of the template."""
    programs = installed(workspace.parent / f"programs-{name.replace(':', '-')}")
    script = "\n".join(TEMPLATE[name]["script"])
    everything = {"PATH": f"{programs}:{os.environ['PATH']}", **TEMPLATE["variables"], **environ}
    shell = ["bash", "-eo", "pipefail", "-c", script]
    return subprocess.run(shell, cwd=workspace, env=everything, capture_output=True, text=True, check=False)
