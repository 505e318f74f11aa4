"""Every release of Typer from 0.7 on (Debian 12's) reads our options."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from types import UnionType
from typing import Annotated, Union, get_origin

import pytest

from gpolicy.cli.app import VERBS
from gpolicy.cli.options import with_typer_defaults
from tests.cli.command_line import ROOT

FILES = sorted((ROOT / "gpolicy" / "cli").rglob("*.py"))


@pytest.mark.parametrize("module", sorted(set(VERBS.values())))
def test_options_become_defaults_of_plain_types(module: str) -> None:
    union: object = Union
    for command in import_module(f"gpolicy.cli.verbs.{module}").verbs.registered_commands:
        verb = with_typer_defaults(command.callback)
        for name, kind in verb.__annotations__.items():
            origin: object = get_origin(kind)
            assert origin is not Annotated, (command.name, name)
            assert origin is not UnionType or union is UnionType, (command.name, name)  # the same from Python 3.14 on


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_an_argument_says_its_default(file: Path) -> None:
    """Old releases of Typer require one; `...` means that the parameter has it."""
    calls = [node for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    arguments = [call for call in calls if ast.unparse(call.func) == "typer.Argument"]
    assert [call.lineno for call in arguments if [ast.unparse(word) for word in call.args] != ["..."]] == []
