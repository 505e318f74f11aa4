"""What `import gpolicy` gives."""

from __future__ import annotations

import ast
import inspect
import json
import re
import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

import gpolicy
from tests.cli.command_line import gpolicy as command_line

ROOT = Path(__file__).resolve().parents[2]
STATE = f"snapshot:{ROOT / 'policies' / 'two-groups.snapshot.json'}"
POLICY = ROOT / "policies" / "two-groups"
TODAY = date(2026, 11, 1)


def test_type_checkers_and_programs_see_the_same_names() -> None:
    tree = ast.parse((ROOT / "gpolicy" / "__init__.py").read_text())
    imports = [item for item in ast.walk(tree) if isinstance(item, ast.ImportFrom) and item.level == 0]
    named = {name.name: item.module for item in imports for name in item.names if name.name != "import_module"}
    assert named == {name: f"gpolicy.{module}" for name, module in gpolicy.PUBLIC.items()}
    assert all(callable(getattr(gpolicy, name)) for name in gpolicy.PUBLIC)
    assert gpolicy.PUBLIC.keys() <= set(dir(gpolicy))


OF_PYTHON = {"Callable", "FilePath", "Iterable", "Mapping", "None", "Path", "Sequence"}
ONLY_OURS = {"Agree", "Hit", "Runner", "SizeWords", "Weights", "Working"}
"""Types in signatures that no caller has to name: functions, tuples, and what only the command line passes."""


def test_what_signatures_name_is_public() -> None:
    named = set[str]()
    for function in filter(inspect.isfunction, (getattr(gpolicy, name) for name in gpolicy.PUBLIC)):
        signature = inspect.signature(function)
        kinds = [signature.return_annotation, *(item.annotation for item in signature.parameters.values())]
        named.update(word for kind in kinds for word in re.findall(r"\b[A-Z]\w+", kind) if word not in OF_PYTHON)
    assert named - gpolicy.PUBLIC.keys() == ONLY_OURS


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'capacity_of'"):
        _ = gpolicy.capacity_of


def test_importing_it_imports_nothing_else() -> None:
    code = "import sys; before = {*sys.modules}; import gpolicy; print(*sorted({*sys.modules} - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.split() == ["gpolicy"]


@pytest.mark.parametrize("module", sorted((ROOT / "gpolicy" / "use_cases").glob("*.py")), ids=lambda path: path.stem)
def test_use_cases_print_nothing_and_ask_neither_clock_nor_environment(module: Path) -> None:
    assert not re.search(r"\b(print|open|now|input)\(|import (time|os|sys)\b", module.read_text())


def test_the_capacity_is_that_of_the_command_line() -> None:
    state = gpolicy.read_state(STATE)
    checked = gpolicy.check_policy(gpolicy.load_policy(POLICY), state, today=TODAY)
    report = gpolicy.count_capacity(gpolicy.open_cluster(state, checked))
    told = json.loads(command_line("capacity", str(POLICY), "--state", STATE, "--format", "json").stdout)
    assert [(group.group, group.tiered_fit.fits) for group in report.groups] == [
        (group["group"], sum(size["count"] for size in group["tiered"]["sizes"])) for group in told["groups"]
    ]


def test_a_policy_with_an_error_says_which(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text("gpolicy: v1\nkind: Cluster\nname: a.example.org\nndparams: {ssh_port: 0}\n")
    checked = gpolicy.check_policy(gpolicy.load_policy(tmp_path), today=TODAY)
    with pytest.raises(gpolicy.PolicyError, match=r"the policy has 1 error: .*policy\.yaml:4:22: ") as raised:
        gpolicy.open_cluster(gpolicy.read_state(STATE), checked)
    assert raised.value.findings == checked.errors


@pytest.mark.parametrize("declared", [True, False])
def test_an_evacuation_counts_as_the_cluster_was_opened(declared: bool) -> None:
    cluster = gpolicy.open_cluster(gpolicy.read_state(STATE), resource_model=declared)
    assert gpolicy.find_evacuation(cluster, gpolicy.EvacuationRequest(nodes="node1")).asked.resource_model is declared


def _examples() -> list[str]:
    functions = filter(inspect.isfunction, (getattr(gpolicy, name) for name in gpolicy.PUBLIC))
    said = (inspect.getdoc(function) or "" for function in functions)
    return [found for text in said for found in re.findall(r"For example, [^`]*`([^`]+)`", " ".join(text.split()))]


CHANGES_A_CLUSTER = re.compile(r"(apply_plan|roll_out|write_policy)\(")


@pytest.mark.parametrize("example", _examples())
def test_the_examples_of_the_functions_run(example: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shutil.copytree(POLICY, tmp_path / "policies" / "berlin")
    shutil.copy(STATE.removeprefix("snapshot:"), tmp_path / "berlin.json")
    monkeypatch.chdir(tmp_path)
    state = gpolicy.read_state("snapshot:berlin.json")
    checked = gpolicy.check_policy(gpolicy.load_policy(Path("policies/berlin")), state, today=TODAY)
    names = {name: getattr(gpolicy, name) for name in gpolicy.PUBLIC} | {"Path": Path, "date": date}
    values = {"state": state, "checked": checked, "cluster": gpolicy.open_cluster(state, checked)}
    code = re.sub(r"^assert ", "", example)
    if not CHANGES_A_CLUSTER.match(code):
        exec(code, names | values)  # noqa: S102 (our own docstrings)


def test_the_examples_of_the_guide_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(ROOT)
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "guides" / "python.md").read_text(), re.DOTALL)
    names: dict[str, object] = {}
    for example in examples:
        exec(compile(example, "python.md", "exec"), names)  # noqa: S102 (our own page)
    assert "shared 10" in capsys.readouterr().out
    content = names["content"]
    assert isinstance(content, bytes)
    (tmp_path / "plan.json").write_bytes(content)
    assert gpolicy.dump_plan(gpolicy.read_plan(tmp_path / "plan.json")) == content
    tests = [item for name, item in names.items() if name.startswith("test_") and callable(item)]
    assert len(tests) == 3
    for test in tests:
        test()
