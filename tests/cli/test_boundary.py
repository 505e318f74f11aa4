"""A tree of files from a stranger: nothing outside it is shown or written, and nothing hangs."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpolicy.cli.running import run
from gpolicy.opening import read_below, work_tree
from gpolicy.policy.files import boundary

SECRET = "s3cr3t"  # noqa: S105 (none)
CLUSTER = "gpolicy: v1\nkind: Cluster\nname: c.example.org\nndparams:  {spindel_count: 4}\n"
OUTSIDE = f"gpolicy: v1\nkind: {SECRET}\nname:   {SECRET}\n"
BASE = "gpolicy: v1\nkind: NodeGroup\nname: base\ntemplate: true\nndparams: {ssh_port: 2222}\n"
GROUP = "gpolicy: v1\nkind: NodeGroup\nname: gold\nextends: %s\n"
STATE = "sim:p,4,1t,64g,16,10"

Plant = Callable[[Path], None]


def _bind(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(path.parent)  # names of sockets are short
        server.bind(path.name)
        os.chdir(here)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _settings(text: str) -> Plant:
    return lambda home: _write(home / "gpolicy.toml", text)


def _extends(name: str) -> Plant:
    return lambda home: _write(home / "g.yaml", GROUP % name)


SCENARIO = """\
gpolicy: v1
kind: Test
tests:
  - name: a
    'on': {snapshot: s.json}
    place: {memory-size: 1G, cpu-count: 1, disks: [1G]}
    expect: {refused: true}
"""


def _deep(home: Path) -> None:
    here = Path.cwd()
    os.chdir(home)
    for _ in range(1100):
        Path("a").mkdir()
        os.chdir("a")
    os.chdir(here)


def _links(links: dict[str, str], also: Plant = lambda _home: None) -> Plant:
    def plant(home: Path) -> None:
        for name, leads_to in links.items():
            (home / name).symlink_to(leads_to)
        also(home)

    return plant


def _pipe(name: str, also: Plant) -> Plant:
    def plant(home: Path) -> None:
        os.mkfifo(home / name)
        also(home)

    return plant


PLANTS: dict[str, Plant] = {
    "environment": lambda home: (home / "x.yaml").symlink_to("/proc/self/environ"),
    "relative": lambda home: (home / "x.yaml").symlink_to("../../secret.txt"),
    "absolute": lambda home: (home / "x.yaml").symlink_to(home.parent.parent / "secret.txt"),
    "a chain": _links({"a": "../../outside", "x.yaml": "a/x.yaml"}),
    "a directory": lambda home: (home / "sub").symlink_to("../../outside"),
    "a directory called x.yaml": lambda home: (home / "x.yaml").symlink_to("../../outside"),
    "itself": lambda home: (home / "x.yaml").symlink_to("x.yaml"),
    "a loop": _links({"x.yaml": "y.yaml", "y.yaml": "x.yaml"}),
    "nothing": lambda home: (home / "x.yaml").symlink_to("nothing"),
    "zeros": lambda home: (home / "x.yaml").symlink_to("/dev/zero"),
    "a pipe": lambda home: os.mkfifo(home / "x.yaml"),
    "a socket": lambda home: _bind(home / "x.yaml"),
    "a real directory": lambda home: (home / "x.yaml").mkdir(),
    "depth": _deep,
    "no UTF-8": lambda home: _write(Path(os.fsdecode(os.fsencode(home) + b"/x\xff.yaml")), BASE),
    "settings": lambda home: (home / "gpolicy.toml").symlink_to("/proc/self/environ"),
    "settings of Python": lambda home: (home / "pyproject.toml").symlink_to("/proc/self/environ"),
    "settings that loop": lambda home: (home / "gpolicy.toml").symlink_to("gpolicy.toml"),
    "settings that block": lambda home: os.mkfifo(home / "gpolicy.toml"),
    "a baseline": _settings('[check]\nbaseline = "../../secret.txt"\n'),
    "a baseline somewhere": _settings('[check]\nbaseline = "/proc/self/environ"\n'),
    "a baseline that is a link": _links({"b": "/proc/self/environ"}, _settings('[check]\nbaseline = "b"\n')),
    "a baseline that blocks": _pipe("b", _settings('[check]\nbaseline = "b"\n')),
    "a base": _extends("../../outside/x.yaml"),
    "a base that is a link": _links({".b.yaml": "../../secret.txt"}, _extends(".b.yaml")),
    "a base behind a link": _links({"a": "../../outside"}, _extends("a/x.yaml")),
    "a base that blocks": _pipe(".b.yaml", _extends(".b.yaml")),
    "what git keeps": lambda home: (home / "x.yaml").symlink_to("../.git/config"),
    "a base that git keeps": _extends("../.git/config"),
    "a base with a null byte": _extends('"a\\0b.yaml"'),
    "a base with half a character": _extends('"a\\ud800b.yaml"'),
    "a base with a long name": _extends("a" * 5000 + ".yaml"),
    "a snapshot": _links({"s.json": "/proc/self/environ"}, lambda home: _write(home / "t.yaml", SCENARIO)),
}
FORMS = ("json", "sarif", "github", "gitlab", "junit", "markdown")
CALLS = [
    ["check", "HOME", "--output", "text", *(word for form in FORMS for word in ("--output", f"{form}=OUT.{form}"))],
    ["check", "--diff", "HOME"],
    ["check", "--fix", "HOME"],
    ["check", "--write-baseline", "HOME/new.json", "HOME"],
    ["fmt", "--diff", "HOME"],
    ["fmt", "HOME"],
    ["show", "HOME", "-f", "json"],
    ["test", "HOME"],
    ["plan", "HOME", "--state", STATE, "--no-impact", "-f", "json"],
    ["check", "HOME/x.yaml"],
    ["fmt", "HOME/x.yaml"],
    ["show", "HOME/x.yaml"],
]


def _repository(directory: Path) -> None:
    """Make a directory the top of a git work tree."""
    (directory / ".git").mkdir(exist_ok=True)
    _write(directory / ".git" / "HEAD", "ref: refs/heads/main\n")
    _write(directory / ".git" / "config", f"[{SECRET}]\n  key = {SECRET}\n")


@pytest.fixture(name="home", params=["in a work tree", "without git"])
def _home(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A policy with room for what strangers plant, and files outside of what it may reach."""
    monkeypatch.setenv("GPOLICY_TEST_SECRET", SECRET)
    home = tmp_path / "repository" / "policy"
    home.mkdir(parents=True)
    if request.param == "in a work tree":
        _repository(home.parent)
    (tmp_path / "outside").mkdir()
    _write(tmp_path / "outside" / "x.yaml", OUTSIDE)
    _write(tmp_path / "secret.txt", OUTSIDE)
    _write(home / "c.yaml", CLUSTER)
    yield home
    subprocess.run(["rm", "-rf", home], check=True)  # shutil recurses


