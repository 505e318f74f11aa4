"""What is fed with damaged input: each verb that reads a file of others, end to end, and the readers below them.

A target takes bytes and returns nothing. What it may do is report: findings, or one of gpolicy's own errors with exit
code 3. Whatever else escapes is a fault.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from xml.etree import ElementTree as ET

import typer

from gpolicy.cli.app import app
from gpolicy.policy.schema_kinds import whole_schema

ROOT: Final = Path(__file__).resolve().parents[2]
DATA: Final = ROOT / "tests" / "data"
FILE_MARK: Final = re.compile(rb"^#=== ([a-z./-]{1,40})\n", re.MULTILINE)
"""Begins a further file in an input that stands for a directory."""

_FORMS: Final = ("text", "json", "markdown", "github", "sarif", "junit", "gitlab")


class BrokenError(AssertionError):
    """The result breaks a promise of gpolicy."""


@dataclass(frozen=True)
class Target:
    """`run(data, directory)`; `seeds()` are sound inputs; `seconds` is the most that one input may take."""

    run: Callable[[bytes, Path], None]
    seeds: Callable[[], list[bytes]]
    seconds: float = 5.0
    inputs: int = 300
    """Inputs of the ordinary size of the tests."""
    words: Callable[[], list[bytes]] | None = None
    """Words of the grammar; default: those of the policy language."""

    def vocabulary(self) -> list[bytes]:
        """Return the words of the grammar."""
        return self.words() if self.words else _vocabulary()


# --- what is run --------------------------------------------------------------------------------------------------


@cache
def _command() -> Callable[[list[str]], int]:
    """Return gpolicy's command line with its options built once, not for each input."""
    from gpolicy.cli import running

    command = typer.main.get_command(app)
    vars(running)["get_command"] = lambda _: command
    return running.run


