"""The alert rules and the dashboard: they are sound, and ask for metrics that there are."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpolicy.report import prometheus
from gpolicy.report.forms import OWN_FORMS
from tests.cli.command_line import gpolicy

ROOT = Path(__file__).resolve().parent.parent
POLICIES, MONITORING = ROOT / "policies", ROOT / "monitoring"
RULES = yaml.safe_load((MONITORING / "alerts.yml").read_text(encoding="utf-8"))
TESTS = yaml.safe_load((MONITORING / "alerts.test.yml").read_text(encoding="utf-8"))
BOARD: dict[str, Any] = json.loads((MONITORING / "dashboard.json").read_text(encoding="utf-8"))
METRICS = {metrics.prefix + name for metrics in prometheus.METRICS.values() for name in metrics.all}

needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool (Debian package prometheus)")


def promtool(*words: str | Path) -> None:
    done = subprocess.run(["promtool", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def named(expression: str) -> set[str]:
    return set(re.findall(r"\bgpolicy_\w+", expression))


def alerts() -> list[dict[str, Any]]:
    return [rule for group in RULES["groups"] for rule in group["rules"]]


def expressions() -> list[str]:
    return [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]


def test_every_verb_with_metrics_is_known_here() -> None:
    assert {verb for verb, forms in OWN_FORMS.items() if "prometheus" in forms} == set(prometheus.METRICS)


def test_names_and_units_follow_the_conventions() -> None:
    for metrics in prometheus.METRICS.values():
        for name, item in metrics.all.items():
            assert re.fullmatch(r"[a-z][a-z0-9_]*[a-z0-9]", name)
            assert not name.endswith(("_total", "_count", "_sum", "_bucket"))  # of other types than gauges
            assert ("timestamp" in name) == name.endswith("_timestamp_seconds")
            assert item.help.endswith(".")
            assert "\n" not in item.help


@needs_promtool
def test_the_rules_are_sound() -> None:
    promtool("check", "rules", MONITORING / "alerts.yml")


@needs_promtool
@pytest.mark.slow
def test_the_rules_alert_when_they_should() -> None:
    promtool("test", "rules", MONITORING / "alerts.test.yml")


def test_each_rule_asks_for_metrics_that_there_are_and_has_a_test_in_which_it_fires() -> None:
    fired = {
        test["alertname"] for part in TESTS["tests"] for test in part["alert_rule_test"] if test["exp_alerts"]
    }  # fmt: skip
    assert fired == {rule["alert"] for rule in alerts()}
    for rule in alerts():
        assert named(rule["expr"])
        assert named(rule["expr"]) <= METRICS
        assert named(str(rule["annotations"])) <= METRICS


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    for expression in expressions():
        assert named(expression)
        assert named(expression) <= METRICS
    for variable in BOARD["templating"]["list"]:
        assert named(str(variable["query"])) <= METRICS
    variables = {variable["name"] for variable in BOARD["templating"]["list"]}
    assert set(re.findall(r"\$\{?(\w+)", json.dumps(BOARD["panels"]))) <= variables


@needs_promtool
def test_prometheus_understands_the_dashboard(tmp_path: Path) -> None:
    rules = [
        {"record": f"panel:{number}", "expr": re.sub(r"\$\w+", ".*", expression)}
        for number, expression in enumerate(expressions())
    ]
    file = tmp_path / "panels.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}), encoding="utf-8")
    promtool("check", "rules", file)


@pytest.fixture(scope="module")
def metrics(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What `capacity` and `drift` write: of clusters with names, and of one without."""
    directory = tmp_path_factory.mktemp("clusters")
    state = json.loads((POLICIES / "two-groups.snapshot.json").read_text(encoding="utf-8"))
    written = json.dumps({**state, "taken_at": "2026-01-01T00:00:00Z"})
    for name in ("ham", "ber"):
        shutil.copytree(POLICIES / "two-groups", directory / name)
        for file in (directory / name).rglob("*.yaml"):
            text = file.read_text(encoding="utf-8").replace("example.org", f"{name}.example.org")
            file.write_text(text, encoding="utf-8")
        text = written.replace("example.org", f"{name}.example.org")
        (directory / f"{name}.json").write_text(text, encoding="utf-8")
        (directory / "kept" / name).mkdir(parents=True)
        for week in range(6):
            taken = date(2025, 12, 31) - timedelta(weeks=week)
            shutil.copy(directory / f"{name}.json", directory / "kept" / name / f"{taken:%Y%m%d}T000000Z.json")
        with (directory / "gpolicy.toml").open("a", encoding="utf-8") as settings:
            settings.write(f'[clusters.{name}]\npolicy = "{name}"\nstate = "snapshot:{name}.json"\n')
    found = {}
    for which, words in {"named": ("--all",), "unnamed": ("ham", "--state", "snapshot:ham.json")}.items():
        words_of = {"capacity": ("--history", "kept" if which == "named" else "kept/ham"), "drift": ()}
        asked = [(verb, *words, *words_of[verb], "--format", "prometheus") for verb in prometheus.METRICS]
        texts = [gpolicy(*each, cwd=directory).stdout for each in asked]
        found[which] = "".join(texts)
    return found


