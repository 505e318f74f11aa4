"""New texts of policies from Python: the same as those of the command line."""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path

import pytest

import gpolicy
from tests.cli.command_line import ROOT, gpolicy as command_line

TODAY = date(2026, 11, 1)
SNAPSHOT = ROOT / "policies" / "two-groups.snapshot.json"
LOOSE = "gpolicy: v1\nkind: Cluster\nname:   ganeti.example.org # ours\nipolicy:\n    vcpu-ratio: 4\n"
MISTAKEN = "gpolicy: v1\nkind: Cluster\nname: ganeti.example.org\nipolicy: {vcpu-ratoi: 4}\n"


def policy(directory: Path, text: str) -> Path:
    directory.mkdir()
    (directory / "policy.yaml").write_text(text, encoding="utf-8")
    return directory


def texts(directory: Path) -> dict[str, str]:
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_text(encoding="utf-8") for path in files}


def twins(tmp_path: Path, text: str) -> tuple[Path, Path]:
    return policy(tmp_path / "one", text), policy(tmp_path / "two", text)


def test_the_form_is_that_of_fmt(tmp_path: Path) -> None:
    one, two = twins(tmp_path, LOOSE)
    (file,) = gpolicy.format_policies([one])
    assert (file.name, file.text, file.changed) == (str(one / "policy.yaml"), LOOSE, True)
    assert texts(one) == {"policy.yaml": LOOSE}
    assert gpolicy.write_formatted([file]) == [file]
    command_line("fmt", str(two))
    assert texts(one) == texts(two) == {"policy.yaml": file.formatted.text}
    assert not gpolicy.format_policies([one])[0].changed


def test_what_lies_behind_a_link_is_not_written(tmp_path: Path) -> None:
    directory = policy(tmp_path / "one", LOOSE)
    (directory / "policy.yaml").rename(directory / "real.txt")
    (directory / "policy.yaml").symlink_to("real.txt")
    (file,) = gpolicy.format_policies([directory])
    assert file.changed
    assert "link" in file.unwritable
    assert gpolicy.write_formatted([file]) == []
    assert (directory / "real.txt").read_text(encoding="utf-8") == LOOSE


def test_fixes_are_those_of_check(tmp_path: Path) -> None:
    one, two = twins(tmp_path, MISTAKEN)
    fixed = gpolicy.fix_policies([one], today=TODAY)
    assert [finding.code for finding in fixed.fixed] == ["GP011"]
    assert texts(one) == {"policy.yaml": MISTAKEN}
    gpolicy.write_texts(fixed.texts, *fixed.policies)
    command_line("check", "--fix", str(two))
    assert texts(one) == texts(two) == {"policy.yaml": MISTAKEN.replace("vcpu-ratoi", "vcpu-ratio")}
    again = gpolicy.fix_policies([one], today=TODAY)
    assert not again.texts
    assert again.left.findings == fixed.left.findings


def test_a_file_that_has_changed_since_it_was_read_is_not_written(tmp_path: Path) -> None:
    directory = policy(tmp_path / "one", MISTAKEN)
    fixed = gpolicy.fix_policies([directory], today=TODAY)
    (directory / "policy.yaml").write_text(LOOSE, encoding="utf-8")
    with pytest.raises(gpolicy.GpolicyError, match="it has changed since it was read"):
        gpolicy.write_texts(fixed.texts, *fixed.policies)
    assert texts(directory) == {"policy.yaml": LOOSE}


def test_a_byte_order_mark_stays(tmp_path: Path) -> None:
    directory = policy(tmp_path / "one", f"\ufeff{MISTAKEN}")
    fixed = gpolicy.fix_policies([directory], today=TODAY)
    gpolicy.write_texts(fixed.texts, *fixed.policies)
    assert texts(directory)["policy.yaml"].startswith("\ufeffgpolicy: v1")


def test_an_adopted_policy_is_that_of_adopt_and_takes_what_is_new(tmp_path: Path) -> None:
    state = gpolicy.read_state(f"snapshot:{SNAPSHOT}")
    gpolicy.write_policy(gpolicy.adopt_cluster(state).files, tmp_path / "one")
    command_line("adopt", "--state", f"snapshot:{SNAPSHOT}", "--save", str(tmp_path / "two"))
    assert texts(tmp_path / "one") == texts(tmp_path / "two")
    group = next((tmp_path / "one" / "groups").iterdir())
    before = group.read_text(encoding="utf-8")
    group.unlink()
    checked = gpolicy.check_policy(gpolicy.load_policy(tmp_path / "one"), state, today=TODAY)
    added = gpolicy.adopt_new(checked.sound(), state, TODAY)
    gpolicy.write_texts(added.texts, checked.policy)
    assert f"group/{group.stem}" in added.added
    assert group.read_text(encoding="utf-8") == before


def test_drift_is_written_as_by_drift(tmp_path: Path) -> None:
    one, two = (shutil.copytree(ROOT / "policies" / "two-groups", tmp_path / name) for name in ("one", "two"))
    state = gpolicy.read_state(f"snapshot:{SNAPSHOT}")
    checked = gpolicy.check_policy(gpolicy.load_policy(one), state, today=TODAY)
    report = gpolicy.find_drift(checked, state, today=TODAY)
    assert report.drift
    wrote = gpolicy.write_back(checked.policy, state, report, today=TODAY)
    assert wrote.written
    gpolicy.write_texts(wrote.texts, checked.policy)
    command_line("drift", str(two), "--write", "--state", f"snapshot:{SNAPSHOT}")
    assert texts(one) == texts(two)
    with pytest.raises(gpolicy.GpolicyError, match="select"):
        gpolicy.write_back(checked.policy, state, report, today=TODAY, selected=["group/none"])


def test_a_snapshot_holds_the_state(tmp_path: Path) -> None:
    state = gpolicy.read_state(f"snapshot:{SNAPSHOT}")
    gpolicy.write_snapshot(state, tmp_path / "state.json")
    assert (tmp_path / "state.json").read_bytes() == gpolicy.dump_snapshot(state)
    assert gpolicy.read_state(f"snapshot:{tmp_path / 'state.json'}").nodes == state.nodes


def test_a_new_policy_is_that_of_init(tmp_path: Path) -> None:
    gpolicy.write_policy(gpolicy.starter_files("a.example.org"), tmp_path / "one")
    command_line("init", str(tmp_path / "two"), "--name", "a.example.org")
    assert texts(tmp_path / "one") == texts(tmp_path / "two")