def gpolicy(*arguments: str | Path) -> tuple[int, str]:
    """Run a command line in this process; return its exit code and standard output."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = _command()([str(argument) for argument in arguments])
    complaints = err.getvalue()
    if code not in (0, 1, 2, 3):
        raise BrokenError(f"exit code {code}")
    if code == 3 and not complaints.startswith("gpolicy: "):
        raise BrokenError(f"exit code 3 with: {complaints[:200]!r}")
    if not all(letter.isprintable() or letter == "\n" for letter in complaints):
        raise BrokenError(f"unprintable: {complaints[:300]!r}")
    return code, out.getvalue()


def _laid_out(data: bytes, directory: Path, first: str) -> Path:
    """Write an input as the files that it stands for, in a fresh place; the first is called `first`."""
    home = directory / "policy"
    _emptied(home)
    pieces = FILE_MARK.split(data)
    for name, text in zip([first.encode(), *pieces[1::2]], pieces[::2], strict=True):
        path = home / name.decode()
        if ".." not in path.parts:
            with contextlib.suppress(OSError):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(text)
    return home


def _emptied(home: Path) -> None:
    if home.is_dir():
        for path in sorted(home.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
    home.mkdir(parents=True, exist_ok=True)


def _policy(data: bytes, directory: Path) -> None:
    """Check a policy, in one of the forms; show it if it is sound."""
    home = _laid_out(data, directory, "policy.yaml")
    form = _FORMS[sum(data[:64]) % len(_FORMS)]
    code, out = gpolicy("check", "--format", form, home)
    if code != 3:
        _well_formed(out, form)
    if code == 0:
        shown, text = gpolicy("show", "--origin", home)
        if shown == 1:
            raise BrokenError(f"show says {shown} of a policy that check takes: {text[:200]!r}")


def _well_formed(out: str, form: str) -> None:
    if form in {"json", "sarif", "gitlab"}:
        json.loads(out, parse_constant=_no_constant)
    elif form == "junit":
        ET.fromstring(out)  # noqa: S314 (our own output)
    if form not in {"json", "sarif", "gitlab", "junit", "markdown"} and not all(
        letter.isprintable() or letter == "\n" for letter in out
    ):
        raise BrokenError(f"unprintable in {form}: {out[:300]!r}")


def _no_constant(name: str) -> None:
    raise BrokenError(f"{name} is no JSON")


def _yaml(data: bytes, _: Path) -> None:
    from gpolicy.policy.yaml_reader import read_yaml

    text = data.decode("utf-8", "replace")
    reading = read_yaml(text, "f")
    lines = len(re.split("\r\n|[\n\r\x85\u2028\u2029]", text))
    for finding in reading.findings:
        if finding.span is None or not 1 <= finding.span.line <= lines:
            raise BrokenError(f"a finding at {finding.span}")
    for document in reading.documents:
        document.value_span(())


def _tests(data: bytes, directory: Path) -> None:
    home = _laid_out(data, directory, "policy.yaml")
    code, out = gpolicy("test", "--format", ("text", "json", "junit")[len(data) % 3], home)
    if code == 0 and not out:
        raise BrokenError("nothing said")


def _fmt(data: bytes, directory: Path) -> None:
    """Format a policy: the data and the comments stay, and a second time nothing changes."""
    from gpolicy.policy.yaml_reader import read_yaml

    file = _laid_out(data, directory, "policy.yaml") / "policy.yaml"
    before = file.read_bytes()
    code, _ = gpolicy("fmt", file)
    after = file.read_bytes()
    if code == 3 and after != before:
        raise BrokenError("fmt could not run and wrote")
    if after != before:
        old, new = (read_yaml(text.decode("utf-8-sig"), "f") for text in (before, after))
        if [repr(one.root) for one in old.documents if one.root is not None] != [
            repr(one.root) for one in new.documents if one.root is not None
        ] and sorted(map(_sorted, old.documents)) != sorted(map(_sorted, new.documents)):
            raise BrokenError("fmt changed the data")
        again, text = gpolicy("fmt", "--check", file)
        if again != 0:
            raise BrokenError(f"fmt is not done after one run: {text[:200]!r}")


def _sorted(document: Any) -> str:
    return repr(_ordered(document.root))


def _ordered(value: Any) -> Any:
    if isinstance(value, dict):
        return sorted(((str(key), repr(_ordered(below))) for key, below in value.items()))
    return [_ordered(below) for below in value] if isinstance(value, list) else value


def _fix(data: bytes, directory: Path) -> None:
    """Let check fix a policy: what it writes must still be read, with no more errors than before."""
    home = _laid_out(data, directory, "policy.yaml")
    code, out = gpolicy("check", "--format", "json", home)
    fixed, _ = gpolicy("check", "--fix", home)
    if code == 3 or fixed == 3:
        return
    _, later = gpolicy("check", "--format", "json", home)
    before, after = (json.loads(text)["summary"]["error"] for text in (out, later))
    if after > before:
        raise BrokenError(f"--fix made {after} errors of {before}")


def _settings(data: bytes, directory: Path) -> None:
    """Check a sound policy by the settings, baseline and comments of an input."""
    home = _laid_out(data, directory, "gpolicy.toml")
    policy = home / "policy.yaml"
    if not policy.exists():
        policy.write_text(_SMALL, encoding="utf-8")
    form = _FORMS[sum(data[:64]) % len(_FORMS)]
    code, out = gpolicy("check", "--format", form, home)
    if code != 3:
        _well_formed(out, form)


def _state(kind: str, name: str) -> Callable[[bytes, Path], None]:
    """Return a target that plans a fixed policy on the cluster that an input describes."""

    def run(data: bytes, directory: Path) -> None:
        file = directory / name
        file.write_bytes(data)
        file.chmod(0o600)
        source = f"{kind}:{file}"
        again = directory / "again.json"
        code, _ = gpolicy("snapshot", "-s", source, "-o", again)
        if code != 0:
            return
        code, _ = gpolicy("snapshot", "-s", f"snapshot:{again}", "-o", directory / "third.json")
        if code != 0:
            raise BrokenError("a snapshot that gpolicy cannot read again")
        home = directory / "fixed"
        if not home.is_dir():
            home.mkdir()
            (home / "policy.yaml").write_text(_SMALL, encoding="utf-8")
        form = ("text", "json", "markdown", "html", "github")[len(data) % 5]
        gpolicy("plan", home, "-s", source, "--allow", "right-cluster", "--format", form)
        gpolicy("adopt", "-s", source, "-o", _emptied_path(directory / "adopted"))
        if len(data) % 2:
            gpolicy("drift", home, "-s", source)

    return run


def _emptied_path(home: Path) -> Path:
    _emptied(home)
    return home


def _plan(data: bytes, directory: Path) -> None:
    file = directory / "plan.json"
    file.write_bytes(data)
    file.chmod(0o600)
    code, out = gpolicy("render", file)
    if code == 0:
        gpolicy("render", "--rollback", file)
        if "\x00" in out:
            raise BrokenError("NUL in a script")


def _journal(data: bytes, _: Path) -> None:
    from gpolicy.apply.journal import read_history
    from gpolicy.errors import GpolicyError

    with contextlib.suppress(GpolicyError):
        read_history(data, "journal")


def _list_storage(data: bytes, _: Path) -> None:
    from gpolicy.cluster import physical_volumes
    from gpolicy.cluster.snapshot import dump_snapshot, parse_snapshot
    from gpolicy.errors import InputError

    answer: Any = SimpleNamespace(run=lambda _: SimpleNamespace(code=0, stdout=data, stderr=""))
    try:
        state = physical_volumes.from_master(_volumes_state(), answer)
    except InputError:  # volumes that no node can have
        return
    parse_snapshot(dump_snapshot(state), "again")


@cache
def _volumes_state() -> Any:
    from gpolicy.cluster.config_data import read_config_file

    return read_config_file(DATA / "clusters" / "volumes" / "config.data")


def _words_of(verb: str) -> Callable[[bytes, Path], None]:
    def run(data: bytes, _: Path) -> None:
        text = data.decode("utf-8", "surrogateescape").replace("\0", "")
        if verb == "sim":
            code, out = gpolicy("capacity", "-s", f"sim:{text}", "--format", "json") if len(text) % 8 == 0 else (3, "")
            if code == 0:
                json.loads(out)
            from gpolicy.cluster.simulated import simulated_state
            from gpolicy.errors import GpolicyError

            with contextlib.suppress(GpolicyError):
                simulated_state(text)
        else:
            gpolicy("place", "-s", "sim:p,3,2t,64g,16,4", "--", *text.split(" ")[:20])

    return run


# --- where damage begins ---------------------------------------------------------------------------------------------

_SMALL: Final = """\
gpolicy: v1
kind: Cluster
name: cluster.example.org
ganeti_version: "3.0"
enabled_disk_templates: [drbd, plain]   # gpolicy: ignore[GP302] as it is
ipolicy:
  minmax:
    - name: large
      min: {memory-size: 16G, cpu-count: 4, disk-size: 100G, disk-count: 1, nic-count: 1, spindle-use: 1}
      max: {memory-size: 64G, cpu-count: 16, disk-size: 1T, disk-count: 8, nic-count: 8, spindle-use: 8}
    - name: small
      min: {memory-size: 1G, cpu-count: 1, disk-size: 10G, disk-count: 1, nic-count: 1, spindle-use: 1}
      max: {memory-size: 20G, cpu-count: 4, disk-size: 101G, disk-count: 4, nic-count: 4, spindle-use: 2}
  std: {memory-size: 4G, cpu-count: 2, disk-size: 40G, disk-count: 1, nic-count: 1, spindle-use: 1}
  vcpu-ratio: 4