def _outside(home: Path) -> dict[str, object]:
    top = home.parent.parent
    return {
        str(path): (path.read_bytes(), path.stat().st_ino)
        for path in (*top.iterdir(), *(top / "outside").iterdir())
        if path.is_file()
    }


@pytest.mark.parametrize("home", ["in a work tree", pytest.param("without git", marks=pytest.mark.slow)], indirect=True)
@pytest.mark.parametrize("plant", PLANTS)
def test_nothing_outside_is_shown_or_written(
    plant: str, home: Path, tmp_path_factory: pytest.TempPathFactory, capfd: pytest.CaptureFixture[str]
) -> None:
    PLANTS[plant](home)
    links = {path: path.readlink() for path in home.iterdir() if path.is_symlink()}
    before, reports = _outside(home), tmp_path_factory.mktemp("reports")
    for call in CALLS:
        code = run([word.replace("HOME", str(home)).replace("OUT", str(reports / "report")) for word in call])
        said = capfd.readouterr()
        assert code in (0, 1, 2, 3), call
        assert SECRET not in said.out + said.err, call
        written = [file.read_bytes() for file in reports.iterdir()]
        assert len(written) == len(FORMS) or call is not CALLS[0] or code == 3
        assert SECRET.encode() not in b"".join(written), call
        assert said.out + said.err, call
        assert {path: path.readlink() for path in links} == links, call
        assert _outside(home) == before, call
        _write(home / "c.yaml", CLUSTER)


