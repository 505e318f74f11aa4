"""The text of schema findings: the place, the best branch, and what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpolicy.policy.loading import load_policy

GROUP = "gpolicy: v1\nkind: NodeGroup\nname: gold\n"
SPEC = "memory-size: 1G, cpu-count: 1, disk-size: 1G, disk-count: 1, nic-count: 1"


@pytest.mark.parametrize(
    ("body", "place", "message", "hint"),
    [
        (
            "alloc-policy: preferred\n",
            (4, 1),
            'unknown key "alloc-policy" in a NodeGroup',
            "Did you mean `alloc_policy`?",
        ),
        ("alloc_policy: preferred\nalloc_polcy: preferred\n", (5, 1), "unknown key", "which line 4 has already"),
        ("alloc_policy: prefered\n", (4, 15), "expected one of preferred", "Did you mean `preferred`?"),
        ("alloc_policy: inherit\n", (4, 15), "expected one of", "this is not inherited: write the value, or leave the"),
        ('ndparams: {ssh_port: "22"}\n', (4, 22), 'ndparams.ssh_port cannot be "22"', "without quotes"),
        ("ndparams: {exclusive_storage: yes}\n", (4, 31), "expected true or false", "write true and false"),
        ("ndparams: {exclusive_storage: 1}\n", (4, 31), "expected true or false or `inherit`", ""),
        ("ipolicy:\n", (4, 1), "ipolicy has no value", "leave the key out"),
        ("ipolicy: {vcpu-ratio: -1}\n", (4, 23), "it must be at least 0.001", ""),
        ("ipolicy: {vcpu-ratios: 1}\n", (4, 11), 'unknown key "vcpu-ratios" in ipolicy', "Did you mean `vcpu-ratio`?"),
        ("ipolicy: {std: {}}\n", (4, 11), 'unknown key "std"', "std is set at the cluster only"),
        ("ipolicy: {memory-ratio: 1}\n", (4, 11), "unknown key", "no released Ganeti has a memory-ratio"),
        ("diskparams:\n  lvm: {stripes: 1}\n", (5, 3), 'unknown key "lvm"', "plain"),
        ("diskparams:\n  rbd: {access: kernel}\n", (5, 17), "expected one of kernelspace", "kernelspace"),
        (
            f"ipolicy:\n  minmax:\n    - min: {{{SPEC}, spindle-use: 1}}\n",
            (6, 7),
            "ipolicy.minmax[1] lacks max",
            "add `max:`",
        ),
        (
            f"ipolicy:\n  minmax:\n    - min: {{{SPEC}}}\n      max: {{{SPEC}, spindle-use: 1}}\n",
            (6, 7),
            "lacks spindle-use",
            "all six parameters",
        ),
        (
            f"ipolicy:\n  minmax:\n    - name: big\n      extends: large\n      max: {{{SPEC}}}\n",
            (7, 7),
            'unknown key "extends" in ipolicy.minmax[1]',
            "known here: name, min, max",
        ),
        (f"ipolicy:\n  min: {{{SPEC}}}\n", (5, 3), 'unknown key "min" in ipolicy', "write `minmax:`, and below it"),
        ('tags: [a, "a b"]\n', (4, 11), 'tags[2] cannot be "a b": expected only the letters', ""),
        ("renamed_from: ''\n", (4, 15), "renamed_from is empty", "leave it out, or fill it"),
        ("nodes: [n1, n1]\n", (4, 13), 'names "n1" twice', ""),
        ("nodes: [null]\n", (4, 9), "nodes[1] has no value", "write the value, or remove the item"),
        ("ndparams: {ssh_port: *nope}\n", (4, 22), "the alias `*nope` has no anchor", ""),
        ("ipolicy: {minmax: [*nope]}\n", (4, 20), "the alias `*nope`", ""),
        ("hardware: {memory: 64K}\n", (4, 20), "a size (MiB, or a number with M, G or T)", ""),
    ],
)
def test_an_explanation(body: str, place: tuple[int, int], message: str, hint: str, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(f"{GROUP}{body}", encoding="utf-8")
    (finding,) = load_policy(tmp_path).findings
    assert finding.span is not None
    assert message in finding.message
    assert hint in finding.hint
    assert (finding.span.line, finding.span.column) == place


def test_a_number_without_quotes_gets_no_hint_about_quotes(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(f"{GROUP}ndparams: {{spindle_count: {'9' * 5000}}}\n", encoding="utf-8")
    (finding,) = load_policy(tmp_path).findings
    assert (finding.code, finding.hint) == ("GP012", "")


def test_several_mistakes_are_several_findings(tmp_path: Path) -> None:
    text = f"{GROUP}alloc-policy: x\nndparams: {{ssh_prot: 1, spindle_count: x}}\ntags: a\n"
    (tmp_path / "policy.yaml").write_text(text, encoding="utf-8")
    places = [(finding.code, finding.span and finding.span.line) for finding in load_policy(tmp_path).findings]
    assert places == [("GP011", 4), ("GP011", 5), ("GP012", 5), ("GP012", 6)]


def test_a_guard_measures_exactly_one_thing(tmp_path: Path) -> None:
    text = "gpolicy: v1\nkind: Guards\nguards:\n  - {name: a, at_least: 1, max_changes: 2}\n  - {name: b}\n"
    (tmp_path / "policy.yaml").write_text(text, encoding="utf-8")
    messages = [finding.message for finding in load_policy(tmp_path).findings]
    assert len(messages) == 2
    assert "has at_least and max_changes at once" in messages[0]
    assert "has none of them" in messages[1]


CLUSTER = "gpolicy: v1\nkind: Cluster\nname: c.example.org\n"
WAIVER = "gpolicy: v1\nkind: Waiver\nwaivers:\n  - {rule: GP201, where: cluster, until: "


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("gpolicy: v1\nkind: NodeGroup\nname: ''\n", "name is empty", ""),
        ("gpolicy: v1\nkind: NodeGroup\nname:\n", "name has no value", "write the value"),
        (f'{WAIVER}"2027-01-01", reason: ""}}\n', "waivers[1].reason is empty", ""),
        ("gpolicy: v1\nkind: Guards\nguards: []\n", "guards is empty", ""),
        (
            f"{WAIVER}tomorrow, reason: x}}\n",
            'waivers[1].until cannot be "tomorrow": expected a day like "2026-12-31"',
            "",
        ),
        (
            "gpolicy: v1\nkind: Guards\nguards:\n  - {name: a, capacity_loss: {at_most: few}}\n",
            'guards[1].capacity_loss.at_most cannot be "few": expected a share like 5% or a whole number',
            "",
        ),
        (
            f"{CLUSTER}uid_pool: [2000, [1000, 1010]]\n",
            'uid_pool[2] cannot be a list: expected a whole number or a range like "1000-1010"',
            "",
        ),
        (
            "gpolicy: v1\nkind: TagRules\nowns: [iextags]\nfailure_domains: ['rack:']\n",
            "expected only the letters A-Z a-z, digits and _ . + * / @ -, parted by single colons",
            "write the prefix without its colon: rack",
        ),
        (
            "gpolicy: v1\nkind: TagRules\nowns: [iextags]\nfailure_domains: ['r k:']\n",
            "expected only the letters A-Z a-z, digits and _ . + * / @ -, parted by single colons",
            "",
        ),
        (f'{CLUSTER}tags: ["{"a" * 129}"]\n', "_ . + * / : @ -, at most 128 of them", ""),
        (f'{CLUSTER}tags: ["a b"]\n', "digits and _ . + * / : @ -", ""),
        (f"{CLUSTER}uid_pool: [-1]\n", "uid_pool[1] is -1, it must be at least 0", ""),
        (f'{CLUSTER}uid_pool: ["20-10"]\n', "uid_pool[1]: the range 20-10 ends before it begins", ""),
        (f"{CLUSTER}uid_pool: [4294967296]\n", "uid_pool[1] goes up to 4294967296", "the highest is 4294967295"),
        (
            f'{CLUSTER}tags: ["x"]\nenabled_disk_templates: [plain, lvm]\n',
            "enabled_disk_templates[2] cannot be",
            "is plain",
        ),
        (f"{CLUSTER}hvparams: {{lxc: {{cpu_mask: all}}}}\n", "cpu_mask cannot be", 'write "" for all CPUs'),
        (f"{CLUSTER}hvparams: {{lxc: {{drop_capabilities: [a, b]}}}}\n", "cannot be a list", 'is "a,b" meant?'),
        (f"{CLUSTER}hvparams: {{kvm: {{kernel_path: }}}}\n", "kernel_path has no value", 'write `""` for none'),
        (f"{CLUSTER}ipolicy:\n  vcpu-ratio:6\n", "ipolicy cannot be", "after the colon: `vcpu-ratio: 6`"),
        (f"{CLUSTER}tags: [rack: a]\n", "tags[1] cannot be a mapping", "write rack:a without the blank"),
        (f'{GROUP}nodes: [a, "b\\x07"]\n', "nodes[2] contains", "remove this character"),
    ],
)
def test_how_places_and_forms_are_named(text: str, message: str, hint: str, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(text, encoding="utf-8")
    (finding,) = load_policy(tmp_path).findings
    assert message in finding.message
    assert (hint in finding.hint) if hint else (finding.hint == "")


def test_a_yes_instead_of_a_number_gets_no_hint_about_booleans(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(f"{GROUP}ndparams: {{ssh_port: yes}}\n", encoding="utf-8")
    (finding,) = load_policy(tmp_path).findings
    assert (finding.hint, finding.fix) == ("", None)


def test_the_hint_for_a_missing_key_shows_the_form_of_its_value(tmp_path: Path) -> None:
    text = "gpolicy: v1\nkind: Waiver\nwaivers:\n  - {rule: GP201, where: cluster, reason: known}\n"
    (tmp_path / "policy.yaml").write_text(text, encoding="utf-8")
    (finding,) = load_policy(tmp_path).findings
    assert finding.hint == 'add `until:` with a day like "2026-12-31"'
