"""Every rule is shown by its own examples: the bad one has just its finding, the good one none.

For rules that an example cannot show there is a function here, and for those about several policies
`tests/rules/fleet/test_fleet.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from gpolicy.checking.catalogue import CATALOGUE, FLEET_RULES, RULES
from gpolicy.checking.pairs import MAX_PAIRS
from gpolicy.checking.rule import When
from gpolicy.checking.settings import PerFile, Settings
from gpolicy.cli.checking import settings_mistakes
from gpolicy.cluster.state import ClusterState
from gpolicy.drift.comparing import find_drift
from gpolicy.findings import RuleInfo, Severity, told
from gpolicy.forecast.bridge import FORECAST
from gpolicy.policy.loading import load_policy
from gpolicy.policy.yaml_reader import MAX_DEPTH
from tests.checking.test_baseline import TEXT, checked, write
from tests.mistakes import find_mistakes
from tests.rules.observed_clusters import OBSERVED
from tests.rules.policy_texts import bounds
from tests.rules.run_rules import TODAY, check, cluster, codes, with_instance, with_resources

STATES: dict[str, ClusterState] = {
    **OBSERVED,
    "GP126": with_instance(cluster({"gold": {}}, {"n1": "gold"}), "n1", template="rbd", hypervisor="xen-pvm"),
    "GP154": with_resources(cluster({"gold": {}}, {"n1": "gold"}), memory_total=64 * 1024, cpu_total=16),
    "GP308": cluster({"gold": {("ipolicy", "disk-templates"): ["drbd", "plain"]}}),
    "GP606": cluster({"gold": {}}, {"node1.example.org": "gold"}),
    "GP701": cluster({"gold": {}}, {"node1.example.org": "gold"}),
    "GP702": cluster({"gold": {}}, {"node1.example.org": "gold", "host1.example.org": "gold"}),
    "GP703": cluster({"gold": {}}, {f"{name}{n}.example.org": "gold" for name in ("node", "host") for n in (1, 2)}),
    "GP704": cluster({"gold": {}, "silver": {}}),
}
MIXED = cluster({"dedicated": {}}, {"n1": "dedicated"}, {"n1": {("ndparams", "exclusive_storage"): False}})
UNIFORM = cluster({"dedicated": {("ndparams", "exclusive_storage"): True}}, {"n1": "dedicated"})
OF_FLEETS = {rule.info.code for rule in FLEET_RULES}

# --- rules that an example cannot show -----------------------------------------------------------------------------

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
    return codes(
        find_mistakes(load_policy(directory), today=TODAY, forecast=FORECAST, settings=Settings(per_file=(glob,)))
    )


def other_release(wrong: bool, directory: Path) -> list[str]:
    """A cluster of another release has other defaults."""
    text = 'gpolicy: v1\nkind: Cluster\nname: c.example.org\nganeti_version: "3.0"\n'
    state = replace(cluster({"gold": {}}), software_version="3.1.0" if wrong else "3.0.2")
    return codes(told(check(text, directory, state=state)))


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


WITH_EXAMPLE = [info for info in CATALOGUE if info.code not in {*WITHOUT_EXAMPLE, *OF_FLEETS}]


def state_for(info: RuleInfo, *, wrong: bool) -> ClusterState | None:
    if info.code == "GP412":
        return MIXED if wrong else UNIFORM
    return STATES.get(info.code)


def test_the_bad_example_has_this_finding_and_no_other(tmp_path: Path) -> None:
    failures = {}
    for info in WITH_EXAMPLE:
        findings = check(info.text.bad, tmp_path, state=state_for(info, wrong=True))
        about = [found for found in findings if found.severity is not Severity.INFO or found.code == info.code]
        placed = all(found.span for found in about)
        if {(found.code, found.severity) for found in about} != {(info.code, info.severity)} or not placed:
            failures[info.name] = about
    assert failures == {}


def test_the_good_example_has_nothing_to_fix(tmp_path: Path) -> None:
    failures = {}
    for info in WITH_EXAMPLE:
        findings = check(info.text.good, tmp_path, state=state_for(info, wrong=False))
        wrong = [found for found in findings if found.severity is not Severity.INFO or found.code == info.code]
        if wrong:
            failures[info.name] = wrong
    assert failures == {}


def test_without_a_cluster_no_rule_guesses_one(tmp_path: Path) -> None:
    needing = {rule.info.code for rule in RULES if When.STATE in rule.when}
    found = {info.name: needing.intersection(codes(check(info.text.bad, tmp_path))) for info in WITH_EXAMPLE}
    assert {name: guessed for name, guessed in found.items() if guessed} == {}


def test_the_other_rules_find_their_mistake_and_accept_correct_policies(tmp_path: Path) -> None:
    failures = []
    for code, show in WITHOUT_EXAMPLE.items():
        for wrong in (True, False):
            directory = tmp_path / f"{code} {wrong}"
            directory.mkdir()
            if (code in show(wrong, directory)) is not wrong:
                failures.append((code, wrong))
    assert failures == []


def test_every_rule_has_examples_or_a_function() -> None:
    assert {info.code for info in CATALOGUE if not (info.text.bad and info.text.good)} == set(WITHOUT_EXAMPLE)


def test_every_rule_that_needs_a_cluster_is_shown_on_one() -> None:
    assert {rule.info.code for rule in RULES if When.STATE in rule.when} == {*STATES, "GP412"}
