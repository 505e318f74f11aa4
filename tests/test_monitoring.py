"""The alert rules and the dashboard: they are sound, and ask for metrics that there are."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpolicy.report import capacity_prometheus, drift_prometheus
from gpolicy.report.forms import OWN_FORMS

MONITORING = Path(__file__).resolve().parent.parent / "monitoring"
RULES = yaml.safe_load((MONITORING / "alerts.yml").read_text(encoding="utf-8"))
TESTS = yaml.safe_load((MONITORING / "alerts.test.yml").read_text(encoding="utf-8"))
BOARD: dict[str, Any] = json.loads((MONITORING / "dashboard.json").read_text(encoding="utf-8"))
SETS = {"capacity": capacity_prometheus.METRICS, "drift": drift_prometheus.METRICS}
METRICS = {metrics.prefix + name for metrics in SETS.values() for name in metrics.all}

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
    assert {verb for verb, forms in OWN_FORMS.items() if "prometheus" in forms} == set(SETS)


def test_names_and_units_follow_the_conventions() -> None:
    for metrics in SETS.values():
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
        {"record": f"panel:{number}", "expr": expression.replace("$target", ".*").replace("$group", ".*")}
        for number, expression in enumerate(expressions())
    ]
    file = tmp_path / "panels.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}), encoding="utf-8")
    promtool("check", "rules", file)


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
