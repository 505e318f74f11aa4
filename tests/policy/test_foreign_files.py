"""YAML of other programs beside a policy: one clear finding, or none with `exclude`; all rules run."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from gpolicy.checking.checking import Checker
from gpolicy.errors import InputError
from gpolicy.findings import Finding
from gpolicy.policy.files import policy_files
from gpolicy.policy.loading import load_policy
from tests.rules.run_rules import TODAY

GROUP = "gpolicy: v1\nkind: NodeGroup\nname: gold\nnodes: [node1.example.org]\n"
GUARDS = "gpolicy: v1\nkind: Guards\nguards: [{name: g, newly_violating: 0, group: silver}]\n"


def written(directory: Path, **files: str) -> Path:
    for name, text in {"group": GROUP, "guards": GUARDS, **files}.items():
        (directory / f"{name}.yml").write_text(text, encoding="utf-8")
    return directory


def found(directory: Path) -> list[Finding]:
    (checked,) = Checker([directory], None, today=TODAY).check()
    return checked.findings


FOREIGN = [
    "site_name: x\n",
    "apiVersion: apps/v1\nkind: Deployment\n",
    "{{- if .Values.gpolicy }}\nkey: [unclosed\n{{ end }}\n",
    "- one\n- two\n",
    "# a comment\nplugins: !!python/name:x\n",
]


@pytest.mark.parametrize("text", FOREIGN)
def test_a_foreign_file_is_one_finding_that_says_how_to_exclude_it(text: str, tmp_path: Path) -> None:
    policy = load_policy(written(tmp_path, mkdocs=text))
    (finding,) = policy.findings
    assert (finding.code, finding.span and Path(finding.span.file).name) == ("GP010", "mkdocs.yml")
    assert 'exclude = ["mkdocs.yml"]' in finding.hint
    assert list(policy.groups) == ["gold"]
    assert policy.is_whole


def test_rules_about_the_whole_policy_still_run(tmp_path: Path) -> None:
    alone = {finding.code for finding in found(written(tmp_path))}
    assert "GP801" in alone
    assert {finding.code for finding in found(written(tmp_path, mkdocs="site_name: x\n"))} == alone | {"GP010"}
    (tmp_path / "gpolicy.toml").write_text('exclude = ["mkdocs.yml"]\n', encoding="utf-8")
    assert {finding.code for finding in found(tmp_path)} == alone


@pytest.mark.parametrize(
    "text",
    [
        "kind: NodeGroup\nname: silver\n",
        "gpolicy: v2\nkind: NodeGroup\nname: silver\n",
        '{"gpolicy": "v1", "kind": [}\n',
        "GPolicy: v1\n",
        "kind: gpolicy-snapshot\n",
    ],
)
def test_a_document_with_a_slip_is_not_foreign(text: str, tmp_path: Path) -> None:
    policy = load_policy(written(tmp_path, slip=text))
    assert policy.findings
    assert not policy.is_whole
    assert not any("exclude" in finding.hint for finding in policy.findings)


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "silver", "gpolicy": "v1", "kind": "NodeGroup"}\n',
        "# a comment\rgpolicy: v1\rkind: NodeGroup\rname: silver\r",
        "name: silver\nkind: NodeGroup\ngpolicy: v1\n",
    ],
)
def test_a_document_in_any_order_and_form_is_read(text: str, tmp_path: Path) -> None:
    policy = load_policy(written(tmp_path, other=text))
    assert policy.findings == ()
    assert list(policy.groups) == ["gold", "silver"]


@pytest.mark.parametrize("text", [1000000 * "\n", 500000 * "#\n", 250000 * "-, ", 250000 * "kind: "])
def test_a_long_file_is_told_apart_at_once(text: str, tmp_path: Path) -> None:
    start = time.process_time()
    load_policy(written(tmp_path, long=text))
    assert time.process_time() - start < 10


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "---\n...\n"])
def test_a_file_without_values_is_none_at_all(text: str, tmp_path: Path) -> None:
    assert load_policy(written(tmp_path, empty=text)).findings == ()


def test_globs_begin_at_the_settings_and_take_directories(tmp_path: Path) -> None:
    policy, charts = tmp_path / "clusters" / "ham", tmp_path / "clusters" / "charts" / "deep"
    policy.mkdir(parents=True)
    charts.mkdir(parents=True)
    written(policy)
    (charts / "chart.yaml").write_text("{{ x }}\n", encoding="utf-8")
    cases = {"clusters/charts/**": 2, "clusters/charts": 2, "charts": 3, "*.yaml": 2, "guards.yml": 3}
    for glob, left in cases.items():
        (tmp_path / "gpolicy.toml").write_text(f'exclude = ["{glob}"]\n', encoding="utf-8")
        assert len(policy_files(tmp_path)) == left
    (tmp_path / "gpolicy.toml").write_text('exclude = ["*"]\n', encoding="utf-8")
    with pytest.raises(InputError):
        policy_files(tmp_path)
