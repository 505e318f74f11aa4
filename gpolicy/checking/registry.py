"""All rules: each class with an `info` in a module below `gpolicy.rules`. A new rule is found by being there."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages
from types import ModuleType
from typing import Final

from gpolicy.checking.fleet import FleetRule
from gpolicy.checking.rule import Rule

_HOME: Final = "gpolicy.rules"


def _modules() -> Iterator[ModuleType]:
    home = import_module(_HOME)
    for found in walk_packages(home.__path__, f"{_HOME}."):
        yield import_module(found.name)


def rules_in(modules: Iterator[ModuleType]) -> tuple[Rule | FleetRule, ...]:
    """Return one of each class with an `info` of its own that is defined in one of `modules`, by code."""
    classes = (
        item
        for module in modules
        for item in vars(module).values()
        if isinstance(item, type) and item.__module__ == module.__name__ and issubclass(item, (Rule, FleetRule))
    )
    rules = (kind() for kind in classes if "info" in vars(kind))
    return tuple(sorted(rules, key=lambda rule: rule.info.code))


_ALL: Final = rules_in(_modules())
RULES: Final = tuple(rule for rule in _ALL if isinstance(rule, Rule))
"""The rules about one policy, in the order of their codes."""

FLEET_RULES: Final = tuple(rule for rule in _ALL if isinstance(rule, FleetRule))
"""The rules about several policies together, in the order of their codes."""
