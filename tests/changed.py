"""The test files that a change can reach: `python -m tests.changed REF` prints them, for `scripts/test --changed`.

A test file is reached if it imports a changed module, itself or through others (by ruff's graph of imports, with what
pyproject.toml says of modules that are found by their names), or if it is a test of the room of a changed file. A file
that is no module counts as changed the modules that name it, or else its nearest folder. The tests of generated
files and of the architecture always run. What only a whole command line would show is left to `scripts/test`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
RUFF: Final = Path(sys.executable).with_name("ruff")
ALWAYS: Final = ("tests/test_architecture.py", "tests/test_generated.py")
_EVERYWHERE: Final = frozenset({"gpolicy", "tests", "data", "docs", "scripts"})
"""Names of folders that say nothing: too much lies in them."""

_READ_BY_GPOLICY: Final = frozenset({"gpolicy", "schemas", "templates"})
"""Folders with files that gpolicy itself reads; those of all other folders are read by tests only."""


def changed_files(ref: str) -> list[str]:
    """Return what differs from a commit, from the top of the repository: changed, removed, and not yet in git."""
    return [*_lines("git", "diff", "--name-only", ref), *_lines("git", "ls-files", "--others", "--exclude-standard")]


def reached_tests(changed: Iterable[str], imports: Mapping[str, list[str]]) -> list[str]:
    """Return the test files that changed files reach, in order.

    `imports` maps each module of the repository, by its path, to those that it imports.
    """
    importers: dict[str, set[str]] = {}
    for module, imported in imports.items():
        for name in imported:
            importers.setdefault(name, set()).add(module)
    reached_first = [module for file in changed for module in _modules_of(file, imports)]
    waiting, reached = list(reached_first), set(reached_first)
    while waiting:
        new = importers.get(waiting.pop(), set()) - reached
        reached |= new
        waiting += new
    rooms = {room for file in [*changed, *reached_first] if (room := _room(file))}
    tests = {module for module in imports if module.startswith("tests/") and "/test_" in module}
    return sorted({test for test in tests if test in reached or _room(test) in rooms} | set(ALWAYS) & tests)


def _room(file: str) -> str:
    """Return the room of a file: the folder below gpolicy/ or tests/; empty if it is in none."""
    top, *rest = PurePosixPath(file).parts
    return rest[0] if top in {"gpolicy", "tests"} and len(rest) > 1 and rest[0] != "data" else ""


def _modules_of(file: str, imports: Mapping[str, list[str]]) -> list[str]:
    """Return the module that a file is, or those that name it or the nearest of its folders that is named."""
    if file.endswith(".py"):
        return [file]
    path = PurePosixPath(file)
    if _room(file) and path.parts[0] == "tests":
        return []
    readers = [module for module in imports if path.parts[0] in _READ_BY_GPOLICY or module.startswith("tests/")]
    for name in (path.name, *(folder.name for folder in path.parents if folder.name not in _EVERYWHERE)):
        written = re.compile(rf"""["'/]{re.escape(name)}["'/]""")
        naming = [module for module in readers if name and written.search(_text(module))]
        if naming:
            return naming
    return []


_texts: Final[dict[str, str]] = {}


def _text(module: str) -> str:
    if module not in _texts:
        _texts[module] = (ROOT / module).read_text(encoding="utf-8")
    return _texts[module]


def import_graph() -> dict[str, list[str]]:
    """Return each module of the repository with those that it imports, as ruff reads them."""
    graph: dict[str, list[str]] = json.loads("".join(_lines(str(RUFF), "analyze", "graph", "--quiet")))
    return graph


def _lines(*command: str) -> list[str]:
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()


if __name__ == "__main__":
    sys.stdout.write("\n".join(reached_tests(changed_files(sys.argv[1]), import_graph())) + "\n")
