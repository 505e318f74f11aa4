"""Every rule of the catalogue finds its mistakes and accepts correct policies.

Most are shown by their own examples (which `test_examples.py` and `test_fleet.py` hold to more than that); for the
others there is a function here. A rule that is in none of these fails.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from gpolicy.checking.catalogue import CATALOGUE, FLEET_RULES
from gpolicy.checking.checking import check_policy
from gpolicy.checking.pairs import MAX_PAIRS
from gpolicy.checking.settings import PerFile, Settings
from gpolicy.cli.checking import settings_mistakes
from gpolicy.drift.comparing import find_drift
from gpolicy.findings import RuleInfo
from gpolicy.policy.loading import load_policy
from gpolicy.policy.yaml_reader import MAX_DEPTH
from gpolicy.rules.examples import bounds
from tests.checking.test_baseline import TEXT, checked, write
from tests.rules.fleet.test_fleet import found as found_in_fleet
from tests.rules.run_rules import TODAY, check, cluster, codes
from tests.rules.test_examples import MIXED, STATES, UNIFORM

GROUP = "gpolicy: v1\nkind: NodeGroup\nname: gold\n"
Show = Callable[[bool, Path], list[str]]
"""Returns the codes that are found where there is a mistake, or where there is none."""


def unreadable(wrong: bool, directory: Path) -> list[str]:
    (directory / "policy.yaml").write_bytes(GROUP.encode() + (b"# caf\xe9\n" if wrong else b"# cafe\n"))
    return codes(load_policy(directory).findings)


def settings(wrong: bool, directory: Path) -> list[str]:
    (directory / "gpolicy.toml").write_text(f'[clusters.ham]\nstate = "local:"\npolicy = "{"no" if wrong else "."}"\n')
    return codes(settings_mistakes([directory]))


def not_read(wrong: bool, directory: Path) -> list[str]:
    (directory / "policy.yaml").write_text(TEXT, encoding="utf-8")
    (directory / ("groups.yaml.txt" if wrong else "policy.yaml.txt")).write_text(GROUP, encoding="utf-8")
    return codes(load_policy(directory).findings)


def too_deep(wrong: bool, directory: Path) -> list[str]:
    depth = MAX_DEPTH + 1 if wrong else 3
    return codes(check(f"{GROUP}nodes: {'[' * depth}{']' * depth}\n", directory))


def too_many_specs(wrong: bool, directory: Path) -> list[str]:
    sizes = range(MAX_PAIRS + 1 if wrong else MAX_PAIRS, 0, -1)
    pairs = "".join(f"    - {bounds(f'{n}G {n}G', f'{n} {n}', f'{n}G {n}G')}" for n in sizes)
    return codes(check(f"{GROUP}ipolicy:\n  minmax:\n{pairs}", directory))


def drifted(wrong: bool, directory: Path) -> list[str]:
    """A waiver of drift is in use where there is drift, and unused where there is none."""
    waiver = 'waivers:\n  - {rule: GP821, where: group/gold, reason: agreed, until: "2099-12-31"}\n'
    text = f"{GROUP}ipolicy: {{vcpu-ratio: 2}}\n---\ngpolicy: v1\nkind: Waiver\n{waiver}"
    (directory / "policy.yaml").write_text(text, encoding="utf-8")
    state = cluster({"gold": {("ipolicy", "vcpu-ratio"): 4.0 if wrong else 2.0}})
    report = find_drift(load_policy(directory), state, today=TODAY)
    assert codes(report.findings) == ([] if wrong else ["GP902"])
    return ["GP821" for item in report.accepted if item.drift.object == "group/gold"]


def stale_baseline(wrong: bool, directory: Path) -> list[str]:
    fixed = TEXT.replace("ssh_port: 0", "ssh_port: 22") if wrong else TEXT
    return codes(checked(directory, write(directory), fixed).findings)


def idle_glob(wrong: bool, directory: Path) -> list[str]:
    (directory / "policy.yaml").write_text(TEXT.replace("ssh_port: 0", "ssh_port: 22"))
    glob = PerFile(glob="polcy.yaml" if wrong else "policy.yaml", codes=frozenset({"GP201"}), directory=directory)
    return codes(check_policy(load_policy(directory), today=TODAY, settings=Settings(per_file=(glob,))))


def other_release(wrong: bool, directory: Path) -> list[str]:
    """A cluster of another release has other defaults."""
    text = 'gpolicy: v1\nkind: Cluster\nname: c.example.org\nganeti_version: "3.0"\n'
    state = replace(cluster({"gold": {}}), software_version="3.1.0" if wrong else "3.0.2")
    return codes(check(text, directory, state=state))


WITHOUT_EXAMPLE: Final[dict[str, Show]] = {
    "GP001": unreadable,
    "GP004": too_deep,
    "GP028": settings,
    "GP026": not_read,
    "GP138": other_release,
    "GP209": too_many_specs,
    "GP821": drifted,
    "GP915": stale_baseline,
    "GP916": idle_glob,
}


def found(info: RuleInfo, *, wrong: bool, directory: Path) -> list[str]:
    if info.code in WITHOUT_EXAMPLE:
        return WITHOUT_EXAMPLE[info.code](wrong, directory)
    text = info.bad if wrong else info.good
    assert text, f"{info.code} has no example, and no function here"
    if info in [rule.info for rule in FLEET_RULES]:
        return found_in_fleet(text, directory)
    state = (MIXED if wrong else UNIFORM) if info.code == "GP412" else STATES.get(info.code)
    return codes(check(text, directory, state=state))


@pytest.mark.parametrize("info", CATALOGUE, ids=lambda info: info.name)
def test_every_rule_finds_what_it_is_for(info: RuleInfo, tmp_path: Path) -> None:
    assert info.code in found(info, wrong=True, directory=tmp_path)


@pytest.mark.parametrize("info", CATALOGUE, ids=lambda info: info.name)
def test_every_rule_accepts_correct_policies(info: RuleInfo, tmp_path: Path) -> None:
    assert info.code not in found(info, wrong=False, directory=tmp_path)
