"""All hostile inputs, each with the command lines that read it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from tests.hostile import answers, policies, states

SNAPSHOT: Final = f"snapshot:{states.ROOT}/policies/two-groups.snapshot.json"
ALLOW: Final = ("--allow", "right-cluster")
SMALL: Final = (
    "gpolicy: v1\nkind: Cluster\nname: ganeti.example.org\nipolicy: {vcpu-ratio: 3}\n---\n"
    "gpolicy: v1\nkind: NodeGroup\nname: default\nipolicy: {spindle-ratio: 9}\ntags: [a]\n"
)
Command = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """`maker(size)` returns files by name; each of `commands` is run where they are."""

    maker: Callable[[int], dict[str, Any]]
    commands: tuple[Command, ...]
    environ: dict[str, str] = field(default_factory=dict)


def _in_policy(maker: policies.Maker) -> Callable[[int], dict[str, Any]]:
    return lambda size: {f"policy/{name}": text for name, text in maker(size).items()}


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
    ("snapshot", "-s", "SRC", "-o", "new.json"),
    ("plan", "-s", "SRC", *ALLOW, "-f", "html", "policy"),
    ("adopt", "-s", "SRC", "-o", "adopted"),
    ("drift", "-s", "SRC", "policy"),
    ("check", "-s", "SRC", "policy"),
    ("capacity", "-s", "SRC"),
    ("place", "-s", "SRC", "-f", "html", "memory=1G", "vcpus=1", "disk=1G"),
    ("suggest", "-s", "SRC", "-f", "html"),
    ("evacuate", "-s", "SRC", "-f", "html", "*"),
)


def _of_source(kind: str, name: str) -> tuple[Command, ...]:
    return tuple(tuple(f"{kind}:{name}" if word == "SRC" else word for word in command) for command in _STATE_COMMANDS)


def _file(name: str, maker: states.Bytes) -> Callable[[int], dict[str, Any]]:
    return lambda size: {name: maker(size), "policy/policy.yaml": SMALL}


def _state_cases() -> dict[str, Case]:
    result: dict[str, Case] = {}
    for kind, name, makers in (
        ("config", "config.data", {**states.DEEP, **states.CONFIGS}),
        ("snapshot", "snapshot.json", {**states.DEEP, **states.SNAPSHOTS}),
        ("text", "cluster.data", {**states.DEEP, **states.TEXTS}),
    ):
        for what, maker in makers.items():
            commands = _of_source(kind, name)
            if what in states.DEEP:
                commands = commands[:1]
            if kind == "text":
                commands = (
                    *commands,
                    ("htools", "hspace", "-t", name),
                    ("htools", "hspace", "-v", "-v", "-v", "-t", name, "-p"),
                )
            result[f"{kind}: {what}"] = Case(_file(name, maker), commands)
    return result


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


def _settings_cases() -> dict[str, Case]:
    result = {
        f"settings: {name}": Case(
            lambda size, maker=maker: {"policy/gpolicy.toml": maker(size), "policy/policy.yaml": SMALL},  # type: ignore[misc]
            (("check", "policy"),),
        )
        for name, maker in _TOML.items()
    }
    result |= {
        f"pyproject: {name}": Case(
            lambda size, maker=maker: {
                "policy/pyproject.toml": "# gpolicy\n" + maker(size),
                "policy/policy.yaml": SMALL,
            },  # type: ignore[misc]
            (("check", "policy"),),
        )
        for name, maker in _TOML.items()
        if "keys" in name
    }
    entry = {"rule": "GP201", "file": "policy.yaml", "fingerprint": "00"}
    for name, maker in {
        **states.DEEP,
        "entries": lambda size: json.dumps({"format_version": "1.0", "findings": [entry] * (size // 70)}).encode(),
        "entries that differ": lambda size: json.dumps(
            {"format_version": "1.0", "findings": [{**entry, "fingerprint": f"{n:032x}"} for n in range(size // 100)]}
        ).encode(),
    }.items():
        result[f"baseline: {name}"] = Case(
            lambda size, maker=maker: {"base.json": maker(size), "policy/policy.yaml": SMALL},  # type: ignore[misc]
            (("check", "--baseline", "base.json", "policy"),),
        )
    return result


# --- plans, journals, requests --------------------------------------------------------------------------------------


def _plan_cases() -> dict[str, Case]:
    result: dict[str, Case] = {}
    for name, maker in states.DEEP.items():
        result[f"plan: {name}"] = Case(_file("plan.json", maker), (("render", "plan.json"),))
        result[f"hail: {name}"] = Case(_file("request.json", maker), (("htools", "hail", "request.json"),))
        result[f"hspace -I: {name}"] = Case(_file("request.json", maker), (("htools", "hspace", "-I", "request.json"),))
    return result


def _answer_cases() -> dict[str, Case]:
    text = states.CLUSTERS / "full" / "htools.data"
    return {
        **{
            f"local: {name}": Case(maker, (("snapshot", "-s", "local:", "-o", "new.json"),), answers.MASTER)
            for name, maker in answers.LOCAL.items()
        },
        **{f"tests: {name}": Case(maker, (("test", "policy"),)) for name, maker in answers.TESTS.items()},
        **{f"line: {name}": Case(lambda _: {}, (line,)) for name, line in answers.LINES.items()},
        **{
            f"hspace -l {length}": Case(
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
    **_plan_cases(),
    **_answer_cases(),
}
