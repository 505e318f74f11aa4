"""Ganeti itself refuses what the rules find that nobody can accept, and takes their good examples."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from gpolicy.checking.catalogue import CATALOGUE
from gpolicy.checking.tags import declared_tags
from gpolicy.findings import REFUSED, RuleInfo
from gpolicy.ganeti.commands import fields
from gpolicy.ganeti.expressible import RESET
from gpolicy.ganeti.vocabulary import Level
from gpolicy.policy.loading import load_policy
from gpolicy.policy.model import INHERIT, Declared
from tests.ganeti.real_ganeti import RefusedError, needs_ganeti, real_ganeti

pytestmark = needs_ganeti

ELSEWHERE: Final = {
    "GP101": "it is about other releases than the installed one",
    **dict.fromkeys(("GP170", "GP171", "GP172", "GP173"), "test_hypervisor_values.py asks Ganeti's hypervisors"),
    **dict.fromkeys(("GP309", "GP311"), "Ganeti looks at instances or files that are not here; scripts/e2e has them"),
}
"""What is shown in another way, and why."""
RULES: Final = [info for info in CATALOGUE if info.stays == REFUSED and info.code not in ELSEWHERE]
BESIDE: Final[dict[str, dict[str, Any]]] = {
    "GP205": {
        "std": {
            "memory-size": 2048,
            "cpu-count": 2,
            "disk-size": 20480,
            "disk-count": 1,
            "nic-count": 1,
            "spindle-use": 1,
        }
    },
    "GP304": {"disk-templates": ["plain"]},
    "GP305": {"disk-templates": ["drbd"]},
}
"""What the cluster's own instance policy has to say for the good example."""


def refuses(request: dict[str, Any]) -> bool:
    try:
        real_ganeti().ask(request)
    except RefusedError:
        return True
    return False


def refuses_values(declared: Declared, ipolicy: dict[str, Any]) -> bool:
    """Return whether Ganeti refuses to store the values of a cluster or a group beside its own."""
    body: Any = fields({leaf.path: RESET if leaf.value is INHERIT else leaf.value for leaf in declared.leaves.values()})
    if "compression_tools" in body:  # not in RAPI
        return refuses(
            {"argv": ["gnt-cluster", "modify", f"--compression-tools={','.join(body['compression_tools'])}"], "own": {}}
        )
    path = "/2/modify" if declared.level is Level.CLUSTER else "/2/groups/g/modify"
    return bool(body) and refuses(
        {"rapi": {"method": "PUT", "path": path, "body": body}, "own": {"ipolicy": ipolicy} if ipolicy else {}}
    )


def is_refused(text: str, beside: dict[str, Any], directory: Path) -> bool:
    """Return whether Ganeti refuses the values or the tags of an object."""
    (directory / "policy.yaml").write_text(text, encoding="utf-8")
    policy = load_policy(directory / "policy.yaml")
    values = (refuses_values(declared, beside) for declared in policy.objects)
    return any(values) or any(refuses({"tag": tag.text}) for tag in declared_tags(policy))


@pytest.mark.parametrize("info", RULES, ids=lambda info: info.code)
def test_ganeti_refuses_it(info: RuleInfo, tmp_path: Path) -> None:
    beside = BESIDE.get(info.code, {})
    assert is_refused(info.text.bad, beside, tmp_path)
    assert not is_refused(info.text.good, beside, tmp_path)


def test_what_is_shown_elsewhere_stays() -> None:
    assert ELSEWHERE.keys() <= {info.code for info in CATALOGUE if info.stays == REFUSED}