---
# gpolicy: ignore[spec-overlap] names a rule
gpolicy: v1
kind: NodeGroup
name: default
ipolicy: {vcpu-ratio: 4, spindle-ratio: inherit}
tags: [a, b]
---
gpolicy: v1
kind: Guards
guards:
  - {name: most, max_changes: 40}
  - {name: fits, at_least: 1, spec: small}
  - {name: loss, capacity_loss: {at_most: 10%}}
  - {name: new, newly_violating: 0}
  - {name: dead, node_failures: 1}
"""
_MORE: Final = """\
---
gpolicy: v1
kind: NodeGroup
name: new
alloc_policy: last_resort
---
gpolicy: v1
kind: NodeSet
name: all
nodes: ["*"]
ndparams: {spindle_count: 3, oob_program: inherit}
tags: [rack:a]
---
gpolicy: v1
kind: TagRules
owns: [iextags]
exclusion: [service]
"""


@cache
def _policies() -> list[bytes]:
    from gpolicy.checking.catalogue import CATALOGUE

    files = [path.read_bytes() for path in sorted((ROOT / "policies").rglob("*.yaml"))]
    examples = [text.encode() for rule in CATALOGUE for text in (rule.bad, rule.good) if text]
    return [*files, *examples, _SMALL.encode()]


def _directories() -> list[bytes]:
    """Return policies of several files, with `extends` across them."""
    result = []
    for home in sorted({path.parent for path in (ROOT / "policies").rglob("*.yaml")}):
        files = sorted(home.rglob("*.yaml"))
        pieces = [b"#=== %s\n%s" % (path.relative_to(home).as_posix().encode(), path.read_bytes()) for path in files]
        result.append(b"\n".join(pieces)[:60_000])
    extending = (
        b"gpolicy: v1\nkind: Cluster\nname: c\nextends: base.yaml#b\nganeti_version: '3.0'\n---\ngpolicy: v1\n"
        b"kind: NodeGroup\nname: g\nextends: [one, two]\n---\ngpolicy: v1\nkind: NodeGroup\nname: one\ntemplate: true\n"
        b"ipolicy: {vcpu-ratio: 2}\n---\ngpolicy: v1\nkind: NodeGroup\nname: two\ntemplate: true\nextends: one\n"
        b"nodes: ['a*']\n#=== base.yaml\ngpolicy: v1\nkind: Cluster\nname: b\ntemplate: true\nextends: [sub/d.yaml#d]\n"
        b"#=== sub/d.yaml\ngpolicy: v1\nkind: Cluster\nname: d\ntemplate: true\nextends: ../policy.yaml#c\n"
    )
    return [*result, extending, extending, extending]


def _scenarios() -> list[bytes]:
    result = []
    for path in sorted((ROOT / "policies").rglob("tests.yaml")):
        rest = [file.read_bytes() for file in sorted(path.parent.rglob("*.yaml")) if file != path]
        text = path.read_bytes()
        if len(text) < 6000:
            result.append(b"\n---\n".join([text, *rest]))
    return [*result, *(text for text in _policies() if b"kind: Test" in text or b"kind: Guards" in text)]


def _settings_seeds() -> list[bytes]:
    toml = (
        b'[check]\nselect = ["GP2", "spec-overlap"]\nignore = ["GP302"]\nfail-on = "warning"\nbaseline = "base.json"\n'
        b'[check.severity]\nGP201 = "info"\n[check.per-file-ignores]\n"groups/*.yaml" = ["GP3"]\n'
        b"[rules.spec-gap]\nmost = 3\n"
    )
    project = b"".join(
        b"[tool.gpolicy." + line[1:] if line.startswith(b"[") else line for line in toml.splitlines(keepends=True)
    )
    baseline = b'{"format_version": "1.0", "findings": [{"rule": "GP201", "file": "policy.yaml", "fingerprint": "00"}]}'
    return [
        toml,
        toml + b"#=== base.json\n" + baseline,
        b'[check]\nbaseline = "base.json"\n#=== base.json\n' + baseline,
        b"#=== pyproject.toml\n[project]\nname = 'x'\n" + project,
        b"[check]\n#=== policy.yaml\n" + _SMALL.encode(),
        b"#=== policy.yaml\n# gpolicy: ignore-file[GP2]\n" + _SMALL.encode(),
    ]


def _suppressed() -> list[bytes]:
    """Return policies with comments that suppress findings."""
    comments = [
        b"# gpolicy: ignore[GP201]",
        b"# gpolicy: ignore[spec-overlap, GP3] why",
        b"# gpolicy: ignore-file[GP2]",
    ]
    result = []
    for number, text in enumerate(_policies()):
        lines = text.split(b"\n")
        place = (number * 7) % len(lines)
        lines[place] += b"  " + comments[number % 3]
        lines.insert((number * 3) % len(lines), comments[(number + 1) % 3])
        result.append(b"\n".join(lines))
    return result


def _configs() -> list[bytes]:
    return [(DATA / "clusters" / name / "config.data").read_bytes() for name in ("base", "full", "exclusive", "rich")]


@cache
def _snapshots() -> list[bytes]:
    from gpolicy.cluster.config_data import parse_config
    from gpolicy.cluster.snapshot import dump_snapshot
    from gpolicy.cluster.text import parse_text

    states = [parse_config(text, where="c", source="config:c") for text in _configs()]
    texts = [parse_text(text.decode(), where="t", source="text:t", name="t") for text in _texts()]
    return [dump_snapshot(state) for state in (*states, *texts)]


@cache
def _texts() -> list[bytes]:
    result = [(DATA / "clusters" / "full" / "htools.data").read_bytes()]
    with gzip.open(DATA / "allocator" / "hspace-hail-score.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            texts = [value for value in _strings(json.loads(line)) if value.count("|") > 20 and len(value) < 3000]
            result += [text.encode() for text in texts[:1]]
            if len(result) > 40:
                break
    return result


def _strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for below in value.values() for text in _strings(below)]
    if isinstance(value, list):
        return [text for below in value for text in _strings(below)]
    return [value] if isinstance(value, str) else []


@cache
def _plans() -> list[bytes]:
    """Return plans of the worked examples, made here."""
    import tempfile

    result = []
    states = ("base", "full", "exclusive", "rich")
    sources = [f"config:{DATA / 'clusters' / name / 'config.data'}" for name in states]
    with tempfile.TemporaryDirectory() as name:
        policy, file = Path(name) / "policy.yaml", Path(name) / "plan.json"
        unguarded = _SMALL[: _SMALL.index("---\ngpolicy: v1\nkind: Guards")]
        kept = [line for line in unguarded.splitlines(keepends=True) if "enabled_disk_templates" not in line]
        policy.write_text("".join(kept) + _MORE, encoding="utf-8")
        for source in sources:
            code, _ = gpolicy("plan", policy, "-s", source, "--no-impact", "--allow", "right-cluster", "-o", file)
            if code == 0:
                result.append(file.read_bytes())
    return result


def _journals() -> list[bytes]:
    """Return a journal with every event, once, and twice."""
    from gpolicy.apply.chain import event_line
    from gpolicy.apply.journal import FORMAT_VERSION, KIND, EventName

    begin: dict[str, Any] = {
        "kind": KIND, "format_version": FORMAT_VERSION, "journal": "1234abcd", "direction": "apply",
        "plan_digest": "sha256:" + "0" * 64, "cluster": "c",
    }  # fmt: skip
    step: dict[str, Any] = {
        "step": "1",
        "mark": "gpolicy:1",
        "job": 7,
        "text": "a",
        "done": ["cluster a.b"],
        "serials": {"cluster": 3},
    }
    lines, checksum = [], ""
    for name in (EventName.BEGIN, *EventName):
        fields = begin if name is EventName.BEGIN else {**step, "outcome": "done"}
        line, checksum = event_line(name, fields, checksum)
        lines.append(line)
    return [b"".join(lines), b"".join(lines)[:-9], b""]


@cache
def _vocabulary() -> list[bytes]:
    """Return the keys, words and patterns of the schemas, as YAML would have them."""
    words: set[str] = set()

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            words.update(value.get("properties", {}))
            words.update(str(word) for word in value.get("enum", ()))
            if "const" in value:
                words.add(str(value["const"]))
            for below in value.values():
                walk(below)
        elif isinstance(value, list):
            for below in value:
                walk(below)

    walk(whole_schema())
    return [
        piece
        for word in sorted(words)
        for piece in (word.encode(), word.encode() + b": ", word.encode() + b": {a: 1}\n")
    ]


def _json_words() -> list[bytes]:
    return [b'"%s"' % word for word in _vocabulary() if not word.endswith((b" ", b"\n"))]


def _toml_words() -> list[bytes]:
    rules = [
        b'"GP2"',
        b'"GP201"',
        b'"spec-overlap"',
        b'"GP"',
        b'"GP001"',
        b'"nonsense"',
        b'"info"',
        b'"error"',
        b'"off"',
    ]
    keys = [b"select = ", b"ignore = ", b"severity", b"[check]\n", b"[rules.spec-gap]\n", b"fail-on = ", b"baseline = "]
    odd = [
        b"1979-05-27T07:32:00Z",
        b"inf",
        b"0xff",
        b"'''",
        b'"""',
        b"[[check]]\n",
        b"a.b.c = 1\n",
        b"{a = 1}",
        b"true",
    ]
    return [*rules, *keys, *odd]


