"""The one table of what is fed: each verb that reads a file of others, the readers below them, and the engine.

A target takes bytes, and raises where gpolicy breaks a promise: an input gives findings, or one of gpolicy's own errors
with exit code 3, in a form that is well formed. Whatever else escapes is a fault.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import patch

from tests.hostile import sound_inputs as sound
from tests.hostile.damage import damaged
from tests.hostile.promises import FORMS, BrokenError, gpolicy

FILE_MARK: Final = re.compile(rb"^#=== ([a-z./-]{1,40})\n", re.MULTILINE)
"""Begins a further file in an input that stands for a directory."""


@dataclass(frozen=True)
class Target:
    """`run(data, directory)` is fed; `seeds()` are sound inputs, `words()` what damage puts into them."""

    run: Callable[[bytes, Path], object]
    seeds: Callable[[], list[bytes]] = list
    inputs: int = 0
    """Damaged inputs of the ordinary size of the tests."""
    seconds: float = 5.0
    """The most processor time that one input may take."""
    words: Callable[[], list[bytes]] = sound.vocabulary

    def sound(self) -> list[bytes]:
        """Return the sound inputs."""
        return _made(self.seeds)

    def input(self, number: int) -> bytes:
        """Return a damaged input by its number, a sound one by a number below zero, and digits where none is sound."""
        seeds = self.sound()
        if not seeds:
            return b"%d" % number
        if number < 0:
            return seeds[-1 - number]
        return damaged(seeds[number % len(seeds)], number, seeds, _made(self.words))


@functools.cache
def _made(make: Callable[[], list[bytes]]) -> list[bytes]:
    return make()


# --- what is run --------------------------------------------------------------------------------------------------


def lay_out(home: Path, files: Mapping[str, str | bytes]) -> None:
    """Write texts or bytes as files, by their names."""
    home.mkdir(exist_ok=True)
    for name, content in files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)
        path.chmod(0o700 if path.parent.name == "bin" else 0o600)


def _laid_out(data: bytes, directory: Path, first: str) -> Path:
    """Write an input as the files that it stands for, in a fresh place; the first is called `first`."""
    home = _emptied(directory / "policy")
    pieces = FILE_MARK.split(data)
    for name, text in zip([first.encode(), *pieces[1::2]], pieces[::2], strict=True):
        if ".." not in Path(name.decode()).parts:
            with contextlib.suppress(OSError):
                lay_out(home, {name.decode(): text})
    return home


def _emptied(home: Path) -> Path:
    if home.is_dir():
        for path in sorted(home.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
    home.mkdir(parents=True, exist_ok=True)
    return home


def command(argv: Iterable[str], home: str = "", **environ: str) -> bytes:
    """Return a command line as an input: run in `home`, which `HOME` in a value of the environment stands for."""
    return json.dumps([[*argv], home, environ]).encode()


def _command(data: bytes, directory: Path) -> int:
    argv, name, environ = json.loads(data)
    home = directory / name
    environ = {key: text.replace("HOME", str(home)) for key, text in environ.items()}
    with contextlib.chdir(home), patch.dict(os.environ, environ):
        return gpolicy(*argv)[0]


def _check(home: Path, data: bytes) -> int:
    """Check a policy in one of the forms."""
    return gpolicy("check", "--format", FORMS[sum(data[:64]) % len(FORMS)], home)[0]


def _policy(data: bytes, directory: Path) -> None:
    """Check a policy; show it if it is sound."""
    home = _laid_out(data, directory, "policy.yaml")
    if _check(home, data) == 0:
        shown, text = gpolicy("show", "--origin", home)
        if shown == 1:
            raise BrokenError(f"show says {shown} of a policy that check takes: {text[:200]!r}")


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
        ] and sorted(repr(_ordered(one.root)) for one in old.documents) != sorted(
            repr(_ordered(one.root)) for one in new.documents
        ):
            raise BrokenError("fmt changed the data")
        again, text = gpolicy("fmt", "--check", file)
        if again != 0:
            raise BrokenError(f"fmt is not done after one run: {text[:200]!r}")


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
        policy.write_text(sound.POLICY, encoding="utf-8")
    _check(home, data)


def _state(kind: str, name: str) -> Callable[[bytes, Path], None]:
    """Return a target that plans a fixed policy on the cluster that an input describes."""

    def run(data: bytes, directory: Path) -> None:
        lay_out(directory, {name: data, "fixed/policy.yaml": sound.POLICY})
        source = f"{kind}:{directory / name}"
        again = directory / "again.json"
        if gpolicy("snapshot", "-s", source, "--save", again)[0] != 0:
            return
        if gpolicy("snapshot", "-s", f"snapshot:{again}", "--save", directory / "third.json")[0] != 0:
            raise BrokenError("a snapshot that gpolicy cannot read again")
        form = ("text", "json", "markdown", "html", "github")[len(data) % 5]
        gpolicy("plan", directory / "fixed", "-s", source, "--allow", "right-cluster", "--format", form)
        gpolicy("adopt", "-s", source, "--save", _emptied(directory / "adopted"))
        if len(data) % 2:
            gpolicy("drift", directory / "fixed", "-s", source)

    return run


def _plan(data: bytes, directory: Path) -> None:
    lay_out(directory, {"plan.json": data})
    code, out = gpolicy("render", directory / "plan.json")
    if code == 0:
        gpolicy("render", "--rollback", directory / "plan.json")
        if "\x00" in out:
            raise BrokenError("NUL in a script")


def _journal(data: bytes, _: Path) -> None:
    from gpolicy.apply.journals import read_history
    from gpolicy.errors import GpolicyError

    with contextlib.suppress(GpolicyError):
        read_history(data, "journal")


def _list_storage(data: bytes, _: Path) -> None:
    from gpolicy.cluster.state_files import dump_snapshot, parse_snapshot
    from gpolicy.cluster.volume_pools import from_master
    from gpolicy.errors import InputError

    answer: Any = SimpleNamespace(run=lambda _: SimpleNamespace(code=0, stdout=data, stderr=""))
    try:
        state = from_master(sound.volumes_state(), answer)
    except InputError:  # volumes that no node can have
        return
    parse_snapshot(dump_snapshot(state), "again")


def _sim(data: bytes, _: Path) -> None:
    from gpolicy.cluster.htools_sources import simulated_state
    from gpolicy.errors import GpolicyError

    text = _word(data)
    if len(text) % 8 == 0:
        gpolicy("capacity", "-s", f"sim:{text}", "--format", "json")
    with contextlib.suppress(GpolicyError):
        simulated_state(text)


def _place(data: bytes, _: Path) -> None:
    gpolicy("place", "-s", "sim:p,3,2t,64g,16,4", "--", *_word(data).split(" ")[:20])


def _word(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape").replace("\0", "")


def _engine(data: bytes, _: Path) -> list[str]:
    """Ask the compiled engine about the cluster of a seed, and return what it answers."""
    from tests.hostile.engine_feeding import fed

    return fed(int(data))


def _faulty(data: bytes, _: Path) -> str:
    """Do what the input names, for the tests of the harness."""
    match data:
        case b"endless":
            while True:
                pass
        case b"waiting":
            os.kill(os.getpid(), signal.SIGALRM)  # as when the clock has run out
        case b"raising":
            raise KeyError
        case b"leaving":
            sys.exit(0)
        case b"vanishing":
            os._exit(0)
        case b"growing":
            bytearray(3 * 1024**3)
        case b"crashing":
            os.kill(os.getpid(), signal.SIGSEGV)
    return data.decode()


TARGETS: Final = {
    "faulty": Target(_faulty),
    "commands": Target(_command, seconds=25),
    "engine": Target(_engine, seconds=60),
    "yaml": Target(_yaml, sound.policies, 1000, seconds=3),
    "policy": Target(_policy, sound.policies, 100),
    "extends": Target(_policy, sound.directories, 25),
    "suppressions": Target(_policy, sound.suppressed, 50),
    "tests": Target(_tests, sound.scenarios, 20, seconds=20),
    "settings": Target(_settings, sound.settings, 80, words=sound.toml_words),
    "fix": Target(_fix, sound.policies, 25, seconds=10),
    "fmt": Target(_fmt, sound.policies, 100),
    "config": Target(_state("config", "config.data"), sound.configs, 15, seconds=20, words=sound.json_words),
    "snapshot": Target(_state("snapshot", "snapshot.json"), sound.snapshots, 15, seconds=20, words=sound.json_words),
    "hscan": Target(_state("text", "hscan.data"), sound.texts, 15, seconds=20, words=sound.words("| Y N running")),
    "plan": Target(_plan, sound.plans, 50, words=sound.json_words),
    "journal": Target(_journal, sound.journals, 1000, words=sound.json_words),
    "list-storage": Target(_list_storage, sound.list_storage, 100, words=sound.words("| Y N")),
    "sim": Target(_sim, sound.simulated, 400, seconds=20, words=sound.words(", ; g T MiB True")),
    "place": Target(
        _place, sound.sizes, 100,
        words=sound.words("memory= disk= vcpus= group= template=drbd spindles= nics= tags="),
    ),
}  # fmt: skip
