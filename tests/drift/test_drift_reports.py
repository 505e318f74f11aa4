"""Drift as text, JSON and metrics."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from jsonschema import Draft7Validator
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from gpolicy.cluster.state import Identity
from gpolicy.drift.comparing import Drift, DriftReport, find_drift
from gpolicy.json_values import json_text
from gpolicy.plan.changes import ChangeAction
from gpolicy.printable import Tone, terminal_text
from gpolicy.report.drift_answer import drift_answer, drift_data, since_text, utc
from gpolicy.report.forms import Display, render
from gpolicy.report.prometheus import METRICS, MetricsRun, drift_metrics, exposition
from tests.plan.planned import policy_of, recorded
from tests.report.rendered import Page, html_of, markdown_of, page_of_markdown

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "schemas/output/drift.json").read_text(encoding="utf-8"))
NOW = 1767225600.5


@pytest.fixture(scope="module")
def report() -> DriftReport:
    policy = policy_of(
        "Cluster\nname: cluster\ncandidate_pool_size: 99\ntags: [not-there]\n",
        "NodeGroup\nname: gold\nipolicy: {vcpu-ratio: 99, minmax: inherit}\n",
        "NodeGroup\nname: nowhere\n",
        'Waiver\nwaivers:\n  - {rule: drift, where: "cluster:tags", reason: agreed, until: "2026-12-31"}\n'
        '  - {rule: drift, where: "cluster:mac_prefix", reason: agreed, until: "2026-12-31"}\n'
        '  - {rule: drift, where: "node/*", reason: agreed, until: "2025-12-31"}\n',
    )
    return find_drift(policy, recorded("rich"), today=date(2026, 1, 1))


def written(report: DriftReport, *, policy: str = "/p", now: float = NOW) -> str:
    """Return the metrics of a run that compared."""
    return exposition(METRICS["drift"], [MetricsRun({"policy": policy}, drift_metrics(report))], now=now)


def failed(before: str | None, *, policy: str = "/p", now: float = NOW) -> str:
    """Return the metrics of a run that could not compare."""
    return exposition(METRICS["drift"], [MetricsRun({"policy": policy}, None)], now=now, before=before)


def metrics(text: str) -> dict[str, Metric]:
    families = list(text_string_to_metric_families(text))
    assert len({family.name for family in families}) == len(families)
    for family in families:
        assert family.type == "gauge"
        assert family.documentation
    return {family.name.removeprefix("gpolicy_drift_"): family for family in families}


def samples(family: Metric) -> dict[tuple[str, ...], float]:
    """Return values by labels other than the policy's."""
    for sample in family.samples:
        assert sample.labels["policy"] == "/p"
    return {
        tuple(value for key, value in sample.labels.items() if key != "policy"): sample.value
        for sample in family.samples
    }


def test_json_is_as_its_schema_says(report: DriftReport) -> None:
    Draft7Validator.check_schema(SCHEMA)
    data = json.loads(json_text(drift_data(report, compared_at=NOW)))
    assert list(Draft7Validator(SCHEMA).iter_errors(data)) == []
    assert data["compared_at"] == "2026-01-01T00:00:00Z"
    assert data["summary"] == {"drift": 4, "accepted": 1, "unreadable": 0}
    by_name = {(item["object"], item["path"]): item for item in data["drift"]}
    gold = recorded("rich").groups["gold"].identity
    assert by_name["group/gold", "ipolicy.vcpu-ratio"]["serial_no"] == gold.serial_no
    assert by_name["group/gold", "ipolicy.vcpu-ratio"]["since_at_latest"] == utc(gold.mtime)
    assert by_name["group/nowhere", "name"]["since_at_latest"] is None
    assert data["accepted"][0]["waiver"]["reason"] == "agreed"


def test_the_schema_refuses_missing_fields(report: DriftReport) -> None:
    data = drift_data(report, compared_at=NOW)
    for key in SCHEMA["required"]:
        assert not Draft7Validator(SCHEMA).is_valid({name: value for name, value in data.items() if name != key})


def test_text_shows_drift_its_date_and_accepted_drift(report: DriftReport) -> None:
    text = render(drift_answer(report, {}, of="policies"), Display(details=True))
    assert "  ipolicy.vcpu-ratio: found 6, declared 99" in text
    assert "group/nowhere  when it was changed is not known\n  is declared; the cluster has no such group" in text
    assert "cluster tags: not-there is missing" in text
    assert "until 2026-12-31: agreed" in text
    assert "Who changed it is not known" in text
    assert "GP902 waiver-unused" in text
    assert "GP901 waiver-expired" in text
    assert text.endswith("4 differences, 1 accepted\n")
    assert "\x1b" not in text
    assert "\x1b[31m" in terminal_text(
        render(drift_answer(report, {}, of="policies"), Display(details=True, colour=True))
    )


