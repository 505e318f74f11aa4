"""Start-up time: the modules that gpolicy may import before it needs them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command_line import ROOT, policy

HEAVY = {
    *("jsonschema", "numpy", "jinja2", "ruamel", "hypothesis", "pytest", "rich", "referencing"),
    *("http", "ssl", "subprocess", "urllib.request", "socket", "asyncio", "multiprocessing", "email"),
    *("gpolicy.plan", "gpolicy.render", "gpolicy.adopt", "gpolicy.allocator"),
    *("gpolicy.cluster.rapi", "gpolicy.cluster.rapi_client", "gpolicy.cluster.state_files"),
}
BY_TYPER = {"subprocess", "socket", "email"}
"""Not ours to choose: what a release of Typer imports itself."""


def imported(*arguments: str) -> set[str]:
    """Return the modules that a run of gpolicy leaves imported."""
    script = (
        "import sys; before = set(sys.modules); sys.argv = ['gpolicy', *sys.argv[1:]]\n"
        "from gpolicy.__main__ import main\n"
        "code = main()\n"
        "print('\\n'.join(sorted(set(sys.modules) - before)), file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {[str(ROOT), *sys.path]!r}\n{script}", *arguments],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines())


def loads(modules: set[str], names: set[str]) -> set[str]:
    return {name for name in names if any(item == name or item.startswith(f"{name}.") for item in modules)}


def test_the_version_needs_nothing() -> None:
    modules = imported("--version")
    own = {"gpolicy", "gpolicy.__main__", "gpolicy.versions", "gpolicy.ganeti", "gpolicy.ganeti.releases"}
    assert {item for item in modules if item.startswith("gpolicy")} == own
    assert loads(modules, HEAVY | {"typer", "yaml", "json", "dataclasses"}) == set()


@pytest.mark.parametrize("arguments", [["--help"], ["plan", "--help"]])
def test_help_needs_the_command_line_only(arguments: list[str]) -> None:
    assert loads(imported(*arguments), HEAVY - BY_TYPER | {"yaml", "json", "gpolicy.policy", "gpolicy.ganeti"}) <= {
        "json"
    }


def test_a_verb_needs_its_own_module_only() -> None:
    verbs = {item for item in imported("plan", "--help") if item.startswith("gpolicy.cli.verbs.")}
    assert verbs == {"gpolicy.cli.verbs.changes"}


def test_a_check_of_a_good_policy_validates_by_itself(tmp_path: Path) -> None:
    modules = imported("check", str(policy(tmp_path, "ipolicy: {vcpu-ratio: 4}\n")))
    assert "gpolicy.checking.checking" in modules
    assert loads(modules, HEAVY - BY_TYPER) == set()


NUMBERS = {"gpolicy.allocator", "gpolicy.analysis", "gpolicy.impact", "gpolicy.plan"}


@pytest.mark.parametrize(
    ("arguments", "forbidden"),
    [
        (["show", "policies/two-groups"], NUMBERS),
        (["explain", "GP205"], NUMBERS),
        (["fmt", "--check", "policies/two-groups"], NUMBERS | {"gpolicy.checking", "gpolicy.rules"}),
    ],
)
def test_what_needs_no_numbers_loads_none(arguments: list[str], forbidden: set[str]) -> None:
    assert loads(imported(*(str(ROOT / word) if "/" in word else word for word in arguments)), forbidden) == set()


HTOOLS = {
    *("typer", "click", "yaml", "fractions", "argparse", "shutil", "textwrap", "gpolicy.report", "gpolicy.policy"),
    *("typing", "dataclasses", "inspect", "decimal", "contextlib"),
}
"""Modules that hspace and hail never need; those of the second line take as long as Ganeti's own hail for an answer."""


def htools_modules(modules: set[str]) -> set[str]:
    return {item.removeprefix("gpolicy.htools.") for item in modules if item.startswith("gpolicy.htools.")}


def test_htools_help_needs_no_allocator() -> None:
    modules = imported("htools", "--help")
    assert loads(modules, HEAVY | HTOOLS | {"gpolicy.cli.app"}) == set()
    assert htools_modules(modules) == set()


SPEC = {"memory": 128, "vcpus": 1, "disks": [], "disk_space_total": 0, "disk_template": "diskless"}
NEW = {"name": "new", "tags": [], "nics": [], "spindle_use": 1, "required_nodes": 1, **SPEC}


@pytest.mark.parametrize(
    ("request_", "own", "unused"),
    [
        ({"type": "allocate", **NEW}, "hail_placing", "evacuation"),
        ({"type": "node-evacuate", "instances": [], "evac_mode": "primary-only"}, "hail_moving", "engines"),
    ],
)
def test_hail_imports_what_a_request_needs(request_: dict[str, object], own: str, unused: str, tmp_path: Path) -> None:
    examples = ROOT / "tests" / "data" / "allocator" / "evacuation-examples.jsonl"
    document = json.loads(examples.read_text().splitlines()[0])["request"]
    path = tmp_path / "request.json"
    path.write_text(json.dumps({**document, "request": request_}))
    modules = imported("htools", "hail", str(path))
    assert loads(modules, (HEAVY | HTOOLS) - {"gpolicy.allocator"}) == set()
    rest = {f"gpolicy.allocator.{name}" for name in (unused, "compiled_allocation", "repeated_allocation")}
    assert loads(modules, {"gpolicy.cli.app", "gpolicy.cli.terminal", *rest}) == set()
    common = {"backends", "program_options"}
    assert htools_modules(modules) == {*common, "hail", own, "json_fields"}


def test_hspace_imports_what_a_count_needs(tmp_path: Path) -> None:
    path = tmp_path / "cluster"
    path.write_text("g|u|preferred||\n\nn|1024|0|1024|9000|9000|4|N|u\n\n\n\n")
    modules = imported("htools", "hspace", "-t", str(path), "--disk-template=plain", "--machine-readable")
    assert loads(modules, (HEAVY | HTOOLS | {"json"}) - {"gpolicy.allocator"}) == set()
    assert loads(modules, {"gpolicy.cli.app", "gpolicy.cli.terminal", "gpolicy.allocator.requests"}) == set()
    common = {"backends", "program_options"}
    assert htools_modules(modules) == {*common, "hspace", "text_format"}
