"""The policy that `gpolicy init` writes is correct and instructive."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

from gpolicy.errors import RequestError
from gpolicy.forecast.bridge import FORECAST
from gpolicy.policy.loading import load_policy
from gpolicy.writing.documents import starter_files
from gpolicy.writing.new_files import write_files
from tests.mistakes import find_mistakes

TODAY = date(2026, 1, 1)


@pytest.mark.parametrize("name", ["cluster.example.org", "no", "1:30", "name: x", "a #b", '"', "010", "\\"])
def test_the_starter_passes_check_for_any_cluster_name(tmp_path: Path, name: str) -> None:
    write_files(starter_files(name), tmp_path)
    policy = load_policy(tmp_path)
    assert policy.cluster is not None
    assert policy.cluster.name == name
    found = [finding for finding in find_mistakes(policy, today=TODAY, forecast=FORECAST) if finding.severity != "info"]
    host_name = re.fullmatch("[a-z0-9.]+", name) is not None
    assert [finding.name for finding in found] == ([] if host_name else ["cluster-name-impossible"])


@pytest.mark.parametrize("name", ["", "a\nb", "\x1b[31m", "x" * 256])
def test_an_unprintable_cluster_name_is_refused(name: str) -> None:
    with pytest.raises(RequestError):
        starter_files(name)


def test_editors_find_the_schema_from_every_file(tmp_path: Path) -> None:
    write_files(starter_files("cluster.example.org"), tmp_path)
    for path in tmp_path.rglob("*.yaml"):
        first, second, *_ = path.read_text(encoding="utf-8").splitlines()
        schema = first.removeprefix("# yaml-language-server: $schema=")
        assert second == f"# $schema: {schema}"
        assert (path.parent / schema).is_file()


def test_the_starter_has_guards_from_the_first_day(tmp_path: Path) -> None:
    write_files(starter_files("cluster.example.org"), tmp_path)
    measures = [guard.measure.value for guard in load_policy(tmp_path).guards]
    assert measures == ["newly_violating", "capacity_loss", "node_failures"]
