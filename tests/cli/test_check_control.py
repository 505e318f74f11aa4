"""`gpolicy check`: settings, comments, baseline and fixes, on the real command line."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from jsonschema import Draft7Validator

from tests.cli.command_line import ROOT, STATE, gpolicy

HEAD = "gpolicy: v1\nkind: NodeGroup\nname: gold\nndparams:\n"
BAD = f"{HEAD}  spindle_count: 0\n  ssh_port: 0\n"  # GP107, GP106
SLIP = f"# about gold\n{HEAD}  spindel_count: 4  # four\n"


def write(directory: Path, text: str = BAD, name: str = "p.yaml") -> Path:
    file = directory / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode())
    return directory


def settings(directory: Path, text: str) -> None:
    (directory / "gpolicy.toml").write_text(text, encoding="utf-8")


def codes(*arguments: str | Path, cwd: Path | None = None) -> tuple[list[str], int]:
    """Return the codes that a check finds, in their order, and its exit code."""
    done = gpolicy("check", "--format", "json", *arguments, cwd=cwd)
    return [item["code"] for item in json.loads(done.stdout)["findings"]], done.returncode


# --- which rules ---------------------------------------------------------------------------------------------------


def test_rules_are_chosen_on_the_command_line(tmp_path: Path) -> None:
    write(tmp_path)
    assert codes(tmp_path) == (["GP107", "GP106"], 1)
    assert codes(tmp_path, "--select", "GP107") == (["GP107"], 1)
    assert codes(tmp_path, "--select", "GP2,port-range", "--select", "GP3") == (["GP106"], 1)
    assert codes(tmp_path, "--ignore", "GP1") == ([], 0)
    assert codes(tmp_path, "--ignore", "port-range", "--ignore", "GP107") == ([], 0)
    assert codes(tmp_path, "--severity", "GP1=warning") == (["GP107", "GP106"], 0)
    assert codes(tmp_path, "--severity", "GP1=info,GP106=error", "--fail-on", "error") == (["GP107", "GP106"], 1)
    assert codes(tmp_path, "--severity", "GP1=info", "--fail-on", "info") == (["GP107", "GP106"], 1)
    words = "GP106=info,port-range=info,GP107=info,GP106=error"  # one rule by two names: the last word counts
    assert codes(tmp_path, "--severity", words) == (["GP107", "GP106"], 1)
    assert codes(tmp_path, "--fail-on", "never") == (["GP107", "GP106"], 0)


def test_the_verdict_in_markdown_is_that_of_the_exit_code(tmp_path: Path) -> None:
    write(tmp_path, f"{HEAD}  spindle_count: 0\n")
    for level, verdict in (("warning", "❌"), ("error", "⚠"), ("never", "⚠")):
        done = gpolicy("check", tmp_path, "-f", "markdown", "--fail-on", level, "--severity", "GP1=warning")
        assert f"{verdict} **1 warning**" in done.stdout
        assert done.returncode == int(verdict == "❌")


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["--select", "zzz"], "--select: there is no rule 'zzz'", "`gpolicy explain` lists all rules"),
        (["--ignore", "spec-overlapp"], "--ignore: there is no rule 'spec-overlapp'", "Did you mean `spec-overlap`?"),
        (["--ignore", "GP201,,"], "--ignore names no rule", "GP201,spec-order,GP3"),
        (["--select", "GP113", "--ignore", "GP113"], "no rule is left", "leave one of them out"),
        (["--ignore", "GP002"], "--ignore: GP002 yaml-syntax cannot be ignored", "fix what it finds"),
        (["--severity", "GP201"], "--severity 'GP201' is not RULE=LEVEL", "levels are error, warning, info"),
        (["--severity", "GP201=bad"], "--severity 'GP201=bad' is not RULE=LEVEL", "levels are error, warning, info"),
        (["--severity", "GP011=info"], "--severity: GP011 unknown-key cannot be less than an error", "fix what it"),
        (["--severity", "nope=info"], "--severity: there is no rule 'nope'", ""),
        (["--fail-on", "fatal"], "--fail-on cannot be 'fatal'", "error, warning, info, never"),
        (["--config", "gone.toml"], "gone.toml: no such file", ""),
        (["--config", "x.toml", "--isolated"], "--isolated reads no settings", "leave one of them out"),
        (["--baseline", "gone.json"], "gone.json: no such baseline", "--write-baseline FILE writes one"),
        (["--fix", "--diff"], "--fix and --diff do not go together", "one of them"),
        (["--fix", "--write-baseline", "b"], "--fix and --write-baseline do not go together", "one of them"),
        (["--baseline", "a", "--write-baseline", "b"], "--write-baseline and --baseline do not go", "--baseline"),
        (["--diff", "-f", "json"], "--diff has no format 'json'", "--format"),
    ],
)
def test_invalid_options_are_one_clear_line(arguments: list[str], message: str, hint: str, tmp_path: Path) -> None:
    write(tmp_path)
    done = gpolicy("check", *arguments, cwd=tmp_path)
    assert done.returncode == 3
    assert message in done.stderr
    assert hint in done.stderr
    assert done.stdout == ""


# --- the settings file ---------------------------------------------------------------------------------------------


def test_settings_are_found_and_the_command_line_overrides_them(tmp_path: Path) -> None:
    write(tmp_path / "policies")
    settings(tmp_path, '[check]\nignore = ["GP107"]\nfail-on = "never"\n[check.severity]\nport-range = "info"\n')
    assert codes(tmp_path / "policies") == (["GP106"], 0)
    assert codes(cwd=tmp_path / "policies") == (["GP106"], 0)
    assert codes("policies", "--isolated", cwd=tmp_path) == (["GP107", "GP106"], 1)
    assert codes("policies", "--select", "GP107,GP106", cwd=tmp_path) == (["GP107", "GP106"], 0)
    assert codes("policies", "--fail-on", "info", cwd=tmp_path) == (["GP106"], 1)
    (tmp_path / "other.toml").write_text('[check]\nselect = ["GP2"]\n', encoding="utf-8")
    assert codes("policies", "--config", "other.toml", cwd=tmp_path) == ([], 0)


def test_ignoring_all_selected_rules_is_an_error(tmp_path: Path) -> None:
    write(tmp_path)
    settings(tmp_path, '[check]\nselect = ["GP106", "GP2"]\n')
    assert codes(tmp_path, "--ignore", "GP2") == (["GP106"], 1)
    done = gpolicy("check", tmp_path, "--ignore", "GP2,port-range")
    assert done.returncode == 3
    assert "--ignore excludes all that" in done.stderr
    assert "gpolicy.toml leaves: no rule is left" in done.stderr
    for more in ("GP2,port-range,drift", "GP"):
        assert gpolicy("check", tmp_path, "--ignore", more).returncode == 3
    assert codes(tmp_path, "--ignore", "GP2,port-range", "--select", "GP107") == (["GP107"], 1)
    assert codes(tmp_path, "--ignore", "GP", "--isolated") == ([], 0)  # said outright, and nothing else was


def test_a_number_of_a_rule_is_set(tmp_path: Path) -> None:
    write(tmp_path, "gpolicy: v1\nkind: NodeGroup\nname: gold\nhardware: {memory: 64G, cpus: 800}\n")
    assert codes(tmp_path) == (["GP222"], 0)
    settings(tmp_path, "[rules.hardware-unlikely]\nleast = 50\n")
    assert codes(tmp_path) == ([], 0)


def test_a_mistake_in_the_settings_stops_every_verb_that_judges(tmp_path: Path) -> None:
    write(tmp_path, "gpolicy: v1\nkind: Cluster\nname: c\n")
    settings(tmp_path, '[check]\nselct = ["GP2"]\n')
    for arguments in (["check"], ["show"], ["test"], ["plan", "--state", STATE], ["drift", "--state", STATE]):
        done = gpolicy(*arguments[:1], tmp_path, *arguments[1:])
        assert done.returncode == 3
        assert "gpolicy.toml:2: check.selct: unknown key in [check]" in done.stderr
        assert "Did you mean `select`?" in done.stderr


def test_check_show_and_plan_judge_by_the_same_settings(tmp_path: Path) -> None:
    write(tmp_path, "gpolicy: v1\nkind: Cluster\nname: cluster\nndparams: {ssh_port: 0}\n")
    for arguments in (["show"], ["plan", "--state", STATE]):
        done = gpolicy(*arguments[:1], tmp_path, *arguments[1:])
        assert (done.returncode, "GP106" in done.stderr) == (1, True)
    settings(tmp_path, '[check.severity]\nGP106 = "warning"\n')
    assert codes(tmp_path)[1] == 0
    assert gpolicy("show", tmp_path).returncode == 0
    assert "GP106" not in gpolicy("plan", tmp_path, "--state", STATE).stderr
    write(
        tmp_path, "gpolicy: v1\nkind: Cluster\nname: cluster\nndparams: {spindle_count: 4}\nbeparams: {maxmem: 130}\n"
    )
    settings(tmp_path, '[check.severity]\nGP015 = "error"\n')
    assert codes(tmp_path)[1] == 1
    assert gpolicy("show", tmp_path).returncode == 1
    assert "GP015" in gpolicy("plan", tmp_path, "--state", STATE).stderr


def test_several_policies_have_their_own_settings(tmp_path: Path) -> None:
    for town, severity in (("amsterdam", "info"), ("berlin", "error")):
        write(tmp_path / town, f"gpolicy: v1\nkind: Cluster\nname: {town}\nndparams: {{ssh_port: 0}}\n", "cluster.yaml")
        settings(tmp_path / town, f'[check.severity]\nGP106 = "{severity}"\n')
    done = gpolicy("check", tmp_path, "-f", "json")
    assert [item["severity"] for item in json.loads(done.stdout)["findings"]] == ["info", "error"]
    assert done.returncode == 1
    settings(tmp_path / "berlin", "[check]\nfail-on = 'never'\n")
    assert gpolicy("check", tmp_path).returncode == 0


def test_a_policy_that_is_named_twice_is_checked_once(tmp_path: Path) -> None:
    write(tmp_path, f"gpolicy: v1\nkind: Cluster\nname: c.example.org\n---\n{BAD}")
    (tmp_path / "link.yaml").symlink_to("p.yaml")
    done = gpolicy("check", "p.yaml", "./p.yaml", "link.yaml", tmp_path / "p.yaml", "-f", "json", cwd=tmp_path)
    findings = json.loads(done.stdout)["findings"]
    assert [(item["code"], item["file"]) for item in findings] == [("GP107", "p.yaml"), ("GP106", "p.yaml")]


# --- comments ------------------------------------------------------------------------------------------------------


def test_a_comment_accepts_and_the_summary_says_so(tmp_path: Path) -> None:
    write(tmp_path, f"{HEAD}  ssh_port: 0  # gpolicy: ignore[GP106] only a test\n")
    done = gpolicy("check", tmp_path)
    assert (done.returncode, done.stdout) == (
        0,
        "1 file, 1 group: no mistakes; accepted: 1 (--accepted shows them)\n",
    )


def test_the_json_tells_what_is_accepted_and_why(tmp_path: Path) -> None:
    waiver = '  - {rule: GP107, where: group/gold, reason: no spindles yet, until: "2099-12-31"}\n'
    text = f"{BAD.rstrip()}  # gpolicy: ignore[GP106] only a test\n---\ngpolicy: v1\nkind: Waiver\nwaivers:\n{waiver}"
    write(tmp_path, text)
    data = json.loads(gpolicy("check", tmp_path, "-f", "json").stdout)
    Draft7Validator(json.loads((ROOT / "schemas/output/check.json").read_text())).validate(data)
    assert [(item["code"], item["by"], item["reason"]) for item in data["accepted"]] == [
        ("GP107", "waiver", "no spindles yet"),
        ("GP106", "comment", "only a test"),
    ]
    write(tmp_path)
    gpolicy("check", tmp_path, "--write-baseline", tmp_path / "b.json")
    data = json.loads(gpolicy("check", tmp_path, "-f", "json", "--baseline", tmp_path / "b.json").stdout)
    assert [(item["code"], item["by"]) for item in data["accepted"]] == [("GP107", "baseline"), ("GP106", "baseline")]


def test_a_family_is_explained_by_its_rules() -> None:
    done = gpolicy("explain", "gp2")
    assert (done.returncode, done.stdout[:6]) == (0, "Sizes\n")
    assert "GP201  spec-overlap" in done.stdout
    assert "GP301" not in done.stdout
    assert gpolicy("explain", "GP29").returncode == 3


# --- baseline ------------------------------------------------------------------------------------------------------


def test_an_old_policy_begins_with_a_baseline(tmp_path: Path) -> None:
    write(tmp_path / "policies")
    done = gpolicy("check", "policies", "--write-baseline", "baseline.json", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        "baseline.json: 2 findings are accepted by it",
        'next: baseline = "baseline.json" under [check] in gpolicy.toml, or --baseline baseline.json',
    ]
    data = json.loads((tmp_path / "baseline.json").read_text())
    schema = json.loads((ROOT / "schemas/output/baseline.json").read_text())
    Draft7Validator.check_schema(schema)
    Draft7Validator(schema).validate(data)
    assert {(item["rule"], item["file"]) for item in data["findings"]} == {
        ("GP106", "policies/p.yaml"),
        ("GP107", "policies/p.yaml"),
    }
    assert codes("policies", "--baseline", "baseline.json", cwd=tmp_path) == ([], 0)
    settings(tmp_path, '[check]\nbaseline = "baseline.json"\n')
    assert codes(tmp_path / "policies") == ([], 0)
    write(tmp_path / "policies", f"{BAD}  cpu_speed: -1\n")
    assert codes(tmp_path / "policies")[1] == 1
    write(tmp_path / "policies", BAD.replace("ssh_port: 0", "ssh_port: 22"))
    assert codes(tmp_path / "policies") == (["GP915"], 0)
    first = (tmp_path / "baseline.json").read_bytes()
    assert gpolicy("check", "policies", "--write-baseline", "baseline.json", cwd=tmp_path).returncode == 0
    assert (tmp_path / "baseline.json").read_bytes() != first
    assert codes(tmp_path / "policies") == ([], 0)


def test_errors_that_cannot_be_accepted_keep_a_baseline_from_being_written(tmp_path: Path) -> None:
    write(tmp_path, f"{BAD}nonsense: 1\n")
    done = gpolicy("check", tmp_path, "--write-baseline", tmp_path / "b.json")
    assert done.returncode == 1
    assert "GP011" in done.stdout
    assert "no baseline was written" in done.stderr
    assert not (tmp_path / "b.json").exists()


def test_a_baseline_of_a_fleet_knows_a_shared_base_once(tmp_path: Path) -> None:
    base = "gpolicy: v1\nkind: NodeGroup\nname: base\ntemplate: true\nndparams:\n  ssh_port: 0\n"
    write(tmp_path, base, "base.yaml")
    for town in ("amsterdam", "berlin"):
        group = "gpolicy: v1\nkind: NodeGroup\nname: gold\nextends: ../base.yaml\n"
        write(tmp_path / town, f"gpolicy: v1\nkind: Cluster\nname: {town}.example.org\n---\n{group}", "cluster.yaml")
    found, _ = codes(tmp_path)
    assert found.count("GP106") == 1
    assert gpolicy("check", tmp_path, "--write-baseline", tmp_path / "b.json").returncode == 0
    assert codes(tmp_path, "--baseline", tmp_path / "b.json") == ([], 0)


@pytest.mark.parametrize("name", ["notes.txt", "gpolicy.toml", "link", "p.yaml", "empty.yaml"])
def test_a_baseline_replaces_only_a_baseline(name: str, tmp_path: Path) -> None:
    write(tmp_path)
    write(tmp_path, "", "empty.yaml")
    write(tmp_path, "do not lose me\n", "notes.txt")
    write(tmp_path, '[check]\nignore = ["GP107"]\n', "gpolicy.toml")
    (tmp_path / "link").symlink_to("notes.txt")
    before = (tmp_path / name).read_bytes()
    done = gpolicy("check", ".", "--write-baseline", name, cwd=tmp_path)
    assert done.returncode == 3
    what = "is a file of the policy" if name.endswith(".yaml") else "exists and is not a baseline: not JSON"
    assert f"{name} {what}" in done.stderr
    assert (tmp_path / name).read_bytes() == before


def test_a_baseline_is_written_into_an_empty_file_and_through_no_link(tmp_path: Path) -> None:
    write(tmp_path)
    write(tmp_path, "", "b.json")
    (tmp_path / "link").symlink_to("b.json")
    for name, code in (("link", 3), ("b.json", 0)):
        assert gpolicy("check", ".", "--write-baseline", name, cwd=tmp_path).returncode == code
    assert (tmp_path / "link").is_symlink()
    assert codes(".", "--baseline", "b.json", cwd=tmp_path) == ([], 0)


def test_a_baseline_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    write(tmp_path)
    done = gpolicy("check", tmp_path, "--write-baseline", tmp_path / "gone" / "b.json")
    assert done.returncode == 3
    assert "cannot be written" in done.stderr
    (tmp_path / "d").mkdir()
    assert gpolicy("check", tmp_path / "p.yaml", "--write-baseline", tmp_path / "d").returncode == 3


# --- mending -------------------------------------------------------------------------------------------------------


def test_check_says_how_many_can_be_fixed(tmp_path: Path) -> None:
    write(tmp_path, SLIP)
    assert "\n1 file: 1 error; 1 can be fixed by --fix\n" in gpolicy("check", tmp_path).stdout


def test_check_says_what_it_could_not_judge(tmp_path: Path) -> None:
    write(tmp_path, SLIP)
    write(tmp_path, "gpolicy: v1\nkind: NodeGroup\nname: fine\n---\nnodes: [*.example.org]\n", "q.yaml")
    gap = " ".join(gpolicy("check", tmp_path).stdout.split())
    there = f"{tmp_path}/q.yaml from line 5 on, NodeGroup gold; what depends on the whole policy"
    assert gap.endswith(f"not judged until the errors are fixed: {there}")
    (tmp_path / "q.yaml").unlink()
    gpolicy("check", tmp_path, "--fix")
    assert gpolicy("check", tmp_path).stdout == "1 file, 1 group: no mistakes\n"


@pytest.mark.skipif(shutil.which("patch") is None, reason="no patch")
def test_the_diff_is_what_fix_writes(tmp_path: Path) -> None:
    write(tmp_path / "a", SLIP)
    write(tmp_path / "a", SLIP.replace("gold", "silver").removesuffix("\n"), "q.yaml")
    write(tmp_path / "a", SLIP.replace("gold", "bronze").replace("\n", "\r\n"), "crlf.yaml")
    before = {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()}
    done = gpolicy("check", "--diff", "a", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == "--fix would fix 3 findings in 3 files; none would remain\n"
    assert {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()} == before
    patched = subprocess.run(
        ["patch", "-p0", "--binary"], cwd=tmp_path, input=done.stdout.encode(), capture_output=True, check=False
    )
    assert patched.returncode == 0, patched.stdout
    wanted = {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()}
    for name, content in before.items():
        (tmp_path / "a" / name).write_bytes(content)
    fixed = gpolicy("check", "--fix", "a", cwd=tmp_path)
    assert fixed.returncode == 0
    assert {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()} == wanted
    assert wanted["crlf.yaml"].count(b"\r\n") == SLIP.count("\n")
    assert not wanted["q.yaml"].endswith(b"\n")
    again = gpolicy("check", "--diff", "a", cwd=tmp_path)
    assert (again.returncode, again.stdout) == (0, "")


def test_fix_says_what_it_fixed_and_reports_the_rest(tmp_path: Path) -> None:
    write(tmp_path, f"{SLIP}  ssh_port: 0\n")
    done = gpolicy("check", "--fix", "p.yaml", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout.startswith("p.yaml:6:3: fixed GP011 unknown-key: write spindle_count\n1 fixed in 1 file\n\n")
    assert "p.yaml:7:13: error GP106" in done.stdout
    assert done.stdout.endswith("\n1 file, 1 group: 1 error\n")
    assert (tmp_path / "p.yaml").read_text() == SLIP.replace("spindel", "spindle") + "  ssh_port: 0\n"


def test_with_another_format_fixes_are_reported_on_stderr(tmp_path: Path) -> None:
    write(tmp_path, SLIP)
    done = gpolicy("check", "--fix", "-f", "json", "p.yaml", cwd=tmp_path)
    assert json.loads(done.stdout)["findings"] == []
    assert "fixed GP011" in done.stderr


def test_the_json_has_the_fix(tmp_path: Path) -> None:
    write(tmp_path, SLIP)
    data = json.loads(gpolicy("check", "-f", "json", "p.yaml", cwd=tmp_path).stdout)
    Draft7Validator(json.loads((ROOT / "schemas/output/check.json").read_text())).validate(data)
    (finding,) = data["findings"]
    place = {"file": "p.yaml", "line": 6, "column": 3, "end_line": 6, "end_column": 16}
    assert finding["fix"] == {"message": "write spindle_count", "edits": [{**place, "text": "spindle_count"}]}


@pytest.mark.parametrize(
    ("arguments", "comment"),
    [(["--ignore", "GP015"], ""), (["--select", "GP1"], ""), ([], "  # gpolicy: ignore[GP015]")],
)
def test_fixes_of_findings_that_do_not_count_are_not_made(arguments: list[str], comment: str, tmp_path: Path) -> None:
    text = f"gpolicy: v1\nkind: Cluster\nname: c\nbeparams:\n  maxmem: 130{comment}\n"
    write(tmp_path, text)
    assert gpolicy("check", "--fix", tmp_path, *arguments).returncode == 0
    assert (tmp_path / "p.yaml").read_text() == text


def test_findings_accepted_by_the_baseline_are_not_fixed(tmp_path: Path) -> None:
    text = "gpolicy: v1\nkind: Cluster\nname: c\nbeparams:\n  maxmem: 130\n"
    write(tmp_path, text)
    gpolicy("check", tmp_path, "--write-baseline", tmp_path / "b.json")
    gpolicy("check", "--fix", tmp_path, "--baseline", tmp_path / "b.json")
    assert (tmp_path / "p.yaml").read_text() == text


def test_fix_keeps_a_byte_order_mark_and_the_mode(tmp_path: Path) -> None:
    write(tmp_path / "policy", "\ufeff" + SLIP)
    (tmp_path / "policy" / "p.yaml").chmod(0o600)
    assert gpolicy("check", "--fix", tmp_path / "policy").returncode == 0
    fixed = SLIP.replace("spindel", "spindle").encode()
    assert (tmp_path / "policy" / "p.yaml").read_bytes() == b"\xef\xbb\xbf" + fixed
    assert stat.S_IMODE((tmp_path / "policy" / "p.yaml").stat().st_mode) == 0o600


def test_the_target_of_a_link_is_checked_and_not_written(tmp_path: Path) -> None:
    write(tmp_path / "real", SLIP)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").touch()
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "link.yaml").symlink_to("../real/p.yaml")
    done = gpolicy("check", "--fix", tmp_path / "policy")
    assert (done.returncode, "GP011" in done.stdout, "can be fixed" in done.stdout) == (1, True, False)
    assert (tmp_path / "policy" / "link.yaml").is_symlink()
    assert (tmp_path / "real" / "p.yaml").read_text() == SLIP


def test_the_target_of_a_link_outside_the_work_tree_is_not_written(tmp_path: Path) -> None:
    write(tmp_path / "elsewhere", SLIP)
    (tmp_path / "repository" / "policy").mkdir(parents=True)
    (tmp_path / "repository" / ".git").mkdir()
    (tmp_path / "repository" / ".git" / "HEAD").touch()
    (tmp_path / "repository" / "policy" / "p.yaml").symlink_to(tmp_path / "elsewhere" / "p.yaml")
    done = gpolicy("check", "--fix", tmp_path / "repository" / "policy")
    assert done.returncode == 1
    assert (tmp_path / "elsewhere" / "p.yaml").read_text() == SLIP


def test_a_base_is_fixed_only_if_it_is_given(tmp_path: Path) -> None:
    base = "gpolicy: v1\nkind: NodeGroup\nname: base\ntemplate: true\nndparams: {spindel_count: 4}\n"
    write(tmp_path, base, "base.yaml")
    write(tmp_path / "policy", "gpolicy: v1\nkind: NodeGroup\nname: gold\nextends: ../base.yaml\n")
    done = gpolicy("check", tmp_path / "policy")
    assert done.returncode == 1
    assert "--fix" not in done.stdout
    gpolicy("check", "--fix", tmp_path / "policy")
    assert (tmp_path / "base.yaml").read_text() == base
    assert gpolicy("check", "--fix", tmp_path / "policy", tmp_path / "base.yaml").returncode == 0
    assert (tmp_path / "base.yaml").read_text() == base.replace("spindel", "spindle")


def test_only_one_of_two_slips_of_the_same_key_is_fixed(tmp_path: Path) -> None:
    text = f"{HEAD}  spindel_count: 4\n  spindle_cuont: 5\n"
    write(tmp_path, text)
    assert gpolicy("check", "--fix", tmp_path).returncode == 1
    fixed = (tmp_path / "p.yaml").read_text()
    assert fixed.count("spindle_count") <= 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_directory_that_may_not_be_written_is_one_error(tmp_path: Path) -> None:
    write(tmp_path / "a", SLIP)
    (tmp_path / "a").chmod(0o555)
    done = gpolicy("check", "--fix", tmp_path / "a")
    (tmp_path / "a").chmod(0o755)
    assert done.returncode == 3
    assert "cannot be written: Permission denied" in done.stderr
    assert (tmp_path / "a" / "p.yaml").read_text() == SLIP


def test_a_file_that_is_not_text_is_left_alone(tmp_path: Path) -> None:
    write(tmp_path, SLIP)
    (tmp_path / "q.yaml").write_bytes(b"\xff\xfe\x00")
    done = gpolicy("check", "--fix", tmp_path)
    assert done.returncode == 1
    assert "GP001" in done.stdout
    assert (tmp_path / "q.yaml").read_bytes() == b"\xff\xfe\x00"
    assert (tmp_path / "p.yaml").read_text() == SLIP.replace("spindel", "spindle")


def test_a_guard_of_the_policy_here_is_explained(tmp_path: Path) -> None:
    write(tmp_path, "gpolicy: v1\nkind: Guards\nguards:\n  - {name: no-shrink, capacity_loss: {at_most: 10%}}\n")
    told = gpolicy("explain", "no-shrink", cwd=tmp_path)
    assert told.returncode == 0
    assert told.stdout.startswith("no-shrink (guard of this policy)\n\nHow much capacity a change may cost")
    assert "p.yaml:4:12" in told.stdout
    missed = gpolicy("explain", "no-shrin", cwd=tmp_path)
    assert (missed.returncode, missed.stderr.splitlines()[1:]) == (3, ["  Did you mean `no-shrink`?"])


def test_a_spec_of_the_policy_here_is_shown_as_it_is_written() -> None:
    done = gpolicy("explain", "half", cwd=ROOT / "policies" / "two-groups")
    assert done.returncode == 0
    assert done.stdout.startswith("half (size of this policy)\n")
    assert "of          group/dedicated\n" in done.stdout
    assert "\n    name: half\n    min: {memory-size: 124G, cpu-count: 15, " in done.stdout
    assert "groups/dedicated.yaml:26:" in done.stdout
    guessed = gpolicy("explain", "smal", cwd=ROOT / "policies" / "two-groups")
    assert "Did you mean `small`?" in guessed.stderr
    typed = gpolicy("explain", "vcpu-ration", cwd=ROOT)  # a name here is a little like it, too
    assert "Did you mean `vcpu-ratio`?" in typed.stderr
    assert "nothing here is called 'half'" in gpolicy("explain", "half", cwd=ROOT / "docs").stderr
