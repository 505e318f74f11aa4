"""The baseline: known findings of an old policy are not reported again."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from gpolicy.checking.baseline import Baseline, baseline_text, key_of, read_baseline
from gpolicy.checking.checking import Checker, Examination, Examined, new_baseline
from gpolicy.checking.settings import Settings
from gpolicy.errors import InputError
from gpolicy.findings import BASELINE, Finding, Severity
from gpolicy.policy.loading import load_policy
from tests.mistakes import find_mistakes
from tests.rules.run_rules import TODAY, codes

ROOT = Path(__file__).resolve().parents[2]
HEAD = "gpolicy: v1\nkind: NodeGroup\nname: gold\nndparams:\n"
TEXT = f"{HEAD}  spindle_count: 0\n  ssh_port: 0\n"  # GP107, GP106


def write(directory: Path, text: str = TEXT) -> Baseline:
    """Write a policy and the baseline of what it has."""
    (directory / "policies").mkdir(exist_ok=True)
    (directory / "policies" / "p.yaml").write_text(text, encoding="utf-8")
    policy = load_policy(directory / "policies")
    path = directory / "baseline.json"
    found = find_mistakes(policy, today=TODAY)
    path.write_text(baseline_text((item, key_of(item, policy.files, path)) for item in found), encoding="utf-8")
    return read_baseline(path)


def checked(directory: Path, baseline: Baseline, text: str | None = None, settings: Settings | None = None) -> Examined:
    if text is not None:
        (directory / "policies" / "p.yaml").write_text(text, encoding="utf-8")
    policy = load_policy(directory / "policies")
    return Examination(policy=policy, today=TODAY, settings=settings or Settings(), baseline=baseline).run()


def test_findings_in_the_baseline_are_accepted(tmp_path: Path) -> None:
    baseline = write(tmp_path)
    result = checked(tmp_path, baseline)
    assert result.findings == []
    assert [(item.finding.code, item.by) for item in result.accepted] == [("GP107", BASELINE), ("GP106", BASELINE)]
    lines = baseline.path.read_text(encoding="utf-8").splitlines()
    for item in result.accepted:
        assert item.place is not None
        assert item.place.file == str(baseline.path)
        assert item.finding.code in lines[item.place.line - 1]


def test_moved_lines_are_recognized_and_new_mistakes_reported(tmp_path: Path) -> None:
    baseline = write(tmp_path)
    moved = f"# a new head\n\n{HEAD}\n  # about spindles\n  spindle_count:  0  # none\n  ssh_port: 0\n"
    assert checked(tmp_path, baseline, moved).findings == []
    changed = TEXT.replace("ssh_port: 0", "ssh_port: 70000")
    assert codes(checked(tmp_path, baseline, changed).findings) == ["GP915", "GP106"]


def test_only_as_many_equal_mistakes_are_accepted_as_in_the_baseline(tmp_path: Path) -> None:
    twice = f"{HEAD}  spindle_count: 0\n---\n{HEAD.replace('gold', 'silver')}  spindle_count: 0\n"
    baseline = write(tmp_path, twice)
    assert checked(tmp_path, baseline).findings == []
    baseline.counts = dict(list(baseline.counts.items())[:1])
    assert codes(checked(tmp_path, baseline).findings) == ["GP107"]


def test_equal_lines_of_one_object_are_counted(tmp_path: Path) -> None:
    spec = (
        "memory-size: 131\n        cpu-count: 1\n        disk-size: 1024\n        disk-count: 1\n        nic-count: 1\n"
    )
    pair = f"      {{}}:\n        {spec}        spindle-use: 1\n"
    head = "gpolicy: v1\nkind: NodeGroup\nname: gold\nipolicy:\n  minmax:\n    -\n"
    text = f"{head}{pair.format('min')}{pair.format('max')}"
    baseline = write(tmp_path, text)
    assert [count for (code, _, _), count in baseline.counts.items() if code == "GP015"] == [2]
    assert "GP015" not in codes(checked(tmp_path, baseline).findings)
    baseline.counts = dict.fromkeys(baseline.counts, 1)
    assert codes(checked(tmp_path, baseline).findings).count("GP015") == 1


def test_an_empty_baseline_is_valid(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text(baseline_text([]), encoding="utf-8")
    assert read_baseline(tmp_path / "b.json").counts == {}


def test_a_baseline_with_house_rules_conforms_to_its_schema() -> None:
    schema = json.loads((ROOT / "schemas/output/baseline.json").read_text(encoding="utf-8"))
    found = Finding("GP950", "house/two-nodes", Severity.ERROR, "three nodes")
    written = json.loads(baseline_text([(found, (found.key, "p.yaml", "0" * 32))]))
    jsonschema.validate(written, schema)
    assert [entry["rule"] for entry in written["findings"]] == ["house/two-nodes"]


def test_a_fixed_entry_is_reported_once(tmp_path: Path) -> None:
    baseline = write(tmp_path)
    (finding,) = checked(tmp_path, baseline, f"{HEAD}  spindle_count: 0\n  ssh_port: 22\n").findings
    assert (finding.code, finding.severity) == ("GP915", "info")
    assert finding.message == "the baseline accepts a finding that no longer exists: GP106 in policies/p.yaml"
    assert finding.span is not None
    line = (tmp_path / "baseline.json").read_text().splitlines()[finding.span.line - 1]
    assert '"GP106"' in line


def test_an_entry_of_a_rule_that_did_not_run_is_not_reported(tmp_path: Path) -> None:
    baseline = write(tmp_path)
    clean = f"{HEAD}  spindle_count: 4\n  ssh_port: 22\n"
    assert codes(checked(tmp_path, baseline, clean).findings) == ["GP915", "GP915"]
    assert checked(tmp_path, baseline, clean, Settings(ignored=frozenset({"GP106", "GP107"}))).findings == []
    assert codes(checked(tmp_path, baseline, f"{clean}nonsense: 1\n").findings) == ["GP011"]
    assert checked(tmp_path, baseline, clean, Settings(ignored=frozenset({"GP915"}))).findings == []


def test_a_missing_file_is_reported_and_an_unchecked_one_is_not(tmp_path: Path) -> None:
    baseline = write(tmp_path)
    (tmp_path / "policies" / "other.yaml").write_text("gpolicy: v1\nkind: NodeGroup\nname: silver\n")
    (tmp_path / "policies" / "p.yaml").rename(tmp_path / "p.yaml")
    assert codes(checked(tmp_path, baseline).findings) == ["GP915", "GP915"]
    (tmp_path / "policies" / "p.yaml").write_text(TEXT)
    policy = load_policy(tmp_path / "policies" / "other.yaml")
    assert Examination(policy=policy, today=TODAY, baseline=baseline).run().findings == []


def test_errors_of_structure_and_findings_about_waivers_are_never_accepted(tmp_path: Path) -> None:
    text = f"{HEAD}  ssh_port: 22  # gpolicy: ignore[GP107]\n"
    baseline = write(tmp_path, text)
    assert baseline.counts
    assert "GP911" in codes(checked(tmp_path, baseline).findings)
    baseline = write(tmp_path, f"{HEAD}  nonsense: 1\n")
    assert "GP011" in codes(checked(tmp_path, baseline).findings)


def test_the_directory_that_gpolicy_runs_in_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path)
    monkeypatch.chdir(tmp_path / "policies")
    baseline = read_baseline(Path("../baseline.json"))
    assert Examination(policy=load_policy(Path()), today=TODAY, baseline=baseline).run().findings == []
    monkeypatch.chdir(tmp_path)
    baseline = read_baseline(Path("baseline.json"))
    assert Examination(policy=load_policy(Path("policies/p.yaml")), today=TODAY, baseline=baseline).run().findings == []


GOOD = {"rule": "GP201", "file": "p.yaml", "fingerprint": "0" * 32, "count": 1}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not JSON"),
        (b"\xff", "not UTF-8"),
        (b"[" * 100_000, "nested too deep"),
        (b"9" * 10_000, "not JSON"),
        (b"[]", "not a baseline"),
        (b'{"format_version": "2.0", "findings": []}', "not a baseline"),
        (b'{"format_version": 1, "findings": []}', "not a baseline"),
        (b'{"format_version": "1.0"}', "`findings` is not a list"),
        *(
            (json.dumps({"format_version": "1.0", "findings": [GOOD, entry]}).encode(), r"findings\[1\] lacks")
            for entry in (
                None,
                {**GOOD, "count": 0},
                {**GOOD, "count": True},
                {**GOOD, "count": 10**9},
                {**GOOD, "rule": 1},
                {key: value for key, value in GOOD.items() if key != "file"},
            )
        ),
    ],
)
def test_an_invalid_baseline_is_one_error(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "b.json").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_baseline(tmp_path / "b.json")


def test_a_missing_baseline(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such baseline"):
        read_baseline(tmp_path / "b.json")
    with pytest.raises(InputError, match="not a regular file"):
        read_baseline(tmp_path)


def test_a_later_minor_version_and_unknown_keys_are_read(tmp_path: Path) -> None:
    data = {"format_version": "1.7", "findings": [{**GOOD, "new": 1}, GOOD], "more": 1}
    (tmp_path / "b.json").write_text(json.dumps(data), encoding="utf-8")
    assert read_baseline(tmp_path / "b.json").counts == {("GP201", "p.yaml", "0" * 32): 2}


def test_what_follows_from_an_accepted_finding_is_told(tmp_path: Path) -> None:
    """One pair takes 32 MiB (GP152); from that follows the gap between the pairs (GP215)."""
    low = "min: {memory-size: 32M, cpu-count: 1, disk-size: 10G, disk-count: 1, nic-count: 1, spindle-use: 1}"
    high = "max: {memory-size: 32M, cpu-count: 8, disk-size: 1T, disk-count: 4, nic-count: 4, spindle-use: 4}"
    head = HEAD.replace("ndparams:", "ipolicy:\n  minmax:")
    small = f"    - {low}\n      {high}\n"
    text = head + small.replace("32M", "4G") + small
    path = write(tmp_path, text).path
    found = Checker([tmp_path / "policies"], None, today=TODAY, baseline=False).check()
    written = new_baseline(found, path)
    assert {"GP152", "GP215"} <= set(codes(found[0].findings))
    path.write_text(written.text, encoding="utf-8")
    assert checked(tmp_path, read_baseline(path)).findings == []
    assert "GP215" not in codes(find_mistakes(load_policy(tmp_path / "policies"), today=TODAY))
    write(tmp_path, head + small)
    assert codes(checked(tmp_path, read_baseline(path), text).findings) == ["GP215"]