@pytest.mark.parametrize(
    ("plant", "said"),
    [
        ("environment", "x.yaml:1:1: error GP001 unreadable-file: is a symbolic link out of"),
        ("itself", "x.yaml:1:1: error GP001 unreadable-file: Too many levels of symbolic links"),
        ("nothing", "x.yaml:1:1: error GP001 unreadable-file: No such file or directory"),
        ("a pipe", "x.yaml:1:1: error GP001 unreadable-file: not a regular file"),
        ("a socket", "x.yaml:1:1: error GP001 unreadable-file: not a regular file"),
        ("a directory called x.yaml", "x.yaml:1:1: error GP001 unreadable-file: is a symbolic link out of"),
        ("depth", "directories are nested more than 64 deep"),
        ("settings", "gpolicy.toml: is a symbolic link out of"),
        ("settings that block", "gpolicy.toml: not a regular file"),
        ("a baseline", "gpolicy.toml:2: check.baseline: '../../secret.txt' leads out of"),
        ("a baseline that is a link", "gpolicy.toml:2: check.baseline: 'b' is a symbolic link out of"),
        ("a base", "GP021 extends-unknown"),
        ("a base with a null byte", "GP016 not-plain-text"),
        ("a snapshot", "GP025"),
    ],
)
def test_each_violation_of_the_boundary_has_its_place(
    plant: str, said: str, home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    PLANTS[plant](home)
    assert run(["check", str(home)]) in (1, 3)
    shown = capfd.readouterr()
    assert said in " ".join(f"{shown.out}{shown.err}".split())


# --- what goes on working --------------------------------------------------------------------------------------------


def test_a_base_beside_the_policy_is_read(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (home.parent / "bases").mkdir()
    _write(home.parent / "bases" / "b.yaml", BASE)
    _extends("../bases/b.yaml")(home)
    _write(home / "c.yaml", "gpolicy: v1\nkind: Cluster\nname: c.example.org\n")
    assert run(["check", str(home)]) == 0, capfd.readouterr()
    assert run(["check", str(home / "g.yaml")]) == 0, capfd.readouterr()  # one file reaches as far as its directory


def test_a_link_within_a_work_tree_is_read_and_without_git_within_the_directory(home: Path) -> None:
    within = boundary(home)
    (home.parent / "b.yaml").touch()
    (home / "link.yaml").symlink_to("../b.yaml")
    (home / "near.yaml").symlink_to("c.yaml")
    assert within.is_file("/etc/passwd") is False
    assert within.is_file(home / "near.yaml")
    assert within.is_file(home / "link.yaml") is (home.parent / ".git").exists()


@pytest.mark.parametrize("is_repository", [False, True])
def test_a_root_is_never_a_directory_of_unrelated_files(
    is_repository: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert boundary(Path("/etc")).root == Path("/etc")
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    (tmp_path / "common").mkdir()
    (tmp_path / "common").chmod(0o1777)
    for name in ("user", "common"):
        home = tmp_path / name / "policy"
        home.mkdir(parents=True)
        for place in (tmp_path, home.parent):
            if is_repository:
                _repository(place)
        assert boundary(home).root == boundary(home).links == home
        (home / "one").mkdir()
        assert boundary(home / "one").root == home


@pytest.mark.parametrize(
    "plant",
    [
        lambda git: git.touch(),
        lambda git: git.mkdir(),
        lambda git: (git / "HEAD").mkdir(parents=True),
        lambda git: _write(git, "no gitdir: here\n"),
        lambda git: _write(git, "gitdir: x".ljust(100_000)),
        os.mkfifo,
        lambda git: git.symlink_to("."),
        lambda git: git.symlink_to(".git"),
    ],
)
def test_a_fake_git_directory_is_not_a_work_tree(plant: Plant, tmp_path: Path) -> None:
    home = tmp_path / "a" / "b" / "policy"
    home.mkdir(parents=True)
    _repository(tmp_path / "a")
    assert work_tree(home) == tmp_path / "a"
    plant(tmp_path / "a" / "b" / ".git")
    assert work_tree(home) == tmp_path / "a"


def test_a_work_tree_beside_others_and_a_module_are_their_own(tmp_path: Path) -> None:
    _write(tmp_path / ".git", "gitdir: ../main/.git/worktrees/x\n")
    (tmp_path / "policy").mkdir()
    assert work_tree(tmp_path / "policy") == tmp_path


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files to other users")
def test_a_work_tree_is_ours_or_of_the_owner_of_its_directory(tmp_path: Path) -> None:
    _repository(tmp_path)
    os.chown(tmp_path / ".git", 4711, 4711)
    assert work_tree(tmp_path) is None
    os.chown(tmp_path, 4711, 4711)
    assert work_tree(tmp_path) == tmp_path
    os.chown(tmp_path / ".git", 0, 0)
    assert work_tree(tmp_path) == tmp_path


def test_a_file_swapped_for_a_link_while_reading(home: Path) -> None:
    """Between the look at a name and its opening, the directory becomes a link to another."""
    (home / "sub").mkdir()
    _write(home / "sub" / "x.yaml", BASE)
    real = boundary(home).real(home / "sub" / "x.yaml")
    shutil.rmtree(home / "sub")
    (home / "sub").symlink_to("../../outside")
    with pytest.raises(OSError, match=r"Not a directory|levels of symbolic links"):
        read_below(home, real, 1000)
    (home / "sub").unlink()
    (home / "sub").mkdir()
    (home / "sub" / "x.yaml").symlink_to("../../../secret.txt")
    with pytest.raises(OSError, match="levels of symbolic links"):
        read_below(home, real, 1000)


# --- what is named on the command line -------------------------------------------------------------------------------


def test_a_named_link_does_not_lead_out_of_its_work_tree(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    _repository(home.parent)
    (home.parent / "other").symlink_to("../outside")
    for verb in ("check", "fmt", "show", "test"):
        assert run([verb, str(home.parent / "other")]) == 3
        assert run([verb, str(home.parent / "other" / "x.yaml")]) == 3
    said = capfd.readouterr()
    assert SECRET not in said.out + said.err
    assert "leads out of" in said.err


def test_a_named_link_outside_any_work_tree_is_followed(tmp_path: Path) -> None:
    (tmp_path / "releases" / "7").mkdir(parents=True)
    _write(tmp_path / "releases" / "7" / "c.yaml", "gpolicy: v1\nkind: Cluster\nname: c.example.org\n")
    (tmp_path / "current").symlink_to("releases/7")
    assert run(["check", str(tmp_path / "current")]) == 0


NAMED = [
    *(["plan", "c.yaml", "--state", f"{kind}:FILE"] for kind in ("snapshot", "text", "config", "local")),
    ["snapshot", "--state", "snapshot:FILE", "--save", "new.json"],
    ["drift", "c.yaml", "--state", "snapshot:FILE"],
    ["render", "FILE"],
    ["apply", "FILE", "--to", "local:", "--yes"],
    ["plan", "c.yaml", "--state", "rapi://127.0.0.1:1", "--rapi-ca", "FILE"],
    ["check", "c.yaml", "--config", "FILE"],
    ["check", "c.yaml", "--baseline", "FILE"],
    ["place", "FILE", "--state", STATE],
]


@pytest.mark.parametrize("call", NAMED, ids=" ".join)
def test_a_named_file_is_regular_and_in_the_tree_of_its_links(
    call: list[str], home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(home)
    _write(home / "c.yaml", "gpolicy: v1\nkind: Cluster\nname: c.example.org\n")
    (home / "link.json").symlink_to("../../secret.txt")
    os.mkfifo(home / "pipe.json")
    for name, said in (("link.json", "leads out of"), ("pipe.json", "not a regular file")):
        assert run([word.replace("FILE", name) for word in call]) == 3
        shown = capfd.readouterr()
        assert said in shown.err
        assert SECRET not in shown.out + shown.err


@pytest.mark.parametrize("planted", ["out.json", "sub/out.json"])
def test_no_output_goes_through_a_planted_link(
    planted: str, home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(home)
    (home / "out.json").symlink_to("../../outside/x.yaml")
    (home / "sub").symlink_to("../../outside")
    _write(home / "c.yaml", "gpolicy: v1\nkind: Cluster\nname: default\n")
    before = _outside(home)
    calls = [
        ["snapshot", "--state", STATE, "--save", planted],
        ["plan", "c.yaml", "--state", STATE, "--save", planted],
        ["drift", "c.yaml", "--state", STATE, "-o", planted],
        ["suggest", "--state", STATE, "--save", planted],
        ["check", "c.yaml", "--write-baseline", planted],
        ["adopt", "--state", STATE, "--save", str(Path(planted).parent / "sub" / "new")],
        ["init", "sub/new"],
    ]
    for call in calls:
        assert run(call) == 3, call
        assert re.search("symbolic link|is there already|exists already|is not a baseline", capfd.readouterr().err), (
            call
        )
    assert _outside(home) == before
    assert {path.name for path in (home.parent.parent / "outside").iterdir()} == {"x.yaml"}
    assert (home / "out.json").is_symlink()


def test_writing_is_atomic_and_keeps_modes_and_owners(home: Path) -> None:
    file = home / "c.yaml"
    file.chmod(0o640)
    number = file.stat().st_ino
    assert run(["fmt", str(home)]) == 0
    assert (file.stat().st_mode & 0o777, file.stat().st_uid) == (0o640, os.getuid())
    assert file.stat().st_ino != number  # another file took its place
    assert [path.name for path in home.iterdir()] == ["c.yaml"]
