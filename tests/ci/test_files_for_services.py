"""Files for CI services conform to their documentation: by check-jsonschema's own schemas, and actionlint."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.ci.services import ROOT, component, repository
from tests.cli.command_line import gpolicy

PAGE = (ROOT / "docs" / "guides" / "ci.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```yaml\n# (\S+)(?: \(or \S+\))?\n(.*?)```", PAGE, re.DOTALL)
HAS_SCHEMAS = Path(sys.executable).with_name("check-jsonschema").exists()


def of_page(name: str) -> list[str]:
    """Return the examples of the page for files whose names begin so."""
    found = [text for file, text in BLOCKS if file.startswith(name)]
    assert found
    return found


OF_SCHEMA = {
    ("vendor.github-actions",): [(ROOT / "action.yml").read_text(encoding="utf-8")],
    ("vendor.github-workflows",): [*of_page(".github/workflows/"), *of_page(".gitea/workflows/")],
    ("vendor.gitlab-ci", "--data-transform", "gitlab-ci"): [
        *of_page(".gitlab-ci.yml"),
        yaml.safe_dump(component({"source": "https://x", "commit": 40 * "0"})),
    ],
}


@pytest.mark.skipif(not HAS_SCHEMAS, reason="check-jsonschema is not installed (extra dev)")
@pytest.mark.parametrize("schema", OF_SCHEMA, ids=" ".join)
def test_files_and_the_examples_of_the_page_have_their_form(schema: tuple[str, ...], tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.yml" for number in range(len(OF_SCHEMA[schema]))]
    for file, text in zip(files, OF_SCHEMA[schema], strict=True):
        file.write_text(text, encoding="utf-8")
    command = [str(Path(sys.executable).with_name("check-jsonschema")), "--builtin-schema", *schema, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("service", ["github", "gitlab"])
def test_init_writes_the_workflow_of_the_page_and_says_what_to_set(service: str, tmp_path: Path) -> None:
    repository(tmp_path, {"README": "x"})
    template = (ROOT / "templates" / f"workflow.{service}.yml").read_text(encoding="utf-8")
    assert f"```yaml\n{template}```" in PAGE
    done = gpolicy("init", "policies/ham", "--ci", service, cwd=tmp_path)
    assert done.returncode == 0
    name = template.split("\n", 1)[0].removeprefix("# ")
    written = (tmp_path / name).read_text(encoding="utf-8")
    assert written == template.replace("path: policies", "path: policies/ham")
    lines = dict(re.findall(r"^  line (\d+): (.*)$", done.stdout, re.MULTILINE))
    assert len(lines) == template.count("# set: ")
    rows = ["", *written.splitlines()]
    for number, text in lines.items():  # a comment alone is about the line below
        assert any(row.endswith(f"# set: {text}") for row in rows[int(number) - 1 : int(number) + 1])
        assert not rows[int(number)].startswith(" ") or not rows[int(number)].lstrip().startswith("#")
    again = gpolicy("init", "policies/other", "--ci", service, cwd=tmp_path)
    assert again.returncode == 3
    assert f"{name}: exists already" in again.stderr
    assert not (tmp_path / "policies" / "other").exists()


def test_beside_settings_that_name_clusters_the_workflow_plans_them_all(tmp_path: Path) -> None:
    settings, policy = '[clusters.ham]\nstate = "rapi://ham.example.org"\n', "gpolicy: v1\nkind: NodeGroup\nname: a\n"
    repository(tmp_path, {"gpolicy.toml": settings, "ham/a.yaml": policy})
    for service, file in (("github", ".github/workflows/policy.yml"), ("gitlab", ".gitlab-ci.yml")):
        gpolicy("init", ".", "--ci", service, cwd=tmp_path)
        text = (tmp_path / file).read_text(encoding="utf-8")
        assert re.search(r'path: "\."\n +clusters: all\n', text)
        assert "state:" not in text


def test_init_leaves_a_policy_as_it_is(tmp_path: Path) -> None:
    repository(tmp_path, {"README": "x"})
    (tmp_path / "prod").mkdir()
    (tmp_path / "prod" / "a.yaml").write_text("gpolicy: v1\nkind: NodeGroup\nname: gold\n", encoding="utf-8")
    assert gpolicy("init", "prod", "--ci", "github", cwd=tmp_path).returncode == 0
    assert [file.name for file in (tmp_path / "prod").rglob("*")] == ["a.yaml"]
    assert "path: prod\n" in (tmp_path / ".github" / "workflows" / "policy.yml").read_text(encoding="utf-8")


def test_the_page_shows_how_to_use_pre_commit() -> None:
    (text,) = of_page(".pre-commit-config.yaml")
    assert yaml.safe_load(text)["repos"]


@pytest.mark.skipif(shutil.which("actionlint") is None, reason="no actionlint on the PATH")
def test_actionlint_finds_nothing_in_the_workflows_of_the_page(tmp_path: Path) -> None:
    for name, text in BLOCKS:
        if name.startswith(".github/"):
            file = tmp_path / Path(name).name
            file.write_text(text, encoding="utf-8")
            done = subprocess.run(["actionlint", file], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout


def test_the_workflows_of_the_page_use_inputs_that_there_are() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    workflows = [yaml.safe_load(text) for text in of_page(".github/workflows/")]
    steps = [step for workflow in workflows for job in workflow["jobs"].values() for step in job["steps"]]
    given = [step["with"] for step in steps if step["uses"].startswith("example/gpolicy@")]
    assert len(given) == 3
    assert all(set(inputs) <= set(action["inputs"]) for inputs in given)
    assert all(re.fullmatch(r"[a-z-]+(/[a-z-]+)+@[0-9a-f]{40}", step["uses"]) for step in steps)


def test_the_hooks_run_commands_that_there_are() -> None:
    from gpolicy.cli.app import VERBS

    for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")):
        program, verb = hook["entry"].split()
        assert program == "gpolicy"
        assert verb in VERBS, hook["id"]


@pytest.mark.skipif(not Path(sys.executable).with_name("pre-commit").exists(), reason="no pre-commit (extra dev)")
def test_a_commit_that_only_deletes_a_file_is_checked(tmp_path: Path, warm_python: Path) -> None:
    """By pre-commit itself; only where its hooks are installed from is another place."""
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    for hook in hooks:
        hook |= {"language": "system", "entry": f"{warm_python} -I -m {hook['entry']}"}
        hook["args"] = [] if hook["id"] == "gpolicy-fmt" else ["policies"]
    policies = tmp_path / "policies"
    shutil.copytree(ROOT / "policies" / "two-groups", policies)
    (policies / "small.yaml").write_text("gpolicy: v1\nkind: NodeGroup\nname: small\nextends: base\n")
    (policies / "base.yaml").write_text("gpolicy: v1\nkind: NodeGroup\nname: base\ntemplate: true\n")
    config = {"repos": [{"repo": "local", "hooks": hooks}]}
    (tmp_path / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    repository(tmp_path, {})

    def commit() -> str:
        command = [str(Path(sys.executable).with_name("pre-commit")), "run"]
        environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PRE_COMMIT_HOME": str(tmp_path / ".cache")}
        return subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False).stdout

    assert re.findall(r"gpolicy (\w+)\.+.*(Passed|Skipped|Failed)\n", commit()) == [
        ("check", "Passed"), ("fmt", "Skipped"), ("test", "Passed"),
    ]  # fmt: skip
    subprocess.run(["git", "rm", "--quiet", "policies/base.yaml"], cwd=tmp_path, check=True)
    said = commit()
    assert "GP021" in said
    assert re.findall(r"gpolicy (\w+)\.+.*(Passed|Skipped|Failed)\n", said)[0] == ("check", "Failed")


def test_the_rules_in_rego_find_what_is_risky_and_what_fails(tmp_path: Path) -> None:
    """By another implementation of Rego than OPA's."""
    regopy = pytest.importorskip("regopy", reason="regopy is not installed (extra dev)")
    (rules,) = re.findall(r"```rego\n(.*?)```", PAGE, re.DOTALL)
    plan = tmp_path / "plan.json"
    state = f"snapshot:{ROOT / 'policies' / 'two-groups.snapshot.json'}"
    gpolicy("plan", ROOT / "policies" / "two-groups", "--state", state, "--no-impact", "--save", plan)
    data = json.loads(plan.read_text(encoding="utf-8"))
    failing = [guard["name"] for guard in data["guards"] if not guard["ok"]]
    assert failing

    def denied() -> list[str]:
        interpreter = regopy.Interpreter()
        interpreter.add_module("ganeti.rego", rules)
        interpreter.set_input(data)
        (found,) = json.loads(str(interpreter.query("data.main.deny")))["expressions"]
        return sorted(found)

    assert [message.split(":")[0] for message in denied()] == sorted(f"guard {name}" for name in failing)
    data["changes"][0]["risk"] = "high"
    data["guards"] = []
    change = data["changes"][0]
    assert denied() == [f"{change['object']} {change['path']} is risky: high"]
