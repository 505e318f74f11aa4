"""The arrows of docs/architecture.md: who may import whom."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Set as AbstractSet
from pathlib import Path
from typing import Any

import pytest
import typer.main

from gpolicy.cli.app import VERBS, app
from gpolicy.cli.terminal import in_options
from gpolicy.errors import GpolicyError, argument

PACKAGE = Path(__file__).resolve().parent.parent / "gpolicy"
COMMON = {
    "errors",
    "findings",
    "data",
    "guessing",
    "json_values",
    "light_dataclasses",
    "opening",
    "printable",
    "progress",
    "provenance",
}
COMMON |= {"__init__"}
MAY_IMPORT = {
    "ganeti": set[str](),
    "policy": {"ganeti"},
    "cluster": {"ganeti"},
    "fleet": {"cluster", "policy"},
    "resolve": {"ganeti", "policy", "cluster"},
    "checking": {"ganeti", "policy", "cluster", "resolve"},
    "rules": {"ganeti", "policy", "cluster", "resolve", "checking", "show"},
    "forecast": {"ganeti", "cluster", "policy", "resolve", "checking", "plan", "impact", "analysis", "testing"},
    "plan": {"ganeti", "policy", "cluster", "resolve"},
    "render": {"ganeti", "plan"},
    "apply": {"ganeti", "cluster", "plan", "analysis", "impact", "remedy"},
    "rollout": {"ganeti", "cluster", "fleet", "plan", "apply"},
    "formatting": {"policy", "writing"},
    "writing": {"ganeti", "policy"},
    "adopt": {"ganeti", "policy", "cluster", "resolve", "checking", "forecast", "plan", "impact", "drift", "writing"},
    "show": {"ganeti", "policy", "cluster"},
    "analysis": {"ganeti", "cluster", "allocator", "policy"},
    "growth": {"cluster", "fleet", "allocator", "analysis"},
    "impact": {"ganeti", "cluster", "allocator", "policy", "plan", "analysis", "remedy"},
    "drift": {"ganeti", "policy", "cluster", "resolve", "checking", "forecast", "plan", "writing"},
    "suggest": {"ganeti", "policy", "cluster", "allocator", "analysis", "writing", "what_if"},
    "testing": {"ganeti", "policy", "cluster", "resolve", "plan", "analysis", "allocator", "what_if"},
    "what_if": {"ganeti", "cluster", "allocator", "analysis"},
    "evacuate": {"ganeti", "cluster", "allocator", "analysis", "what_if", "htools", "remedy"},
    "report": {"policy", "ganeti", "cluster", "plan", "apply", "allocator", "analysis", "impact"}
    | {"suggest", "testing", "drift", "show", "writing", "rollout", "what_if", "evacuate", "remedy", "growth"},
    "remedy": {"ganeti", "cluster", "allocator", "analysis", "htools", "plan", "render"},
    "reference": {"ganeti", "policy", "checking"},
    "posting": {"__main__"},
    "allocator": set[str](),
    "htools": {"allocator", "analysis", "cluster", "ganeti"},
    "use_cases": {"policy", "cluster", "resolve", "checking", "forecast", "plan", "impact", "apply", "analysis"}
    | {"allocator", "what_if", "suggest", "evacuate", "remedy", "testing", "drift", "show", "growth"}
    | {"formatting", "writing", "fleet", "rollout"},
}

MAY_NAME = {room: {"plan", "impact", "analysis", "testing"} for room in ("checking", "rules")}
"""Whose types a room may name without importing them at run time: `forecast` gives their values to rules."""


def _rooms() -> list[str]:
    return sorted(path.name for path in PACKAGE.iterdir() if path.is_dir() and any(path.rglob("*.py")))


def _imported_rooms(file: Path, may_name: AbstractSet[str] = frozenset()) -> set[str]:
    """Return the rooms that a module imports, also inside functions; of those in `may_name` types do not count."""
    found: set[str] = set()
    tree = ast.parse(file.read_text(encoding="utf-8"))
    types = {node for item in tree.body if _is_for_types(item) for node in ast.walk(item)}
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            module = node.module or ""
            names = [f"{module}.{alias.name}" for alias in node.names] if module == "gpolicy" else [module]
        rooms = {name.split(".")[1] for name in names if name.startswith("gpolicy.")}
        found |= rooms - may_name if node in types else rooms
    return found


def _is_for_types(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


@pytest.mark.parametrize("room", [room for room in _rooms() if room != "cli"])
def test_a_room_imports_only_allowed_rooms(room: str) -> None:
    assert room in MAY_IMPORT, f"say in docs/architecture.md and here what {room} may import"
    for file in (PACKAGE / room).rglob("*.py"):
        extra = _imported_rooms(file, MAY_NAME.get(room, set())) - COMMON - {room, "__version__"} - MAY_IMPORT[room]
        assert not extra, f"{file.relative_to(PACKAGE)} imports {', '.join(sorted(extra))}"


def test_the_common_modules_import_no_room() -> None:
    for name in COMMON:
        types = set(_rooms()) if name == "__init__" else set[str]()  # it names the public interface
        assert _imported_rooms(PACKAGE / f"{name}.py", types) <= COMMON


STARTS_PROGRAMS = {"cluster/process.py"}
"""Who may start another program: with an environment of its own making, without passwords and tokens."""

COPIES_ITSELF = {"fleet/workers.py"}
"""Who may start copies of this process."""


def test_no_rule_imports_another() -> None:
    """What several rules ask stands in modules without rules."""
    texts = {file: file.read_text(encoding="utf-8") for file in (PACKAGE / "rules").rglob("*.py")}
    rules = {file for file, text in texts.items() if re.search(r"^@(error|warning|information)\(", text, re.MULTILINE)}
    assert len(rules) > 20
    names = {".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts) for file in rules}
    for file, text in texts.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom):
                asked = {f"{node.module}", *(f"{node.module}.{name.name}" for name in node.names)}
                assert not names & asked, file


CODE = re.compile(r"\bGP[0-9]")
MAY_NAME_CODES = {
    "findings.py": "the families, and the code that house rules share",
    "checking/accepting.py": "an example in a hint",
    "checking/settings_tables.py": "an example in a hint",
    "report/drift_answer.py": "the values that the schema of its JSON lists",
}
"""Where codes stand beside the rules that have them."""


def test_a_code_stands_only_where_its_rule_is_declared() -> None:
    """What a rule is to others stands on it as data: others ask for its role, not for its code."""
    texts = {file: file.read_text(encoding="utf-8") for file in PACKAGE.rglob("*.py")}
    found = {str(file.relative_to(PACKAGE)): _codes_in(text) for file, text in texts.items() if CODE.search(text)}
    assert {file for file, codes in found.items() if codes} == MAY_NAME_CODES.keys(), found


def test_codes_in_code_are_seen() -> None:
    text = '''"""GP101."""\n_BETTER = "GP102"\n_OTHER = ("GP2", f"the GP104 of {1}", "GP")\nX = error_rule("GP001", "x")
@error("GP103", better=_BETTER)\ndef rule(context):\n    """Not GP105."""\n    return context.found_by("GP106")\n'''
    assert _codes_in(text) == {"GP2", "the GP104 of ", "GP106"}


def _codes_in(text: str) -> set[str]:
    """Return the texts with codes of rules or families that stand neither on a rule nor in documentation."""
    tree = ast.parse(text)
    decorators = [item for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) for item in node.decorator_list]
    named = {node.id for item in decorators for node in ast.walk(item) if isinstance(node, ast.Name)}
    of_rules: list[ast.AST] = [*decorators]
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant()):
                of_rules.append(node)
            case ast.Call(func=ast.Name(id="error_rule" | "warning_rule" | "RuleInfo")):
                of_rules.append(node)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)) if name in named:
                of_rules.append(node)
    left_out = {node for item in of_rules for node in ast.walk(item)}
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and node not in left_out]
    return {item.value for item in texts if isinstance(item.value, str) and CODE.search(item.value)}


def test_programs_are_started_in_one_place() -> None:
    """Others may name constants and types of `subprocess`."""
    starting = {"Popen", "run", "call", "check_call", "check_output", "getoutput", "getstatusoutput"}
    of_os = ("system", "popen", "exec", "spawn", "posix_spawn", "fork")
    found = set[str]()
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="subprocess"), attr=name)) if name in starting:
                    found.add(str(file.relative_to(PACKAGE)))
                case ast.Attribute(value=ast.Name(id="os"), attr=name) if name.startswith(of_os):
                    found.add(str(file.relative_to(PACKAGE)))
                case ast.ImportFrom(module="subprocess" | "os" | "pty" | "multiprocessing" as module, names=names):
                    taken = {alias.name for alias in names}
                    if (
                        module not in {"os", "subprocess"}
                        or taken & starting
                        or any(n.startswith(of_os) for n in taken)
                    ):
                        found.add(str(file.relative_to(PACKAGE)))
                case ast.Import(names=names) if {alias.name for alias in names} & {"pty", "multiprocessing"}:
                    found.add(str(file.relative_to(PACKAGE)))
    assert found == STARTS_PROGRAMS | COPIES_ITSELF


NAMES_OPTIONS = {
    "__main__.py": {"--version"},  # reads the command line
    "reference/explaining.py": {"--state", "--fix"},  # what `gpolicy explain` says
    # other programs have options of the same names
    "evacuate/evacuating.py": {"--offline", "--to", "--ignore-soft-errors"},
    "ganeti/tables.py": {"--quiet"},
    # notes, reasons, findings and outcomes of tests: reports show them as they are
    "analysis/allocator_input.py": {"--resource-model", "--without", "--offline"},
    "analysis/place_report.py": {"--ignore-ipolicy"},
    "analysis/shown_score.py": {"--weight"},
    "analysis/size_words.py": {"--policy"},
    "cluster/volume_pools.py": {"--physical-volumes"},
    "drift/write_back.py": {"--in-bases"},
    "plan/part.py": {"--only", "--exclude"},
    "plan/sides.py": {"--physical-volumes"},
    "policy/schema_errors.py": {"--state"},
    "rules/against_cluster/verdicts.py": {"--allow"},
    "suggest/grounds.py": {"--pv-size"},
    "suggest/suggesting.py": {"--seconds"},
    "what_if/load.py": {"--state", "--physical-volumes"},
}
"""The options of gpolicy that texts of the core name. Errors name arguments, for which `cli/` shows its options."""


def _options() -> set[str]:
    root: Any = typer.main.get_command(app)
    context = root.make_context("gpolicy", [], resilient_parsing=True)
    commands = [root, *(root.get_command(context, verb) for verb in VERBS)]
    names = {name for command in commands for item in command.params for name in (*item.opts, *item.secondary_opts)}
    return {name for name in names if name.startswith("--")}


def _core() -> Iterator[tuple[str, ast.AST]]:
    for file in PACKAGE.rglob("*.py"):
        name = str(file.relative_to(PACKAGE))
        if name.partition("/")[0] not in {"cli", "htools", "posting", "report"}:
            yield name, ast.parse(file.read_text(encoding="utf-8"))


def test_texts_of_the_core_name_no_options() -> None:
    """But for whole commands of gpolicy to run next, and what `NAMES_OPTIONS` has."""
    options, found = _options(), dict[str, set[str]]()
    for name, tree in _core():
        nodes = list(ast.walk(tree))
        docstrings = {item.value for item in nodes if isinstance(item, ast.Expr)}
        for item in nodes:
            if isinstance(item, ast.Constant) and isinstance(item.value, str) and item not in docstrings:
                text = re.sub(r"gpolicy [a-z]+[^`;(]*", "", item.value)
                if said := options & set(re.findall(r"--[a-z][a-z-]*", text)):
                    found.setdefault(name, set()).update(said)
    assert found == NAMES_OPTIONS


def test_each_argument_that_an_error_names_has_an_option() -> None:
    options, named = _options(), set[str]()
    for _, tree in _core():
        for item in ast.walk(tree):
            match item:
                case ast.Call(func=ast.Name(id="argument"), args=[ast.Constant(value=str(name))]):
                    named.add(name)
                case ast.Call(func=ast.Name(id="ArgumentError"), args=[ast.Constant(value=str(text)), *_]):
                    named.add(re.split("[ :]", text)[0])
                case ast.Call(
                    func=ast.Name(id="ArgumentError"),
                    args=[ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]), *_],
                ):
                    named.add(re.split("[ :]", text)[0])
    assert len(named) > 20
    assert {in_options(GpolicyError(argument(name)))[0] for name in named} <= options


def test_the_files_of_the_engine_have_no_circles() -> None:
    """A module of the engine is a header and its source; what it includes is begun before it."""
    folder = PACKAGE / "allocator" / "native" / "source"
    includes: dict[str, set[str]] = {}
    for path in folder.glob("*.[ch]"):
        used = {line.split('"')[1].removesuffix(".h") for line in path.read_text().splitlines() if '#include "' in line}
        includes.setdefault(path.stem, set()).update(used - {path.stem})
    done: set[str] = set()
    while ready := {name for name, used in includes.items() if name not in done and used <= done}:
        done |= ready
    assert done == set(includes)


def test_the_page_on_the_allocator_names_its_modules() -> None:
    folder = PACKAGE / "allocator"
    page = (PACKAGE.parent / "docs" / "explanation" / "allocator.md").read_text(encoding="utf-8")
    layout = page.partition("## Modules")[2].partition("## Law and engine")[0]
    cells = [line.split("|")[1] for line in layout.splitlines() if line.startswith("| `")]
    named = {name for cell in cells for name in re.findall(r"`([a-z_/]+)`", cell)}
    modules = {str(path.relative_to(folder).with_suffix("")) for path in folder.rglob("*.py")}
    assert named == {name for name in modules if not name.endswith("__init__")}
