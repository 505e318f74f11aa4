"""What a hint tells its reader to do is done, literally, on the bad example of its rule: the finding is gone.

And nothing else is wrong then. A hint that names no value is advice or a question; the table has the rules of these.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from gpolicy.checking.catalogue import CATALOGUE
from gpolicy.findings import Finding, RuleInfo, Severity
from tests.rules.hints import healed
from tests.rules.run_rules import check
from tests.rules.test_examples import WITH_EXAMPLE, state_for

ADVICE = {
    # the file cannot be read as YAML, or the place is a comment (tests/checking/test_fixes_of_rules.py removes it)
    *("GP003", "GP911", "GP912", "GP914"),
    # about documents and files, and what must be written anew
    *("GP005", "GP013", "GP021", "GP022", "GP023", "GP024", "GP025", "GP027", "GP504", "GP505"),
    *("GP507", "GP604", "GP609", "GP815", "GP904", "GP905"),
    # a text, a name or a number that only its writer knows
    *("GP103", "GP104", "GP106", "GP107", "GP109", "GP117", "GP121", "GP131", "GP140", "GP144", "GP146", "GP147"),
    *("GP159", "GP160", "GP164", "GP165", "GP166", "GP171", "GP175", "GP186", "GP190"),
    *("GP501", "GP503", "GP516", "GP517", "GP524", "GP525", "GP601", "GP612", "GP726", "GP814"),
    *("GP817", "GP820", "GP822", "GP824", "GP826", "GP950", "GP951", "GP955"),
    # one of several values is wrong: sizes, hardware and figures
    *(
        "GP108",
        "GP114",
        "GP151",
        "GP153",
        "GP154",
        "GP163",
        "GP180",
        "GP195",
        "GP201",
        "GP202",
        "GP203",
        "GP205",
        "GP206",
    ),
    *("GP207", "GP211", "GP212", "GP213", "GP215", "GP216", "GP217", "GP220", "GP221", "GP222"),
    *("GP223", "GP224", "GP226", "GP229", "GP230", "GP405", "GP410", "GP413", "GP415", "GP416"),
    *("GP419", "GP725", "GP805"),
    # one of several lists, groups, sets of nodes, tags or templates is wrong
    *("GP308", "GP310", "GP401", "GP407", "GP408", "GP418", "GP420", "GP421", "GP422", "GP509", "GP511", "GP518"),
    *("GP519", "GP520", "GP522", "GP526", "GP527", "GP528", "GP531", "GP602", "GP606", "GP607"),
    *("GP611", "GP613", "GP616", "GP617", "GP619", "GP620", "GP702", "GP703", "GP704", "GP705"),
    *("GP744", "GP819"),
    # something is to be done on the cluster, or with the plan
    *("GP309", "GP411", "GP412", "GP417", "GP721", "GP722", "GP723", "GP724", "GP727", "GP741"),
    *("GP742", "GP745", "GP748", "GP749", "GP750"),
}
"""Rules whose hint on their bad example names nothing that could be written as it stands."""

_ORDER = re.compile(r'\b(?:write|set|add|remove) (?:`[^`]*[^`:]`|"[^"]*"|[0-9]+\b)|Did you mean `')
CLUSTER = "gpolicy: v1\nkind: Cluster\nname: c.example.org\n"
GOLD = "---\ngpolicy: v1\nkind: NodeGroup\nname: gold\n"


def bad_of(findings: list[Finding], code: str) -> Counter[str]:
    return Counter(item.code for item in findings if item.severity is not Severity.INFO or item.code == code)


def not_healed(info: RuleInfo, directory: Path) -> tuple[list[str], bool]:
    """Return the alternatives of a rule's hints that do not heal its bad example, and whether there are any at all."""
    state = state_for(info, wrong=True)
    before = check(info.text.bad, directory, state=state)
    wrong, tried = [], False
    for finding in (item for item in before if item.code == info.code):
        for order, text in healed(info.text.bad, finding):
            tried = True
            after = check(text, directory, state=state)
            was, now = bad_of(before, info.code), bad_of(after, info.code)
            if now[info.code] >= was[info.code] or now - was:
                wrong.append(f"{info.code} {order}: {[(item.code, item.message) for item in after]}")
    return wrong, tried


def test_what_a_hint_says_heals(tmp_path: Path) -> None:
    results = {info.code: not_healed(info, tmp_path) for info in WITH_EXAMPLE}
    assert [line for wrong, _ in results.values() for line in wrong] == []
    assert sum(tried for _, tried in results.values()) > 100


def test_what_cannot_be_done_literally_is_no_order(tmp_path: Path) -> None:
    advice, orders = set(), []
    for info in WITH_EXAMPLE:
        found = [
            item for item in check(info.text.bad, tmp_path, state=state_for(info, wrong=True)) if item.code == info.code
        ]
        hints = {item.hint for item in found if item.hint}
        if hints and not not_healed(info, tmp_path)[1]:
            advice.add(info.code)
            orders += [(info.code, hint) for hint in hints if _ORDER.search(hint)]
    assert advice == ADVICE
    assert orders == []
    assert {info.code for info in CATALOGUE} > ADVICE


