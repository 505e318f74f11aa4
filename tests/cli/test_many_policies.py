"""Policies examined side by side: the findings are those of one process, in the same order."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

import jsonschema
import pytest

from gpolicy.checking.checking import Checker
from gpolicy.cli import checking
from gpolicy.fleet import workers
from gpolicy.fleet.workers import Failed
from tests.cli.command_line import ROOT, gpolicy

GROUP = "---\ngpolicy: v1\nkind: NodeGroup\nname: gold{n}\nnodes: [node{n}]\nipolicy: {{vcpu-ratio: 0.{n}}}\n"
CLUSTER = "gpolicy: v1\nkind: Cluster\nname: c{n}\nextends: ../base.yaml#fleet\nipolicy: {{vcpu-ratio: {n}}}\n"
BASE = "gpolicy: v1\nkind: Cluster\nname: fleet\ntemplate: true\nmac_prefix: 'aa:00:00'\n"
WAIVER = "---\ngpolicy: v1\nkind: Waiver\nwaivers: [{rule: GP833, where: cluster, reason: so, until: '2099-01-01'}]\n"


@pytest.fixture
def checker(tmp_path: Path) -> Checker:
    (tmp_path / "base.yaml").write_text(BASE, encoding="utf-8")
    roots = [tmp_path / f"c{number}" for number in range(7)]
    for number, root in enumerate(roots):
        root.mkdir()
        groups = "".join(GROUP.format(n=group + 1) for group in range(number))
        text = CLUSTER.format(n=number + 1) + groups + (WAIVER if number % 2 else "")
        (root / "policy.yaml").write_text(text, encoding="utf-8")
    return Checker(roots, None, today=date(2026, 11, 24))


@pytest.fixture(autouse=True)
def _many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "MANY_OBJECTS", 0)
    monkeypatch.setattr("os.cpu_count", lambda: 3)


def test_the_findings_are_those_of_one_process(checker: Checker, monkeypatch: pytest.MonkeyPatch) -> None:
    started = list[int]()
    real = workers.work_side_by_side

    def counted(jobs: Sequence[Callable[[], object]], **options: object) -> object:
        started.append(len(jobs))
        return real(jobs, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(workers, "work_side_by_side", counted)
    examinations = checker.examinations()
    found = checking.run_examinations(examinations)
    assert started == [7]
    assert found == [item.run() for item in examinations]
    assert {finding.code for item in found for finding in item.findings} >= {"GP832", "GP834"}
    assert {known.finding.code for item in found for known in item.accepted} == {"GP833"}


def test_what_a_process_did_not_answer_is_examined_here(checker: Checker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "work_side_by_side", lambda jobs, **_: [jobs[0](), *[Failed("killed")] * 6])
    examinations = checker.examinations()
    assert checking.run_examinations(examinations) == [item.run() for item in examinations]


def test_check_refuses_one_policy_for_two_clusters(tmp_path: Path) -> None:
    named = "gpolicy: v1\nkind: Cluster\nname: ham.example.org\n"
    (tmp_path / "shared.yaml").write_text(named)
    clusters = "".join(
        f'[clusters.{name}]\nstate = "ssh://{name}"\npolicy = "shared.yaml"\n' for name in ("ham", "ber")
    )
    (tmp_path / "gpolicy.toml").write_text(clusters)
    done = gpolicy("check", ".", cwd=tmp_path)
    assert done.returncode == 1
    said = "clusters.ber.policy: it is the policy of ham as well, and names one cluster: ham.example.org"
    assert f"gpolicy.toml:6:1: error GP028 settings-mistake: {said}" in " ".join(done.stdout.split())
    (finding,) = json.loads(gpolicy("check", ".", "-f", "json", cwd=tmp_path).stdout)["findings"]
    assert (finding["code"], finding["file"], finding["line"]) == ("GP028", "gpolicy.toml", 6)
    (tmp_path / "shared.yaml").write_text("gpolicy: v1\nkind: NodeGroup\nname: gold\nalloc_policy: preferred\n")
    assert "clusters.ber" not in gpolicy("check", ".", cwd=tmp_path).stdout


def test_all_clusters_show_what_their_policies_show_together(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "policy.yaml").write_text("gpolicy: v1\nkind: Cluster\nname: one\n", encoding="utf-8")
    settings = "".join(f'[clusters.{name}]\npolicy = "{name}"\nstate = "sim:p,1,1T,64G,8,1"\n' for name in ("a", "b"))
    (tmp_path / "gpolicy.toml").write_text(settings, encoding="utf-8")
    together = json.loads(gpolicy("check", "a", "b", "-f", "json", cwd=tmp_path).stdout)["findings"]
    clusters = json.loads(gpolicy("check", "--all", "-f", "json", cwd=tmp_path).stdout)["clusters"]
    assert [item["code"] for item in together if item["severity"] == "error"] == ["GP831"]
    found = [(item["name"], one["code"]) for item in clusters for one in item["report"]["findings"]]
    assert ("b", "GP831") in found
    plan = gpolicy("plan", "--all", "--changed-since", "HEAD", "--details", cwd=tmp_path)
    assert plan.returncode == 3  # no repository
    plan = gpolicy("plan", "--label", "name=b", "--no-impact", "--details", cwd=tmp_path)
    assert (plan.returncode, "No plan: " in plan.stdout, "GP831" in plan.stdout) == (1, True, True)


def test_parts_of_many_clusters_become_one_report(tmp_path: Path) -> None:
    fleet, parts = ROOT / "policies" / "fleet", [tmp_path / "1.json", tmp_path / "2.json"]
    for number, part in enumerate(parts, start=1):
        gpolicy("plan", "--all", "--shard", f"{number}/2", "--output", f"json={part}", cwd=fleet)
    whole, joined = gpolicy("plan", "--all", cwd=fleet), gpolicy("show", *parts)
    assert (joined.returncode, joined.stdout) == (0, whole.stdout)
    data = json.loads(gpolicy("show", *parts, "-f", "json").stdout)
    assert [item["name"] for item in data["clusters"]] == ["amsterdam", "berlin"]
    jsonschema.validate(data, json.loads((ROOT / "schemas" / "output" / "fleet.json").read_text()))
    half = gpolicy("show", parts[1])
    assert (half.returncode, "1 part of the clusters missing: 1/2" in half.stdout) == (3, True)
    copied = shutil.copy(parts[0], tmp_path / "again.json")
    twice = gpolicy("show", parts[0], copied)
    assert "has the cluster amsterdam, as" in twice.stderr
    some = gpolicy("plan", "--all", "--shard", "3/3", "--format", "json", cwd=fleet)
    assert "part 3/3 has none of those that are asked for" in some.stderr
    assert json.loads(some.stdout)["clusters"] == []  # there are two clusters
    other = gpolicy("show", parts[0], ROOT / "policies" / "two-groups.snapshot.json")
    assert "no report of many clusters" in other.stderr


def test_joined_parts_are_in_the_order_of_the_settings_and_end_as_one_run_does(tmp_path: Path) -> None:
    settings = "".join(f'[clusters.{name}]\nstate = "sim:p,1,1T,64G,8,1"\n' for name in ("c", "a", "d", "b", "e"))
    (tmp_path / "gpolicy.toml").write_text(settings + '[clusters.gone]\nstate = "snapshot:gone.json"\n')
    for number in (1, 2):
        gpolicy("capacity", "--all", "--shard", f"{number}/2", "--output", f"json={number}.json", cwd=tmp_path)
    whole = gpolicy("capacity", "--all", "-f", "json", cwd=tmp_path)
    joined = gpolicy("show", "2.json", "1.json", "-f", "json", cwd=tmp_path)
    assert whole.returncode == joined.returncode == 3  # one is gone
    names = [[item["name"] for item in json.loads(done.stdout)["clusters"]] for done in (whole, joined)]
    assert names[0] == names[1] == ["c", "a", "d", "b", "e", "gone"]
    part = tmp_path / "2.json"
    part.write_text(part.read_text().replace('"exit_code": 0', '"exit_code": 7', 1))
    wrong = gpolicy("show", "1.json", "2.json", cwd=tmp_path)
    assert (wrong.returncode, "exit_code should be an exit code of gpolicy" in wrong.stderr) == (3, True)


def test_joined_parts_say_what_clusters_share(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "policies" / "fleet", tmp_path / "fleet")
    base, part = tmp_path / "fleet" / "base.yaml", tmp_path / "part.json"
    base.write_text(base.read_text().replace("candidate_pool_size: 10", "candidate_pool_size: 0"))
    whole = gpolicy("check", "--all", "--output", f"json={part}", cwd=tmp_path / "fleet")
    assert "candidate_pool_size is 0" in whole.stdout
    assert gpolicy("show", part).stdout == whole.stdout


def test_a_list_of_clusters_says_which_policy_is_missing(tmp_path: Path) -> None:
    shutil.copy(ROOT / "policies/two-groups.snapshot.json", tmp_path / "cluster.json")
    (tmp_path / "here").mkdir()
    entries = (f'[clusters.{name}]\npolicy = "{name}"\nstate = "snapshot:cluster.json"\n' for name in ("here", "gone"))
    (tmp_path / "gpolicy.toml").write_text("".join(entries), encoding="utf-8")
    done = gpolicy("clusters", "--details", cwd=tmp_path)
    assert done.returncode == 0
    rows = [line for line in done.stdout.splitlines() if "snapshot:" in line]
    assert ["(missing)" in row for row in rows] == [False, True]
    assert "2 clusters, all answer; the settings file has a mistake" in done.stdout
    assert "clusters.gone.policy: there is no such file or directory" in done.stdout


def test_a_cluster_by_name_is_no_policy_that_the_answer_supposes(tmp_path: Path) -> None:
    shutil.copy(ROOT / "policies/two-groups.snapshot.json", tmp_path / "cluster.json")
    (tmp_path / "gpolicy.toml").write_text('[clusters.far]\nstate = "snapshot:cluster.json"\n')
    for words in (("remedy", "far"), ("size", "far", "--group", "default")):
        told = gpolicy(*words, "--seconds", "1", cwd=tmp_path)
        assert (told.returncode, "as far would make it" in told.stdout) == (0, False), told.stderr
