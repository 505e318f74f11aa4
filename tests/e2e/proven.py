"""What the live tests have shown of each parameter: the recorded results, and docs/proven.md made from them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from parameter_values import FIXED, NOT_UNDONE, VERSION

from gpolicy.ganeti.commands import only_route
from gpolicy.ganeti.parameter import Level

DIRECTORY: Final = Path(__file__).parent / "proven"
PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "proven.md"
STEPS: Final = ("set", "changed", "reset")
ROUTE_NAMES: Final = {"local": "argv", "rapi": "rapi"}
_LETTERS: Final = {"set": "s", "changed": "c", "reset": "r"}


@dataclass(slots=True)
class Proof:
    """What was shown by one way to the cluster: by level and parameter the steps, or why not."""

    route: str
    shown: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    lacking: dict[str, dict[str, str]] = field(default_factory=dict)

    def add(self, name: str, level: Level, step: str) -> None:
        """Note that a step ended as wanted."""
        steps = self.shown.setdefault(level.value, {}).setdefault(name, [])
        steps.append(step)
        steps.sort(key=STEPS.index)

    def complete(self, all_of_them: Iterable[tuple[str, Level]]) -> None:
        """Give the reason for each thing that was not shown; raise AssertionError where there is none."""
        for name, level in all_of_them:
            steps = self.shown.get(level.value, {}).get(name, [])
            if steps != list(STEPS):
                self.lacking.setdefault(level.value, {})[name] = self._reason(name)

    def _reason(self, name: str) -> str:
        path = tuple(name.split("."))
        route = only_route(path, version=VERSION)
        if route is not None and route != ROUTE_NAMES[self.route]:
            return f"{'the command line' if route == 'rapi' else 'RAPI'} of Ganeti 3.0 cannot set it"
        reason = {**FIXED, **NOT_UNDONE}.get(path)
        assert reason is not None, f"{name} was not shown, and nothing says why"
        return reason

    def as_json(self) -> dict[str, Any]:
        """Return it as it is recorded."""
        return {"route": self.route, "ganeti": "3.0.2", "shown": self.shown, "not_shown": self.lacking}


def read_proofs() -> dict[str, Any]:
    """Return what is recorded, by way."""
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted(DIRECTORY.glob("*.json"))}


def write_proofs(proof: Proof) -> None:
    """Record a result, and write the page anew."""
    DIRECTORY.mkdir(exist_ok=True)
    text = json.dumps(proof.as_json(), indent=1, sort_keys=True)
    (DIRECTORY / f"{proof.route}.json").write_text(f"{text}\n", encoding="utf-8")
    if len(read_proofs()) == len(ROUTE_NAMES):
        PAGE.write_text(page(read_proofs()), encoding="utf-8")


_HEAD: Final = """\
# What was shown on a real cluster

Each parameter of the table, at each level that has it, was set, changed and reset on a real Ganeti {ganeti} of five
nodes, through the command line (`--to local:`) and through the remote API (`--to rapi://`). After every step the
cluster was read again from config.data, over RAPI and on the master; every source that shows the parameter showed the
wanted value, and a new plan was empty. `scripts/e2e` does it again and fails if a result differs from this page.

A cell holds what was shown by the command line, and behind the slash by RAPI: **s**et, **c**hanged, **r**eset; `-` is
what was not, and the last section says why. *Reset* is: the own value is removed (group, node), or the value of the
fresh cluster is set (cluster). A group's `access` is set to the cluster's value (trap T11). An empty cell is a level
that does not have the parameter.

{count} steps were shown: each is one of set, changed, reset, of one parameter at one level by one way.
"""


def page(proofs: Mapping[str, Any]) -> str:
    """Return docs/proven.md."""
    rows: dict[str, dict[str, str]] = {}
    for level in Level:
        names = {
            name for proof in proofs.values() for key in ("shown", "not_shown") for name in proof[key].get(level, {})
        }
        for name in names:
            cells = [_cell(proofs[route], level, name) for route in ("local", "rapi")]
            rows.setdefault(name, {})[level.value] = "/".join(cells)
    count = sum(
        len(steps) for proof in proofs.values() for shown in proof["shown"].values() for steps in shown.values()
    )
    lines = [_HEAD.format(ganeti=proofs["local"]["ganeti"], count=count)]
    for title, members in _families(sorted(rows)).items():
        lines += [f"\n## {title}\n", "| parameter | cluster | group | node |", "|---|---|---|---|"]
        lines += [
            f"| `{name}` | {' | '.join(rows[name].get(level.value, '') for level in Level)} |" for name in members
        ]
    lines += ["\n## Not shown\n", "| parameter | way | why |", "|---|---|---|"]
    reasons = {
        (name, route, reason)
        for route, proof in proofs.items()
        for lacking in proof["not_shown"].values()
        for name, reason in lacking.items()
    }
    lines += [f"| `{name}` | {_WAYS[route]} | {reason} |" for name, route, reason in sorted(reasons)]
    return "\n".join(lines) + "\n" + _SUITE


_SUITE: Final = """
## What else is shown there

| what | each time | more with `--full` |
|---|---|---|
| random policies A and B: nothing left after each, and back to the same config.data¹ | 12 a way | 100 a way |
| random changes: Ganeti warns of exactly those instances that the plan named² | 12 a way | 40 a way |
| `kill -9` of gpolicy, `--resume`, an empty plan, `--rollback` | 4 points a way | after every line, also ssh |
| a daemon of Ganeti (luxid, wconfd, noded) killed in mid-job | 3 | 15, also ssh |
| the connection that holds the lock on the master cut in mid-run | at both ends | |
| texts that a shell or a parser would read, in every parameter that takes any | 43 a way, also ssh | |
| groups, tags and files with such names | ssh; what RAPI can address | local |
| passwords stand in no argument, environment, log, plan, journal or output | 17 runs, 8 end badly | |
| [traps](traps.md) | 62 of 62 | |

127 tests each time, 52 more in full. Two clusters side by side, on two cores: 15 minutes each time; in full 1 hour and
48 minutes, with other work on the same cores.

¹ less serial numbers and times. ² For some, `gnt-cluster verify` says of every instance what the plan says of it.
"""


_WAYS: Final = {"local": "command line", "rapi": "RAPI"}


def _cell(proof: Mapping[str, Any], level: Level, name: str) -> str:
    steps = proof["shown"].get(level, {}).get(name, [])
    return "".join(_LETTERS[step] if step in steps else "-" for step in STEPS)


def _families(names: list[str]) -> dict[str, list[str]]:
    families: dict[str, list[str]] = {"Single parameters of the cluster": []}
    for name in names:
        family = name.partition(".")[0] if "." in name else "Single parameters of the cluster"
        families.setdefault(family, []).append(name)
    return families
