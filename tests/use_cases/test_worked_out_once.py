"""What a plan asks of the policy and the cluster, it asks once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import gpolicy
from gpolicy.analysis import loaded_state
from gpolicy.checking import context
from gpolicy.impact import comparison
from gpolicy.plan import built_in_guards, diff, plan
from gpolicy.resolve import desired
from gpolicy.use_cases import changes
from tests.cli.command_line import ROOT

POLICY = """\
gpolicy: v1
kind: Cluster
name: ganeti.example.org
ipolicy: {vcpu-ratio: 2}
---
gpolicy: v1
kind: NodeGroup
name: shared
"""


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    found: Counter[str] = Counter()

    def count(name: str, work: Callable[..., Any], *modules: Any) -> None:
        def counting(*given: Any, **named: Any) -> Any:
            found[name] += 1
            return work(*given, **named)

        for module in modules:
            monkeypatch.setattr(module, name, counting)

    count("resolve", desired.resolve, context, diff)
    count("diff", diff.diff, diff, plan)
    count("projected", diff.projected, diff, built_in_guards, changes)
    count("load_state", loaded_state.load_state, loaded_state, comparison)
    return found


def test_a_plan_resolves_compares_and_projects_once(counted: Counter[str], tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY, encoding="utf-8")
    state = gpolicy.read_state(f"snapshot:{ROOT}/policies/two-groups.snapshot.json")
    checked = gpolicy.check_policy(gpolicy.load_policy(tmp_path / "policy.yaml"), state, today=date(2026, 1, 1))
    planned = gpolicy.plan_change(checked, state)
    assert planned.plan.changes
    assert planned.impact is not None
    assert counted == {"resolve": 1, "diff": 1, "projected": 1, "load_state": 2}  # each side once
