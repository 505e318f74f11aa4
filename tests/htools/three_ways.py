"""One question to the real program, to ours with the compiled engine, and to ours with the law alone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

from gpolicy.allocator import compiled_allocation, engines
from tests.htools.random_requests import Case
from tests.htools.recorded import call

HSPACE = shutil.which("hspace")
HTOOLS = Path(HSPACE).resolve() if HSPACE else Path("htools")
INSTALLED = HSPACE is not None and HTOOLS.exists()

SCRIPT = "saved.sh"
EQUAL, DIFFERENT, SKIPPED, CRASHED = "equal", "different", "skipped", "crashed"
"""The result of a comparison; skipped: the real program takes too long; crashed: the real program crashes."""

_DEATHS = ("CallStack", "Prelude.", "IntMap.", "Non-exhaustive", "stack overflow")
"""Words on stderr by which a runtime error of the original is told from an answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a program answered: exit code, stdout, stderr, and the states it saved, by the name of the file."""

    code: int
    out: str
    err: str
    saved: dict[str, str]


@contextmanager
def by_the_law() -> Iterator[None]:
    """Let the law answer everything, as it does where there is no compiled engine."""
    none = lambda: None  # noqa: E731
    with patch.object(engines, "loaded_library", none), patch.object(compiled_allocation, "loaded_library", none):
        yield


def write_files(case: Case) -> None:
    """Put the case's files into the current directory."""
    Path("c.data").write_text(case.cluster)
    Path("r.json").write_text(case.document)
    for name, text in case.files.items():
        Path(name).write_text(text)
    for name, value in case.rapi.items():
        Path(f"{name}.json").write_text(json.dumps(value))


def ask_real(case: Case, seconds: float) -> Answer | None:
    """Run the real program in the current directory; None if it takes longer."""
    environment = {**os.environ, "HTOOLS": case.program, "LC_ALL": "C.UTF-8"}
    environment.pop("LD_PRELOAD", None)
    try:
        done = subprocess.run(
            [str(HTOOLS), *case.arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        _saved()
        return None
    return Answer(done.returncode, done.stdout, done.stderr, _saved())


def ask_ours(case: Case, *, law: bool = False) -> Answer:
    """Run our program in this process and the current directory."""
    if law:
        with by_the_law():
            return ask_ours(case)
    code, out, err = call(case.program, *case.arguments)
    return Answer(code, out, err, _saved())


def _saved() -> dict[str, str]:
    """Take the saved states, and the commands of a saved script, out of the current directory."""
    texts = {path.name: path.read_text() for path in sorted(Path().glob("saved.*"))}
    texts = {name: text.partition("\n}\n")[2] if name == SCRIPT else text for name, text in texts.items()}
    for name in texts:
        Path(name).unlink()
    return texts


def compare(case: Case, seconds: float, *, law: bool) -> tuple[str, str]:
    """Ask the real program, the engine and, if wanted, the law; return what came of it, and what differs."""
    write_files(case)
    expected = ask_real(case, seconds)
    if expected is not None and died(expected) and "-S" in case.arguments:
        # maybe of writing the state: then ours is to refuse that in a line, and to answer alike where it has not to
        if "Error: " not in ask_ours(case).err:
            return DIFFERENT, "the original refuses to save the state, ours does not"
        case = replace(case, arguments=tuple(item for item in case.arguments if item not in {"-S", "saved"}))
        expected = ask_real(case, seconds)
    if expected is None:
        return SKIPPED, ""
    for way in ("engine", "law") if law else ("engine",):
        try:
            found = ask_ours(case, law=way == "law")
        except Exception:  # noqa: BLE001 (whatever it is, nothing may end in a traceback)
            return DIFFERENT, f"{way}: {traceback.format_exc(limit=-3)}"
        if died(expected) or (case.rapi and expected.code):
            # ours is to say in a line why it cannot answer; what is wrong with a document, in words of its own
            if found.code != 1 or "Error: " not in found.err:
                return DIFFERENT, f"{way}: the original refuses ({expected.err[:200]!r}), ours: {found}"
        elif difference := differing(found, expected):
            return DIFFERENT, f"{way}: {difference}"
    return (CRASHED if died(expected) else EQUAL), ""


def died(answer: Answer) -> bool:
    """Whether the original ended with a runtime error, and not with an answer."""
    return answer.code != 0 and any(word in answer.err for word in _DEATHS)


def differing(found: Answer, expected: Answer) -> str:
    """Say where two answers differ; nothing if they do not."""
    if found.code != expected.code:
        return f"exit {found.code} instead of {expected.code}: {found.err[-300:]!r} instead of {expected.err[-300:]!r}"
    for name, ours, theirs in (
        ("stdout", found.out, expected.out),
        ("stderr", found.err, expected.err),
        *((name, found.saved.get(name, ""), text) for name, text in expected.saved.items()),
    ):
        if ours != theirs:
            pairs = zip(f"{ours}\n(end)".splitlines(), f"{theirs}\n(end)".splitlines(), strict=False)
            first = next((f"{a!r} instead of {b!r}" for a, b in pairs if a != b), "it is longer")
            return f"{name}: {first}"
    return ""
