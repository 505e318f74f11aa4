"""Start-up counts: what gpolicy may import before it has something to do with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from command_line import ROOT, policy

HEAVY = {
    *("jsonschema", "numpy", "jinja2", "ruamel", "hypothesis", "pytest", "rich", "referencing"),
    *("http", "ssl", "subprocess", "urllib.request", "socket", "asyncio", "multiprocessing", "email"),
    *("gpolicy.plan", "gpolicy.render", "gpolicy.adopt", "gpolicy.allocator"),
    *("gpolicy.cluster.rapi", "gpolicy.cluster.https", "gpolicy.cluster.config_data", "gpolicy.cluster.snapshot"),
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
    assert {item for item in modules if item.startswith("gpolicy")} == {"gpolicy", "gpolicy.__main__"}
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
    assert "gpolicy.rules.checking" in modules
    assert loads(modules, HEAVY - BY_TYPER) == set()