def test_markdown_and_the_page_have_every_difference(report: DriftReport) -> None:
    answer = drift_answer(report, {}, of="policies")
    markdown, html = page_of_markdown(markdown_of(answer)), Page(html_of(answer))
    assert "4 differences, 1 accepted" in markdown.prose
    assert "4 differences, 1 accepted" in html.prose
    shown = markdown_of(answer), " ".join(html.items)
    for text in shown:
        assert "ipolicy.vcpu-ratio: found 6, declared 99" in text
        assert "until 2026-12-31: agreed" in text
        assert "GP901" in text or "GP901" in str(html.tables)


def test_the_date_of_a_change_is_as_exact_as_known() -> None:
    assert since_text(Identity(serial_no=7, mtime=NOW)) == (
        "last changed no later than 2026-01-01T00:00:00Z (serial 7)"
    )
    assert since_text(Identity(serial_no=7)) == "when it was changed is not known (serial 7)"
    assert utc(1e300) is None


def test_metrics_are_read_by_prometheus_own_parser(report: DriftReport) -> None:
    found = metrics(written(report))
    assert set(found) == {
        "up", "last_run_timestamp_seconds", "last_success_timestamp_seconds", "info", "differences", "accepted",
        "unreadable", "waiver_findings", "difference", "object_modified_timestamp_seconds",
    }  # fmt: skip
    assert samples(found["up"]) == {(): 1}
    assert samples(found["last_run_timestamp_seconds"]) == {(): NOW}
    assert samples(found["info"]) == {("cluster",): 1}
    assert samples(found["differences"]) == {("cluster",): 1, ("group",): 3, ("node",): 0}
    assert samples(found["accepted"]) == {(): 1}
    assert samples(found["waiver_findings"]) == {("waiver-expired",): 1, ("waiver-unused",): 1}
    assert samples(found["difference"])["group/gold", "ipolicy.vcpu-ratio"] == 1
    modified = samples(found["object_modified_timestamp_seconds"])
    assert modified["group/gold",] == recorded("rich").groups["gold"].identity.mtime
    assert ("group/nowhere",) not in modified


def test_each_series_has_the_labels_that_its_metric_declares(report: DriftReport) -> None:
    for name, series in drift_metrics(report).items():
        assert {tuple(labels) for labels, _ in series} <= {METRICS["drift"].all[name].labels}, name


def test_a_failed_run_says_so_and_keeps_the_last_good_result(report: DriftReport) -> None:
    good = written(report)
    before, after = metrics(good), metrics(failed(good, now=NOW + 60))
    assert samples(after["up"]) == {(): 0}
    assert samples(after["last_run_timestamp_seconds"]) == {(): NOW + 60}
    kept = set(before) - {"up", "last_run_timestamp_seconds"}
    assert set(after) == set(before)
    assert {name: samples(after[name]) for name in kept} == {name: samples(before[name]) for name in kept}
    again = failed(failed(good, now=NOW + 60), now=NOW + 120)
    assert again.splitlines()[7:] == failed(good).splitlines()[7:]


@pytest.mark.parametrize("before", [None, "", "x y z\n", "gpolicy_drift_bogus 1\n", "gpolicy_drift_upper{} 1\n", "\0"])
def test_a_run_that_fails_first_has_nothing_to_keep(before: str | None) -> None:
    assert set(metrics(failed(before))) == {"up", "last_run_timestamp_seconds"}


@given(st.text(), st.text(), st.text())
def test_any_name_survives_as_a_label(name: str, path: str, policy: str) -> None:
    drift = Drift(
        object=f"group/{name}",
        path=(path,),
        action=ChangeAction.SET,
        declared=1,
        inherits=False,
        found=2,
        effective_declared=1,
        effective_found=2,
        since=Identity(mtime=NOW),
    )
    text = written(DriftReport(cluster=name, source="s", compared=1, drift=(drift,)), policy=policy)
    for each in (text, failed(text, policy=policy)):
        family = next(item for item in text_string_to_metric_families(each) if item.name == "gpolicy_drift_difference")
        assert family.samples[0].labels == {"policy": policy, "object": f"group/{name}", "path": path}


def test_who_changed_it_is_asked_only_where_something_has(report: DriftReport) -> None:
    def notes(of: DriftReport) -> tuple[str, ...]:
        (section,) = (item for item in drift_answer(of, {}, of="p").sections if item.key == "drift")
        return section.notes

    assert any(note.startswith("Who changed it is not known") for note in notes(report))
    none = replace(report, drift=())
    assert notes(none) == ()
    good, bad = drift_answer(none, {}, of="p"), drift_answer(report, {}, of="p")
    assert [answer.tone for answer in (good, bad)] == [Tone.GOOD, Tone.BAD]
    assert [answer.figures[0].tone for answer in (good, bad)] == [Tone.GOOD, Tone.BAD]
    assert good.verdict == "1 difference, accepted until 2026-12-31"
    nothing = drift_answer(replace(none, accepted=()), {}, of="p")
    assert nothing.verdict.startswith("None: the cluster is as declared")
    assert not bad.verdict.startswith("None")