TARGETS: Final = {
    "yaml": Target(_yaml, _policies, seconds=3, inputs=2000),
    "policy": Target(_policy, _policies, inputs=500),
    "extends": Target(_policy, _directories, inputs=120),
    "suppressions": Target(_policy, _suppressed, inputs=200),
    "tests": Target(_tests, _scenarios, seconds=20, inputs=60),
    "settings": Target(_settings, _settings_seeds, inputs=300, words=_toml_words),
    "fix": Target(_fix, _policies, seconds=10, inputs=120),
    "fmt": Target(_fmt, _policies, inputs=300),
    "config": Target(_state("config", "config.data"), _configs, seconds=20, inputs=60, words=_json_words),
    "snapshot": Target(_state("snapshot", "snapshot.json"), _snapshots, seconds=20, inputs=60, words=_json_words),
    "hscan": Target(
        _state("text", "hscan.data"), _texts, seconds=20, inputs=60, words=lambda: [b"|", b"Y", b"N", b"running"]
    ),
    "plan": Target(_plan, _plans, inputs=200, words=_json_words),
    "journal": Target(_journal, _journals, inputs=2000, words=_json_words),
    "list-storage": Target(
        _list_storage,
        lambda: [(DATA / "clusters" / "volumes" / "list-storage.txt").read_bytes()],
        inputs=500,
        words=lambda: [b"|", b"Y", b"N"],
    ),
    "sim": Target(
        _words_of("sim"),
        lambda: [b"p,20,2t,64g,16,4", b"preferred,3,100g,8g,4;a,2,1t,1g,1,3,True", b"u,1,1,1,1,1,False"],
        seconds=20,
        inputs=1000,
        words=lambda: [b",", b";", b"g", b"T", b"MiB", b"True"],
    ),
    "place": Target(
        _words_of("place"),
        lambda: [b"memory=4G vcpus=2 disk=20G", b"name=a tags=x,y disks=1G,2G template=plain group=group-01 nics=2"],
        inputs=200,
        words=lambda: [b"memory=", b"disk=", b"vcpus=", b"group=", b"template=drbd", b"spindles=", b"nics=", b"tags="],
    ),
}
