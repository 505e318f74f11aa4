"""`gpolicy explain`: what a word means, whatever sort of word it is."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from itertools import islice

import pytest

from gpolicy.allocator.cluster_data import FailReason
from gpolicy.checking.catalogue import CATALOGUE
from gpolicy.cli.app import VERBS
from gpolicy.data import data_directory
from gpolicy.errors import ExitCode, RequestError
from gpolicy.ganeti.parameters import PARAMETERS
from gpolicy.ganeti.vocabulary import SCORE_COMPONENTS, TAG_FAMILIES
from gpolicy.policy.kinds import BUILT_IN, KINDS, Measure
from gpolicy.reference.explaining import VARIABLES, explain, list_rules
from gpolicy.reference.keys import all_keys
from gpolicy.report.glossary import FAILURES, WORDS


def _facts(text: str) -> dict[str, str]:
    """Return what stands in the table of facts, by name."""
    lines = [line for line in text.splitlines() if line.startswith("  ") and "  " in line.strip()]
    return {name: value.strip() for name, _, value in (line.strip().partition("  ") for line in lines)}


def test_a_rule_with_all_that_is_to_be_said() -> None:
    text = explain("std-outside")
    assert text.startswith("GP205 std-outside (error)\n")
    assert "    std: {memory-size: 512, cpu-count: 2}" in text
    assert text == explain("gp205")
    assert all(len(line) <= 120 for line in text.splitlines())


def test_the_list_names_every_rule() -> None:
    text = list_rules()
    for info in CATALOGUE:
        assert f"{info.code}  {info.name} " in text
    assert explain(None).startswith(text)
    assert explain("GP2").startswith("Sizes\n")


def test_a_parameter_with_what_ganeti_knows_of_it() -> None:
    text = explain("vcpu-ratio")
    assert text.startswith("ipolicy.vcpu-ratio (key of Cluster, NodeGroup)\n")
    assert _facts(text) == {
        "type": "number, 0.001 to 100,000",
        "default": "4.0",
        "sensible": "up to 24: so many virtual CPUs on one starve",
        "set on": "cluster, group",
        "takes effect": "in htools only (placement and capacity)",
        "Ganeti": "2.15 to 3.2",
    }
    assert text.endswith("    ipolicy: {vcpu-ratio: 4.0}\n")
    assert explain("ipolicy.vcpu-ratio") == text
    assert explain("NodeGroup.ipolicy.vcpu-ratio") == text.replace("Cluster, ", "")


@pytest.mark.parametrize(
    ("word", "fact", "value"),
    [
        ("diskparams.drbd.resync-rate", "unit", "KiB/s"),
        ("hvparams.kvm.use_guest_agent", "Ganeti", "from 2.16"),
        ("hvparams.xen-pvm.xen_cmd", "Ganeti", "before 3.1"),
        ("vhost_net", "default", "false (true from 3.1)"),
        ("oob_program", "security", "Root on the nodes runs the program that this names."),
        ("tests.expect.survives", "together with", "redundancy"),
        ("where", "required", "yes"),
    ],
)
def test_facts(word: str, fact: str, value: str) -> None:
    assert _facts(explain(word))[fact] == value


def test_a_key_with_keys_below_it_names_them() -> None:
    assert _facts(explain("ipolicy.minmax")).keys() >= {"name", "min", "max"}


def test_a_name_with_several_meanings_lists_them_by_names_that_have_one() -> None:
    text = explain("nodes")
    names = [line.split()[0] for line in text.splitlines() if line.startswith("  ") and line[2] != " "]
    assert {"NodeGroup.nodes", "NodeSet.nodes"} <= set(names)
    for name in names:
        assert explain(name).startswith(f"{name} (key of ")
    assert explain("Test.because").count("Test.tests.expect.because") == 1


def test_a_word_means_what_is_written_exactly_so_before_what_is_written_alike() -> None:
    assert explain("exclusive-storage").startswith("exclusive-storage (built-in guard)\n")
    assert explain("exclusive_storage").startswith("ndparams.exclusive_storage (key of ")
    alike = explain("Exclusive-Storage")
    assert "built-in guard" in alike
    assert "ndparams.exclusive_storage" in alike


@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_every_word_is_known(every: int) -> None:
    """Of each sort: kinds, guards, measures, exit codes, variables, parameters, and every (nth) key by its path."""
    words = [*KINDS, *BUILT_IN, *Measure, "exit-codes", *(str(int(code)) for code in ExitCode), *VARIABLES]
    words += [parameter.name for parameter in PARAMETERS]
    words += [".".join((key.home, *key.words)) for key in islice(all_keys(), 0, None, every)]
    for word in dict.fromkeys(words):
        assert explain(word)


def test_a_guard_says_whether_it_can_be_overridden() -> None:
    assert "`gpolicy plan --allow disks-stay` overrides it." in explain("disks-stay")
    assert "--allow" not in explain("expressible")


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("vcpu-ration", "Did you mean `vcpu-ratio`?"),
        ("NodeGrup", "Did you mean `NodeGroup`?"),
        ("ipolicy.vcpuratio", "Did you mean `ipolicy.vcpu-ratio`?"),
        ("disk-stay", "Did you mean `disks-stay`?"),
        ("GP2O1", "Did you mean `GP201`?"),
        ("spec-overlapp", "Did you mean `spec-overlap`?"),
        ("no-shrink", "`gpolicy explain` lists all rules and says what else it knows"),
        ("plan", "`plan` is a verb: see `gpolicy help plan`"),
        ("x" * 10_000, "`gpolicy explain` lists all rules and says what else it knows"),
    ],
)
def test_an_unknown_word_gets_a_hint(word: str, hint: str) -> None:
    with pytest.raises(RequestError) as caught:
        explain(word, VERBS)
    assert caught.value.hint == hint
    assert len(caught.value.message) < 200


@pytest.mark.parametrize("word", ["n1-reserve", "FailMem", "failmem", "Stranded", "measured"])
def test_words_of_reports(word: str) -> None:
    title, _, meaning = explain(word, VERBS, WORDS).partition("\n\n")
    name = title.removesuffix(" (in reports)")
    assert name.lower() == word.lower()
    assert " ".join(meaning.split()) == WORDS[name]


@pytest.mark.parametrize("word", ["tiered", "standard", "size", "n1_cnt", "guards", "memory"])
def test_a_concept_goes_before_keys_that_refer_to_it(word: str) -> None:
    text = explain(word, VERBS, WORDS)
    head, _, keys = text.partition("\n\nAs a key:\n")
    assert " ".join(head.split()) == f"{word} (in reports) {WORDS[word]}"
    assert re.search(r"^  (Test|Guards|Rule)\.\S", keys, re.MULTILINE)


def test_what_else_has_the_name_goes_before_a_word_of_reports() -> None:
    assert explain("ipolicy.minmax", VERBS, WORDS) == explain("ipolicy.minmax")


@pytest.mark.parametrize("word", [*SCORE_COMPONENTS, *TAG_FAMILIES, *TAG_FAMILIES.values(), "htools:standby:auto"])
def test_components_of_the_score_and_tags_are_words(word: str) -> None:
    assert " (in reports)" in explain(word, VERBS, WORDS)


def test_no_word_has_two_meanings_in_reports() -> None:
    tables = tomllib.loads((data_directory("templates") / "words.toml").read_text(encoding="utf-8"))
    words = [word for table in tables.values() for key in table for word in key.split(" | ")]
    alike = Counter(word.lower() for word in words)
    assert [word for word, number in alike.items() if number > 1] == []


def test_a_misspelt_word_of_reports_is_guessed() -> None:
    with pytest.raises(RequestError) as raised:
        explain("n1-resreve", VERBS, WORDS)
    assert raised.value.hint == "Did you mean `n1-reserve`?"


def test_every_reason_of_htools_is_explained() -> None:
    assert FAILURES.keys() == {reason.title for reason in FailReason}


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("GP606", "To accept a finding: `# gpolicy: ignore[GP606] REASON` at the end of its line, a Waiver"),
        ("GP728", "To accept a finding: `# gpolicy: ignore[GP728] REASON`"),
        ("GP701", "No finding of this rule can be accepted: gpolicy makes no plan with it."),
        ("GP902", 'To accept all findings of this rule: `ignore = ["GP902"]` in gpolicy.toml.'),
    ],
)
def test_a_rule_says_how_its_findings_are_accepted(rule: str, said: str) -> None:
    assert said in " ".join(explain(rule).split())


def test_guards_are_explained_with_each_measure() -> None:
    text = explain("Guards")
    assert all(f"guards[].{measure.value} " in text for measure in Measure)