@pytest.mark.parametrize(
    ("text", "code", "hint"),
    [
        (
            'hvparams: {kvm: {kvm_extra: "-enable-kvm"}}',
            "GP178",
            "write kvm_flag: enabled instead, and remove -enable-kvm",
        ),
        (
            "ipolicy: {vcpu-ratio: 0.6}",
            "GP114",
            "is 6 meant? 1 uses the CPUs once, 4 four times over",
        ),
        (
            "diskparams: {drbd: {dynamic-resync: true, resync-rate: 200M}}",
            "GP122",
            "write c-max-rate: 200M instead, and remove resync-rate",
        ),
        (
            "diskparams: {drbd: {c-min-rate: 4M, c-max-rate: 100}}",
            "GP121",
            "write c-max-rate with its unit: is 100M meant?",
        ),
        ("file_storage_dir: srv/disks", "GP145", "write /srv/disks"),
        ("file_storage_dir: etc/disks", "GP145", "write a directory such as /srv/ganeti/file-storage"),
        ('hvparams: {kvm: {kvm_extra: "-cpu host"}}', "GP178", "write cpu_type: host instead, and remove -cpu host"),
        ('hvparams: {kvm: {kvm_extra: "-k de -no-hpet"}}', "GP178", "write keymap: de instead, and remove -k de"),
        ('hvparams: {kvm: {kvm_extra: "-no-acpi"}}', "GP178", "write acpi: false instead, and remove -no-acpi"),
        ('hvparams: {kvm: {kvm_extra: "-vga std -m 1"}}', "GP178", "write vga: std instead, and remove -vga std"),
        (
            'diskparams: {drbd: {net-custom: "--protocol=A"}}',
            "GP135",
            "write protocol: A instead, and remove --protocol",
        ),
        ("diskparams: {drbd: {dynamic-resync: true, c-min-rate: 4G, c-max-rate: 60M}}", "GP121", "Did you mean `4M`?"),
        (
            'volume_group_name: vg0\nreserved_lvs: ["vg0/*"]',
            "GP160",
            "name the volumes that are not Ganeti's, such as vg/(root|swap)",
        ),
        ("diskparams: {drbd: {protocol: D}}", "GP124", "write C or B"),
        ("mac_prefix: AA-00-0F", "GP102", "Did you mean `aa:00:0f`?"),
        (
            'hvparams: {kvm: {migration_caps: "xbzrle, auto-converge"}}',
            "GP181",
            "Did you mean `xbzrle:auto-converge`?",
        ),
    ],
)
def test_a_value_that_does_the_same_is_named(text: str, code: str, hint: str, tmp_path: Path) -> None:
    found = check(f"{CLUSTER}{text}\n", tmp_path)
    assert hint in [item.hint for item in found if item.code == code]
    for finding in (item for item in found if item.hint == hint):
        for _, mended in healed(f"{CLUSTER}{text}\n", finding):
            kept = [item.hint for item in check(mended, tmp_path) if item.severity is not Severity.INFO]
            assert hint not in kept


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ('dynamic-resync: false, resync-rate: 400M, disk-custom: "--c-plan-ahead=0"', []),
        ('disk-custom: "--c-plan-ahead=0"', []),
        ('dynamic-resync: true, disk-custom: "--c-plan-ahead=5"', ["GP135"]),
        ('dynamic-resync: true, disk-custom: "--resync-rate=100M"', []),
        ('dynamic-resync: false, disk-custom: "--resync-rate=100M"', ["GP135"]),
    ],
)
def test_ganeti_writes_some_options_of_the_resync_only(parameters: str, expected: list[str], tmp_path: Path) -> None:
    """As real Ganeti's commands for DRBD do: dynamic-resync says whether they have the c-* options or the rate."""
    found = check(f"{CLUSTER}enabled_disk_templates: [drbd]\ndiskparams:\n  drbd: {{{parameters}}}\n", tmp_path)
    assert [item.code for item in found if item.code != "GP306"] == expected


def test_two_hints_at_one_value_do_not_contradict(tmp_path: Path) -> None:
    exclusive = "ndparams: {exclusive_storage: true}\nipolicy: {vcpu-ratio: 4, disk-templates: [plain]}\n"
    found = check(f"{CLUSTER}ipolicy: {{vcpu-ratio: 4}}\n{GOLD}{exclusive}", tmp_path)
    assert [item.code for item in found if item.code in ("GP116", "GP406")] == ["GP406"]


def test_no_fix_takes_away_what_an_error_makes_unused(tmp_path: Path) -> None:
    """A waiver beside a number that cannot be read: what it accepts may be there again once that is mended."""
    waiver = "  - {rule: spec-overlap, where: group/gold, reason: CHG-17, until: '2099-12-31'}\n"
    group = "gpolicy: v1\nkind: NodeGroup\nname: gold\nndparams: {ssh_port: 70022}\n"
    text = f"{group}---\ngpolicy: v1\nkind: Waiver\nwaivers:\n{waiver}"
    found = {item.code: item for item in check(text, tmp_path)}
    assert found["GP902"].fix is None
    assert found["GP902"].hint == "correct the errors first: they may hide what it accepts"
    (alone,) = check(text.replace("70022", "22"), tmp_path)
    assert (alone.code, alone.fix is not None) == ("GP902", True)
