"""Which rules count, their severity, and the settings file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from gpolicy.checking.catalogue import CATALOGUE, ignored_codes, rules_named, selects_nothing, severities_by_code
from gpolicy.checking.settings import DEFAULT, Settings, idle_globs
from gpolicy.checking.settings_tables import Overrides, read_settings, settings_for, settings_of_each
from gpolicy.errors import InputError
from gpolicy.findings import Finding, Severity, Span
from gpolicy.policy.files import boundary
from gpolicy.policy.loading import load_policy
from gpolicy.policy.settings_file import toml_places
from tests.mistakes import find_mistakes
from tests.rules.run_rules import TODAY, codes

POLICY = "gpolicy: v1\nkind: NodeGroup\nname: gold\nndparams: {spindle_count: 0, ssh_port: 0}\n"  # GP107, GP106
STAYING = frozenset(info.code for info in CATALOGUE if info.stays)


def settings(directory: Path, text: str, name: str = "gpolicy.toml") -> Settings:
    (directory / name).write_text(text, encoding="utf-8")
    return read_settings(directory / name)


def error(directory: Path, text: str, name: str = "gpolicy.toml") -> tuple[str, str | None]:
    with pytest.raises(InputError) as caught:
        settings(directory, text, name)
    return caught.value.message.removeprefix(f"{directory}/"), caught.value.hint


def checked(directory: Path, settings: Settings, text: str = POLICY) -> list[Finding]:
    (directory / "policy.yaml").write_text(text, encoding="utf-8")
    return find_mistakes(load_policy(directory), today=TODAY, settings=settings)


# --- selecting -----------------------------------------------------------------------------------------------------


def counting(select: list[str] | None, ignore: list[str], family: str = "GP2") -> set[str]:
    ignored = ignored_codes(select, ignore)
    return {info.code for info in CATALOGUE if info.code not in ignored and info.code.startswith(family)}


def test_rules_are_named_by_code_name_or_family() -> None:
    assert [info.code for info in rules_named("spec-overlap")[0]] == ["GP201"]
    assert [info.code for info in rules_named(" gp201 ")[0]] == ["GP201"]
    assert {info.code[:3] for info in rules_named("GP2")[0]} == {"GP2"}
    assert len(rules_named("GP")[0]) == len(CATALOGUE)
    assert rules_named("spec-overlaps") == ((), "Did you mean `spec-overlap`?")
    assert rules_named("GP29")[0] == ()


def test_ignored_rules_may_cover_all_selected_ones() -> None:
    assert selects_nothing([], [])
    assert selects_nothing(["GP113"], ["GP113"])
    assert selects_nothing(["GP11"], ["GP11", "GP2"])
    assert not selects_nothing(["GP113"], ["GP11"])
    assert not selects_nothing(["GP0"], ["GP0"])  # cannot be off


def test_without_settings_every_rule_counts() -> None:
    assert ignored_codes(None, []) == frozenset()


def test_the_most_specific_setting_decides() -> None:
    every = counting(None, [])
    assert counting(["GP2"], []) == every
    stay = every & STAYING
    assert counting(["GP3"], []) == stay
    assert counting(["GP2"], ["GP201"]) == every - {"GP201"}
    others = {code for code in every if code[:4] != "GP20"}
    assert counting(["GP2", "spec-overlap"], ["GP20"]) == others | {"GP201"} | stay
    assert counting(["GP201"], ["GP201"]) == stay
    assert counting(["GP201"], ["GP2"]) == {"GP201"} | stay
    assert counting(["GP2"], ["GP2"]) == stay


@given(st.lists(st.sampled_from(["GP", "GP0", "GP01", "GP7", "GP2", "spec-overlap", "size-rounded"])))
def test_errors_that_stay_always_count(words: list[str]) -> None:
    assert not ignored_codes(words, ["GP", "GP0", "GP01"]) & STAYING
    assert not ignored_codes([], words) & STAYING


def test_what_cannot_be_read_or_planned_and_what_ganeti_refuses_stays() -> None:
    assert {"GP002", "GP011", "GP206", "GP301", "GP602", "GP701"} <= STAYING
    assert not {"GP015", "GP107", "GP201", "GP216", "GP903"} & STAYING


def test_what_stays_is_an_error_and_so_are_all_of_structure_and_against_the_cluster() -> None:
    errors = {info.code for info in CATALOGUE if info.severity is Severity.ERROR}
    assert errors >= STAYING >= {code for code in errors if code.startswith(("GP0", "GP7"))}


def test_severities_of_families_and_rules() -> None:
    levels = severities_by_code(
        {"spec-overlap": Severity.ERROR, "GP2": Severity.INFO, "GP20": Severity.WARNING, "GP0": Severity.INFO}
    )
    assert (levels["GP201"], levels["GP202"]) == (Severity.ERROR, Severity.WARNING)
    assert levels["GP015"] is Severity.INFO
    assert "GP011" not in levels


# --- what they do in a check ---------------------------------------------------------------------------------------


def test_an_ignored_rule_reports_nothing(tmp_path: Path) -> None:
    assert codes(checked(tmp_path, DEFAULT)) == ["GP107", "GP106"]
    assert codes(checked(tmp_path, Settings(ignored=frozenset({"GP107"})))) == ["GP106"]


def test_a_severity_is_changed(tmp_path: Path) -> None:
    (first, second) = checked(tmp_path, Settings(severities={"GP107": Severity.INFO}))
    assert (first.code, first.severity) == ("GP107", Severity.INFO)
    assert second.severity is Severity.ERROR


def test_what_makes_a_check_fail() -> None:
    warning = Finding("GP201", "x", Severity.WARNING, "m")
    assert not DEFAULT.fails(warning)
    assert Settings(fail_on=Severity.WARNING).fails(warning)
    assert not Settings(fail_on=None).fails(warning)


@pytest.mark.parametrize(
    ("glob", "file", "matches"),
    [
        ("policy.yaml", "policy.yaml", True),
        ("policy.yaml", "sub/policy.yaml", False),
        ("*/policy.yaml", "sub/policy.yaml", True),
        ("deep", "sub/deep/policy.yaml", False),
        ("sub/*", "sub/deep/policy.yaml", True),
        ("sub", "sub/policy.yaml", True),
        ("./sub/", "sub/policy.yaml", True),
        ("other", "sub/policy.yaml", False),
        ("*.yml", "policy.yaml", False),
    ],
)
def test_rules_that_do_not_count_in_some_files(glob: str, file: str, matches: bool, tmp_path: Path) -> None:
    made = settings(tmp_path, f'[check.per-file-ignores]\n"{glob}" = ["GP2"]\n')
    place = Span(str(tmp_path / file), 1, 1, 1, 1)
    assert made.counts(Finding("GP201", "x", Severity.WARNING, "m", place)) is not matches
    assert made.counts(Finding("GP301", "x", Severity.WARNING, "m", place))
    assert made.counts(Finding("GP201", "x", Severity.WARNING, "m"))


def test_files_are_known_from_any_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "sub")
    made = settings(tmp_path, '[check.per-file-ignores]\n"sub/p.yaml" = ["GP2"]\n')
    monkeypatch.chdir(tmp_path / "sub")
    for file in ("p.yaml", "../sub/p.yaml", "../link/p.yaml"):
        assert not made.counts(Finding("GP201", "x", Severity.WARNING, "m", Span(file, 1, 1, 1, 1)))


def test_a_glob_that_matches_no_file_is_found_at_its_place(tmp_path: Path) -> None:
    (tmp_path / "clusters").mkdir()
    (tmp_path / "other.yml").write_text("gpolicy: v1\n", encoding="utf-8")
    text = (
        '[check.per-file-ignores]\n  "cluster/*" = ["GP2"]\n"other.yml" = ["GP2"]\nclusters = ["GP2"]\n"." = ["GP2"]\n'
    )
    found = checked(tmp_path / "clusters", settings(tmp_path, text), "gpolicy: v1\nkind: NodeGroup\nname: gold\n")
    assert [(finding.code, finding.message, finding.span) for finding in found] == [
        ("GP916", "'cluster/*' matches no file of a policy", Span(str(tmp_path / "gpolicy.toml"), 2, 3, 2, 14)),
        ("GP916", "'.' matches no file of a policy", Span(str(tmp_path / "gpolicy.toml"), 5, 1, 5, 4)),
    ]
    assert found[0].hint == "Did you mean `clusters/*`?"


def test_an_exclusion_that_matches_no_file_is_found(tmp_path: Path) -> None:
    for name in ("charts", "policy"):
        (tmp_path / name).mkdir()
    (tmp_path / "charts" / "values.yaml").write_text("a: 1\n", encoding="utf-8")
    made = settings(tmp_path, 'exclude = ["charts/**", "chart/*", ".github/**"]\n')
    (found,) = checked(tmp_path / "policy", made, "gpolicy: v1\nkind: NodeGroup\nname: gold\n")
    assert (found.code, found.message) == ("GP916", "'chart/*' matches no YAML file to exclude")
    assert (found.span, found.hint) == (Span(str(tmp_path / "gpolicy.toml"), 1, 1, 1, 8), "Did you mean `charts/*`?")
    assert made.counts(Finding("GP201", "x", Severity.WARNING, "m", Span("charts/values.yaml", 1, 1, 1, 1)))


def test_a_glob_stands_in_the_settings_file_as_the_policy_was_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.yaml").write_text("gpolicy: v1\nkind: NodeGroup\nname: gold\n", encoding="utf-8")
    made = settings(tmp_path, 'exclude = ["chart/*"]\n')
    monkeypatch.chdir(tmp_path)
    (found,) = idle_globs(made, load_policy(Path()), ())
    assert found.span is not None
    assert found.span.file == "gpolicy.toml"


def test_what_an_exclusion_was_most_likely_meant_for_follows_from_its_mistake(tmp_path: Path) -> None:
    (tmp_path / "charts").mkdir()
    (tmp_path / "charts" / "values.yaml").write_text("a: 1\n", encoding="utf-8")
    made = settings(tmp_path, 'exclude = ["chart/**"]\n')
    (found,) = checked(tmp_path, made, "gpolicy: v1\nkind: NodeGroup\nname: gold\n")
    assert (found.code, found.severity, found.hint) == ("GP916", Severity.ERROR, "Did you mean `charts/**`?")
    assert [item.code for item in found.consequences] == ["GP010"]
    made = settings(tmp_path, 'exclude = ["charts/*.yml"]\n')
    assert [item.hint for item in checked(tmp_path, made, "gpolicy: v1\nkind: NodeGroup\nname: gold\n")] == [
        "Did you mean `charts/*.yaml`?"
    ]
    made = settings(tmp_path, 'exclude = ["charts/**", "helm/*"]\n')
    (found,) = checked(tmp_path, made, "gpolicy: v1\nkind: NodeGroup\nname: gold\n")
    assert found.hint.endswith("where this file is, or remove the entry")


@pytest.mark.parametrize(
    ("file", "text", "cure"),
    [
        ("gpolicy.toml", "[check]\n", 'Write `exclude = ["values.yaml"]` at the top of gpolicy.toml'),
        ("gpolicy.toml", 'exclude = ["a.yml"]\n', 'Add "values.yaml" to `exclude` of gpolicy.toml'),
        ("pyproject.toml", "[tool.gpolicy]\n", 'Write `exclude = ["values.yaml"]` below `[tool.gpolicy]` of'),
    ],
)
def test_what_is_of_another_program_is_added_to_what_is_excluded(
    file: str, text: str, cure: str, tmp_path: Path
) -> None:
    (tmp_path / "values.yaml").write_text("a: 1\n", encoding="utf-8")
    (tmp_path / file).write_text(text, encoding="utf-8")
    (found,) = load_policy(tmp_path).findings
    assert (found.code, cure in found.hint) == ("GP010", True), found.hint


# --- the file ------------------------------------------------------------------------------------------------------

WHOLE = """\
# settings
[check]
select = ["GP1", "GP2",
          "spec-order"]
