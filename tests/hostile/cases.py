"""All hostile inputs, each with the command lines that read it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from tests.hostile import answers, policies, states

NEWEST: Final = f"snapshot:{states.ROOT}/policies/growing/20260420T040000Z.json"
SNAPSHOT: Final = f"snapshot:{states.ROOT}/policies/two-groups.snapshot.json"
ALLOW: Final = ("--allow", "right-cluster")
SMALL: Final = (
    "gpolicy: v1\nkind: Cluster\nname: ganeti.example.org\nipolicy: {vcpu-ratio: 3}\n---\n"
    "gpolicy: v1\nkind: NodeGroup\nname: default\nipolicy: {spindle-ratio: 9}\ntags: [a]\n"
)
Command = tuple[str, ...]
Text = Callable[[int], str | bytes]


@dataclass(frozen=True, slots=True)
class Case:
    """`maker(size)` returns files by name; each of `commands` is run where they are."""

    maker: Callable[[int], Mapping[str, str | bytes]]
    commands: tuple[Command, ...]
    environ: dict[str, str] = field(default_factory=dict)


def _in_policy(maker: policies.Maker) -> Callable[[int], dict[str, str | bytes]]:
    return lambda size: {f"policy/{name}": text for name, text in maker(size).items()}


def _file(name: str, maker: Text, before: str = "") -> Callable[[int], dict[str, str | bytes]]:
    """Return what makes one file, beside a small policy."""

    def make(size: int) -> dict[str, str | bytes]:
        made = maker(size)
        return {name: before + made if isinstance(made, str) else made, "policy/policy.yaml": SMALL}

    return make


_POLICY_COMMANDS: Final[tuple[Command, ...]] = (
    ("check", "policy"),
    ("check", "-f", "json", "policy"),
    ("check", "-s", SNAPSHOT, "policy"),
    ("check", "--diff", "policy"),
    ("fmt", "--diff", "policy"),
    ("show", "--origin", "policy"),
    ("plan", "-s", SNAPSHOT, *ALLOW, "-f", "html", "policy"),
    ("plan", "-s", SNAPSHOT, *ALLOW, "-f", "markdown", "policy"),
    ("drift", "-s", SNAPSHOT, "policy"),
    ("capacity", "-s", SNAPSHOT, "policy"),
    ("test", "policy"),
)
_STATE_COMMANDS: Final = (
    ("snapshot", "-s", "SRC", "--save", "new.json"),
    ("plan", "-s", "SRC", *ALLOW, "-f", "html", "policy"),
    ("adopt", "-s", "SRC", "--save", "adopted"),
    ("drift", "-s", "SRC", "policy"),
    ("check", "-s", "SRC", "policy"),
    ("capacity", "-s", "SRC"),
    ("place", "-s", "SRC", "-f", "html", "memory=1G", "vcpus=1", "disk=1G"),
    ("suggest", "-s", "SRC", "-f", "html"),
    ("evacuate", "-s", "SRC", "-f", "html", "*"),
)


def _of_source(kind: str, name: str) -> tuple[Command, ...]:
    return tuple(tuple(f"{kind}:{name}" if word == "SRC" else word for word in command) for command in _STATE_COMMANDS)


def _state_cases() -> dict[str, Case]:
    result: dict[str, Case] = {}
    for kind, name, makers in (
        ("config", "config.data", states.CONFIGS),
        ("snapshot", "snapshot.json", states.SNAPSHOTS),
        ("text", "cluster.data", states.TEXTS),
    ):
        commands = _of_source(kind, name)
        if kind == "text":
            hspace = ("htools", "hspace", "-t", name)
            commands = (*commands, hspace, (*hspace, "-v", "-v", "-v", "-p"))
        result |= {f"{kind}: {what}": Case(_file(name, maker), commands) for what, maker in makers.items()}
    return result


def _deep_cases() -> dict[str, Case]:
    """Return what is no cluster, plan or baseline at all, to each reader of files."""
    readers: dict[str, tuple[str, Command]] = {
        "config": ("config.data", ("snapshot", "-s", "config:config.data", "--save", "new.json")),
        "snapshot": ("snapshot.json", ("snapshot", "-s", "snapshot:snapshot.json", "--save", "new.json")),
        "text": ("cluster.data", ("snapshot", "-s", "text:cluster.data", "--save", "new.json")),
        "history": ("kept/20260413T040000Z.json", ("capacity", "-s", NEWEST, "--history", "kept")),
        "baseline": ("base.json", ("check", "--baseline", "base.json", "policy")),
        "plan": ("plan.json", ("render", "plan.json")),
        "hail": ("request.json", ("htools", "hail", "request.json")),
        "hspace -I": ("request.json", ("htools", "hspace", "-I", "request.json")),
    }
    return {
        f"{what}: {name}": Case(_file(file, maker), (command,))
        for what, (file, command) in readers.items()
        for name, maker in states.DEEP.items()
    }


# --- settings -------------------------------------------------------------------------------------------------------

_TOML: Final[dict[str, Callable[[int], str]]] = {
    "dotted keys": lambda size: "a." * (size // 2) + "a = 1\n",
    "dotted keys of a table": lambda size: "[" + "a." * (size // 2) + "a]\n",
    "dotted keys of an array": lambda size: "[[" + "a." * (size // 2) + "a]]\n",
    "dotted keys in line": lambda size: "x = {" + "a." * (size // 2) + "a = 1}\n",
    "dotted keys in quotes": lambda size: "\"a\" . 'a' . " * (size // 12) + "a = 1\n",
    "many dotted keys": lambda size: "".join(f"k{n}." + "a." * 60 + "a = 1\n" for n in range(size // 130)),
    "keys of thirty parts": lambda size: "".join(f"k{n}." + "a." * 29 + "a = 1\n" for n in range(size // 70)),
    "brackets": lambda size: "a = " + "[" * size,
    "brackets closed": lambda size: "a = " + "[" * (size // 2) + "]" * (size // 2) + "\n",
    "tables in line": lambda size: "a = " + "{a = " * (size // 5),
    "tables": lambda size: "".join(f"[k{n}]\n" for n in range(size // 8)),
    "tables of one name": lambda size: "[check]\n" * (size // 8),
    "arrays of tables": lambda size: "[[check]]\n" * (size // 10),
    "keys": lambda size: "".join(f"k{n} = 1\n" for n in range(size // 10)),
    "quotes": lambda size: "a = '" + "'" * size,
    "double quotes": lambda size: '"' * size,
    "triple quotes": lambda size: 'a = """' + '"" ' * (size // 3),
    "escapes": lambda size: 'a = "' + "\\\\" * (size // 2) + "\n",
    "escaped quotes": lambda size: '"\\' * (size // 2),
    "lines of quotes": lambda size: "'\n\"\n" * (size // 4),
    "digits": lambda size: "a = " + "9" * size + "\n",
    "digits and underscores": lambda size: "a = " + "9_" * (size // 2) + "x\n",
    "a float": lambda size: "a = 1." + "9" * size + "e" + "9" * 100 + "\n",
    "a date": lambda size: "a = 1979-05-27T07:32:00." + "9" * size + "\n",
    "comments": lambda size: "# x\n" * (size // 4),
    "blanks": lambda size: "a = 1" + " " * size + "\n" + "\t" * size,
    "unknown rules": lambda size: (
        "[check]\nselect = [" + ", ".join(f'"spec-overlpa{n}"' for n in range(size // 20)) + "]\n"
    ),
    "rules": lambda size: "[check]\nselect = [" + '"GP2", ' * (size // 8) + "]\n",
    "rules below ten thousand": lambda size: (
        "[check]\nselect = [" + '"spec-overlap", ' * min(9_000, size // 16) + "]\n"
    ),
    "severities": lambda size: "[check.severity]\n" + "".join(f'GP{n} = "info"\n' for n in range(size // 16)),
    "ignored by file": lambda size: (
        "[check.per-file-ignores]\n" + "".join(f'"**/*{n}*a*b" = ["GP3"]\n' for n in range(size // 28))
    ),
    "ignored by stars": lambda size: '[check.per-file-ignores]\n"' + "*a" * (size // 2) + 'b" = ["GP3"]\n',
    "ignored by deep stars": lambda size: '[check.per-file-ignores]\n"' + "**/" * (size // 3) + 'b" = ["GP3"]\n',
    "a long baseline": lambda size: '[check]\nbaseline = "' + "x/" * (size // 2) + '"\n',
}


_ENTRY: Final = {"rule": "GP201", "file": "policy.yaml", "fingerprint": "00"}
_BASELINES: Final[dict[str, Text]] = {
    "entries": lambda size: json.dumps({"format_version": "1.0", "findings": [_ENTRY] * (size // 70)}),
    "entries that differ": lambda size: json.dumps(
        {"format_version": "1.0", "findings": [{**_ENTRY, "fingerprint": f"{n:032x}"} for n in range(size // 100)]}
    ),
}


def _settings_cases() -> dict[str, Case]:
    check = (("check", "policy"),)
    return {
        **{f"settings: {name}": Case(_file("policy/gpolicy.toml", maker), check) for name, maker in _TOML.items()},
        **{
            f"pyproject: {name}": Case(_file("policy/pyproject.toml", maker, "# gpolicy\n"), check)
            for name, maker in _TOML.items()
            if "keys" in name
        },
        **{
            f"baseline: {name}": Case(_file("base.json", maker), (("check", "--baseline", "base.json", "policy"),))
            for name, maker in _BASELINES.items()
        },
    }


# --- answers of programs, tests, command lines ----------------------------------------------------------------------


def _answer_cases() -> dict[str, Case]:
    text = states.CLUSTERS / "full" / "htools.data"
    return {
        **{
            f"local: {name}": Case(maker, (("snapshot", "-s", "local:", "--save", "new.json"),), answers.MASTER)
            for name, maker in answers.LOCAL.items()
        },
        **{f"tests: {name}": Case(maker, (("test", "policy"),)) for name, maker in answers.TESTS.items()},
        **{f"line: {name}": Case(lambda _: {}, (line,)) for name, line in answers.LINES.items()},
        **{
            f"hspace -l: {length[:20]}": Case(
                lambda _: {"cluster.data": text.read_bytes()},
                (("htools", "hspace", "-t", "cluster.data", "-l", length),),
            )
            for length in ("0", "-1", str(2**62), "9" * 9999)
        },
    }


CASES: Final[dict[str, Case]] = {
    **{name: Case(_in_policy(maker), _POLICY_COMMANDS) for name, maker in policies.MAKERS.items()},
    **_settings_cases(),
    **_state_cases(),
    **_deep_cases(),
    **_answer_cases(),
}