@needs_promtool
def test_each_panel_shows_what_is_written_of_the_clusters_that_are_chosen(
    metrics: dict[str, str], tmp_path: Path
) -> None:
    """And of no others: each expression gives series of these clusters alone."""
    asked, unnamed = expressions(), "snapshot:ham.json"
    variables = [variable["definition"] for variable in BOARD["templating"]["list"] if variable["type"] == "query"]
    offered = [re.sub(r"label_values\((.*), \w+\)", r"\1", definition) for definition in variables]
    tests = [
        _test_of_panels(metrics["named"], offered, ".*", ['{target="ber"}', '{target="ham"}']),
        _test_of_panels(metrics["named"], asked, "ham", ['{target="ham"}']),
        _test_of_panels(metrics["named"], asked, "ber", ['{target="ber"}']),
        _test_of_panels(metrics["named"], asked, ".*", ['{target="ber"}', '{target="ham"}']),
        _test_of_panels(metrics["named"], asked, ".*", [], machine="another"),
        _test_of_panels(metrics["unnamed"], asked, unnamed, [f'{{target="{unnamed}"}}']),
    ]
    file = tmp_path / "panels.yml"
    file.write_text(yaml.safe_dump({"rule_files": [], "tests": tests}), encoding="utf-8")
    promtool("test", "rules", file)


def _test_of_panels(
    text: str, asked: Sequence[str], target: str, expected: Sequence[str], *, machine: str = "node1:9100"
) -> dict[str, Any]:
    """Return a test for promtool: on these metrics each expression gives series of the expected clusters.

    Metrics of drift do not say which cluster they are about, if it has no name.
    """
    lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    chosen = {"target": target, "group": ".*", "instance": machine}
    cases = []
    for expression in asked:
        whole = re.sub(r"\$(\w+)", lambda found: chosen[found[1]], expression)
        of_drift = "gpolicy_drift" in whole and not target.isalpha() and target != ".*"
        samples = [{"labels": "{}" if of_drift else labels, "value": 1} for labels in expected]
        cases.append({"expr": f"group by (target) ({whole})", "eval_time": "1m", "exp_samples": samples})
    return {
        "interval": "1m",
        "input_series": [
            {"series": name.replace("{", '{instance="node1:9100",job="node",', 1), "values": f"{value} {value}"}
            for name, _, value in lines
        ],
        "promql_expr_test": cases,
    }


def test_the_panels_of_the_dashboard_are_complete_and_side_by_side() -> None:
    taken = set[tuple[int, int]]()
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])
    for panel in BOARD["panels"]:
        assert panel["title"]
        assert panel["type"] in {"stat", "table", "timeseries"}
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert not cells & taken
        taken |= cells