ignore = ["port-range"]
fail-on = "warning"
baseline = "old/baseline.json"

[check.severity]
GP2 = "info"
"GP201" = "error"

[check.per-file-ignores]
"legacy/*" = ["GP2"]
"""


def test_a_whole_file(tmp_path: Path) -> None:
    made = settings(tmp_path, WHOLE)
    assert "GP106" in made.ignored
    assert "GP302" in made.ignored
    assert "GP301" not in made.ignored  # it stays
    assert "GP107" not in made.ignored
    assert made.fail_on is Severity.WARNING
    assert made.baseline == tmp_path / "old" / "baseline.json"
    assert made.severities["GP201"] is Severity.ERROR
    assert made.severities["GP202"] is Severity.INFO
    assert made.per_file[0].glob == "legacy/*"
    assert {"GP201", "GP211"} <= made.per_file[0].codes, "a family means its errors too"
    assert "GP206" not in made.per_file[0].codes, "which nobody can accept"
    assert made.source == tmp_path / "gpolicy.toml"


def test_the_same_in_a_project_file(tmp_path: Path) -> None:
    text = '[project]\nname = "x"\n' + WHOLE.replace("[check", "[tool.gpolicy.check")
    made = settings(tmp_path, text, "pyproject.toml")
    assert made.severities == settings(tmp_path, WHOLE).severities


def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    made = settings(tmp_path, "")
    assert (made.ignored, made.severities, made.fail_on, made.baseline) == (frozenset(), {}, Severity.ERROR, None)


ALL = "leave it out to have every rule count"
LIST = 'write ["GP201", "spec-order"]'
TABLE = "write its keys below its heading"
LEVELS = "write error, warning or info"
EXPLAIN = "`gpolicy explain` lists all rules"
WHOLE_POLICY = "a policy that cannot be read as a whole cannot be planned"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("[chekc]\n", "1: chekc: unknown key in the settings of gpolicy", "Did you mean `check`?"),
        ('select = ["GP2"]\n', "1: select: unknown key in the settings of gpolicy", "it belongs under [check]"),
        ("\n[check]\nfail_on = 1\n", "3: check.fail_on: unknown key in [check]", "Did you mean `fail-on`?"),
        ("[check]\nselect = 'GP2'\n", "2: check.select: must be a list of rules, not 'GP2'", LIST),
        ("[check]\nselect = []\n", "2: check.select: names no rule: nothing would count", ALL),
        (
            '[check]\nignore = ["GP113"]\nselect = ["GP113"]\n',
            "3: check.select: ignore excludes all of these rules",
            ALL,
        ),
        ("[check]\nselect = [1]\n", "2: check.select: must be a list of rules, not a list", LIST),
        (
            '[check]\nselect = ["GP2",\n  "spec-overlaps"]\n',
            "3: check.select: there is no rule 'spec-overlaps'",
            "Did you mean `spec-overlap`?",
        ),
        (
            '[check]\nignore = [\n"GP011"]\n',
            f"3: check.ignore: GP011 unknown-key cannot be ignored: {WHOLE_POLICY}",
            "fix what it finds",
        ),
        ('[check]\nfail-on = "fatal"\n', "2: check.fail-on: cannot be 'fatal'", "write error, warning, info or never"),
        ('[check]\nfail-on = "warn"\n', "2: check.fail-on: cannot be 'warn'", "Did you mean `warning`?"),
        ("[check]\nbaseline = 3\n", "2: check.baseline: cannot be 3", "write the name of a file"),
        ('[check]\nbaseline = "\\u0000"\n', "2: check.baseline: cannot be '\\x00'", "write the name of a file"),
        ("check = 1\n", "1: check: must be a table, not 1", TABLE),
        (
            "[check]\nseverity = true\n",
            "2: check.severity: must be a table, not true",
            TABLE,
        ),
        ("[check.severity]\nGP2 = 1\n", "2: check.severity.GP2: cannot be 1", LEVELS),
        ("[check.severity]\nGP2 = []\n", "2: check.severity.GP2: cannot be a list", LEVELS),
        (
            '[check.severity]\nGP011 = "info"\n',
            f"2: check.severity.GP011: GP011 unknown-key cannot be less than an error: {WHOLE_POLICY}",
            "fix what it finds",
        ),
        ('[check.severity]\nnope = "info"\n', "2: check.severity.nope: there is no rule 'nope'", EXPLAIN),
        (
            '[check]\n\n[check.per-file-ignores]\n"a b" = "GP2"\n',
            "4: check.per-file-ignores.a b: must be a list of rules, not 'GP2'",
            LIST,
        ),
        ("[rules.nope]\nx = 1\n", "1: rules.nope: there is no rule 'nope'", EXPLAIN),
        ("[rules.GP2]\nx = 1\n", "1: rules.GP2: parameters belong to one rule", "write its code or name"),
        (
            "[rules.GP201]\nx = 1\n",
            "1: rules.GP201: GP201 spec-overlap has no parameters",
            "see `gpolicy explain GP201`",
        ),
        ("[check\n", "1:7: not TOML: Expected ']' at the end of a table declaration", None),
        ("a = 1\na = 2\n", "2:6: not TOML: Cannot overwrite a value", None),
    ],
)
def test_errors_name_their_line(text: str, message: str, hint: str | None, tmp_path: Path) -> None:
    assert error(tmp_path, text) == (f"gpolicy.toml:{message}", hint)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = " + "[" * 100_000, "gpolicy.toml: nested too deep"),
        ("x = " + "9" * 10_000, "gpolicy.toml: holds a number with thousands of digits"),
        ("#" * (1024**2 + 1), "gpolicy.toml: larger than 1 MiB"),
        ("[check]\nselect = [" + '"GP2", ' * 20_000 + "]\n", "gpolicy.toml:2: check.select: names 20000 rules"),
    ],
)
def test_a_hostile_file_is_one_error(text: str, message: str, tmp_path: Path) -> None:
    assert error(tmp_path, text)[0].startswith(message)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "gpolicy.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not UTF-8"):
        read_settings(tmp_path / "gpolicy.toml")
    with pytest.raises(InputError, match="no such file"):
        read_settings(tmp_path / "other.toml")
    with pytest.raises(InputError, match="not a regular file"):
        read_settings(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"no \[tool.gpolicy\]"):
        read_settings(tmp_path / "pyproject.toml")


def test_a_byte_order_mark_and_windows_line_ends(tmp_path: Path) -> None:
    (tmp_path / "gpolicy.toml").write_bytes(b'\xef\xbb\xbf[check]\r\nfail-on = "never"\r\n')
    assert read_settings(tmp_path / "gpolicy.toml").fail_on is None


# --- where it is looked for ----------------------------------------------------------------------------------------


def never(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = "tool.gpolicy.check" if path.name == "pyproject.toml" else "check"
    path.write_text(f'[{table}]\nfail-on = "never"\n', encoding="utf-8")


def source(root: Path) -> Path | None:
    return settings_for(root).source


def test_the_nearest_file_counts_up_to_the_top_of_the_work_tree(tmp_path: Path) -> None:
    policy = tmp_path / "top" / "a" / "b"
    policy.mkdir(parents=True)
    (tmp_path / "top" / ".git").mkdir()
    (tmp_path / "top" / ".git" / "HEAD").touch()
    never(tmp_path / "gpolicy.toml")
    assert source(policy) is None  # above the work tree
    never(tmp_path / "top" / "pyproject.toml")
    assert source(policy) == tmp_path / "top" / "pyproject.toml"
    never(tmp_path / "top" / "gpolicy.toml")
    assert source(policy) == tmp_path / "top" / "gpolicy.toml"
    (tmp_path / "top" / "a" / "pyproject.toml").write_text("[tool.ruff]\n# gpolicy\n", encoding="utf-8")
    assert source(policy) == tmp_path / "top" / "gpolicy.toml"
    never(policy / "gpolicy.toml")
    assert source(policy) == policy / "gpolicy.toml"
    (policy / "p.yaml").touch()
    assert source(policy / "p.yaml") == policy / "gpolicy.toml"


def test_policies_with_one_file_share_its_settings_and_a_changed_file_is_read_again(tmp_path: Path) -> None:
    roots = [tmp_path / name for name in ("a", "b")]
    for root in roots:
        root.mkdir()
    never(tmp_path / "gpolicy.toml")
    one, other = settings_of_each(roots, Overrides(ignore=("spec-order",)))
    assert one is other
    assert one.ignored
    never(roots[1] / "gpolicy.toml")
    assert [made.source for made in settings_of_each(roots)] == [tmp_path / "gpolicy.toml", roots[1] / "gpolicy.toml"]
    (tmp_path / "gpolicy.toml").write_text('[check]\nfail-on = "info"\n', encoding="utf-8")
    assert [made.fail_on for made in settings_of_each(roots)] == [Severity.INFO, None]


def test_without_git_the_outermost_settings_are_the_root(tmp_path: Path) -> None:
    policy = tmp_path / "a" / "b" / "c"
    policy.mkdir(parents=True)
    never(tmp_path / "a" / "pyproject.toml")
    assert source(policy) is None  # beyond its parent
    never(tmp_path / "a" / "gpolicy.toml")
    assert source(policy) == tmp_path / "a" / "gpolicy.toml"
    assert boundary(policy).root == boundary(policy).links == tmp_path / "a"
    never(tmp_path / "a" / "b" / "gpolicy.toml")
    assert source(policy) == tmp_path / "a" / "b" / "gpolicy.toml"
    assert boundary(policy).root == tmp_path / "a"


def test_settings_that_are_a_link_make_no_root(tmp_path: Path) -> None:
    policy = tmp_path / "a" / "b" / "c"
    policy.mkdir(parents=True)
    (tmp_path / "other.toml").touch()
    (tmp_path / "a" / "gpolicy.toml").symlink_to(tmp_path / "other.toml")
    assert boundary(policy).root == tmp_path / "a" / "b"


@pytest.mark.parametrize("value", ['"mkdocs.yml"', "[1]", '[""]', '["."]', '["/mkdocs.yml"]', f'["{4001 * "a"}"]'])
def test_exclude_is_a_list_of_globs(value: str, tmp_path: Path) -> None:
    message, hint = error(tmp_path, f"exclude = {value}\n")
    assert message.startswith("gpolicy.toml:1: exclude: ")
    assert hint in ('write ["mkdocs.yml", "charts/**"]', "leave out the slash", "name directories: charts/**")


def test_a_broken_project_file_of_another_owner_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("not toml", encoding="utf-8")
    assert source(tmp_path) is None
    (tmp_path / "pyproject.toml").write_text("[tool.gpolicy\n", encoding="utf-8")
    with pytest.raises(InputError, match="not TOML"):
        settings_for(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    never(tmp_path / "gpolicy.toml")
    (tmp_path / "gpolicy.toml").chmod(0)
    with pytest.raises(InputError, match="Permission denied"):
        settings_for(tmp_path)


# --- lines ---------------------------------------------------------------------------------------------------------


def test_lines_of_keys_and_words() -> None:
    text = (
        'a = 1\n[t."x y"]\nb.c = [\n  "one", # "no"\n  "two",\n]\nd = {e = "f", g = [ "h" ]}\ni = """\nx = 1\n"""\n'
        "j = '''\n\\'''\n[[k]]\nl = 1.5\n[[k]]\nm = 2"
    )
    places = toml_places(text)
    lines = {".".join(path): line for path, (line, *_) in places.keys.items()}
    assert lines == {
        "a": 1, "t": 2, "t.x y": 2, "t.x y.b": 3, "t.x y.b.c": 3, "t.x y.d": 7, "t.x y.d.e": 7, "t.x y.d.g": 7,
        "t.x y.i": 8, "t.x y.j": 11, "k": 13, "k.l": 14, "k.m": 16,
    }  # fmt: skip
    assert places.line(("t", "x y", "b", "c"), "two") == 5
    assert places.line(("t", "x y", "b", "c"), "no") == 3
    assert places.line(("t", "x y", "d", "g"), "h") == 7
    assert places.line(("t", "nowhere")) == 2
    assert places.line(("nowhere",)) == 1
    assert places.span("f", ("t", "x y", "d", "g")) == Span(
        "f", 7, text.splitlines()[6].index("g") + 1, 7, text.splitlines()[6].index("g") + 2
    )


def test_a_key_of_thousands_of_parts_is_refused_before_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "gpolicy.toml").write_text("# a\n[check]\n" + "a." * 100_000 + "a = 1\n")
    with pytest.raises(InputError, match=r"gpolicy\.toml:3: a key of 100001 parts"):
        read_settings(tmp_path / "gpolicy.toml")


def test_dots_inside_quotes_do_not_separate_keys(tmp_path: Path) -> None:
    (tmp_path / "gpolicy.toml").write_text('[check.per-file-ignores]\n"' + "a." * 100 + '" = ["GP201"]\n# ' + "a." * 99)
    assert len(read_settings(tmp_path / "gpolicy.toml").per_file) == 1


UNLIKELY = """\
gpolicy: v1
kind: NodeGroup
name: gold
ipolicy:
  minmax:
    - min: {memory-size: 4G, cpu-count: 1, disk-size: 10G, disk-count: 1, nic-count: 1, spindle-use: 1}
      max: {memory-size: 16G, cpu-count: 8, disk-size: 1T, disk-count: 4, nic-count: 4, spindle-use: 4}
    - min: {memory-size: 16M, cpu-count: 1, disk-size: 10G, disk-count: 1, nic-count: 1, spindle-use: 1}
      max: {memory-size: 32M, cpu-count: 8, disk-size: 1T, disk-count: 4, nic-count: 4, spindle-use: 4}
"""
"""The gap between the pairs (GP215, a warning) and the short span (GP219, info) follow from GP152, a warning."""


@pytest.mark.parametrize(
    ("severities", "following"),
    [
        ({}, set()),
        ({"GP215": Severity.ERROR}, {"GP215"}),
        ({"GP219": Severity.ERROR}, {"GP219"}),
        ({"GP152": Severity.INFO}, {"GP215", "GP219"}),
    ],
)
def test_what_fails_a_check_fails_it_also_where_it_follows_from_a_lesser_finding(
    severities: dict[str, Severity], following: set[str], tmp_path: Path
) -> None:
    found = checked(tmp_path, Settings(severities=severities), UNLIKELY)
    assert set(codes(found)) == {"GP152"} | following
