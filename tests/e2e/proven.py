"""What the live tests have shown of each parameter, as recorded, and docs/how-we-know/proven.md made from it.

Each release of Ganeti has its record: `proven/RELEASE/WAY.json`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from gpolicy.ganeti.commands import only_route
from gpolicy.ganeti.vocabulary import Level
from tests.e2e.parameter_values import FIXED, NOT_UNDONE

DIRECTORY: Final = Path(__file__).parent / "proven"
PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "how-we-know" / "proven.md"
STEPS: Final = ("set", "changed", "reset")
ROUTE_NAMES: Final = {"local": "argv", "rapi": "rapi"}


@dataclass(slots=True)
class Proof:
    """What was shown on one release by one way to the cluster: by level and parameter the steps, or why not."""

    release: str
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
        route = only_route(path, version=self.release)
        if route is not None and route != ROUTE_NAMES[self.route]:
            return f"{'the command line' if route == 'rapi' else 'RAPI'} of Ganeti cannot set it"
        reason = {**FIXED, **NOT_UNDONE}.get(path)
        assert reason is not None, f"{name} was not shown, and nothing says why"
        return reason

    def as_json(self) -> dict[str, Any]:
        """Return it as it is recorded."""
        return {"shown": self.shown, "not_shown": self.lacking}


def read_proofs() -> dict[str, dict[str, Any]]:
    """Return what is recorded, by release and way."""
    return {
        folder.name: {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))}
        for folder in sorted(DIRECTORY.iterdir())
    }


def write_proofs(proof: Proof) -> None:
    """Record a result, and write the page anew."""
    folder = DIRECTORY / proof.release
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(proof.as_json(), indent=1, sort_keys=True)
    (folder / f"{proof.route}.json").write_text(f"{text}\n", encoding="utf-8")
    proofs = read_proofs()
    if all(proofs[release].keys() == ROUTE_NAMES.keys() for release in proofs):
        PAGE.write_text(page(proofs), encoding="utf-8")


_HEAD: Final = """\
# What was shown on a real cluster

For those who want to know which parameters were tried on a real cluster, and how. Each parameter was set, changed
and reset, at each level that has it, on a real cluster of five nodes of each release, {releases}: through the command
line (`--to local:`) and through the remote API (`--to rapi://`). After every step the cluster was read again from
config.data, over RAPI and on the master. Every source that shows the parameter showed the declared value, and a new
plan was empty. `scripts/e2e` and `scripts/e2e --ganeti 3.1` repeat this and fail if a result differs from this page.

To reset a parameter of a group or node is to remove its own value; to reset one of the cluster is to set the value
of the fresh cluster. A group's `access` is set to the cluster's value (trap T11).

{count} steps were shown: each is one of set, changed, reset, of one parameter at one level by one way on one release.

## Parameters

*Both*: all three steps were shown by both ways. *Command line* and *RAPI*: all three were shown by this way only.
Where the releases differ, each is named. An empty cell: the level does not have the parameter.

| family | parameters | cluster | group | node |
|---|---|---|---|---|
"""


def page(proofs: Mapping[str, Any]) -> str:
    """Return docs/how-we-know/proven.md."""
    families: dict[tuple[str, ...], list[str]] = {}
    for name, cells in sorted(_cells(proofs).items()):
        *family, last = name.split(".")
        families.setdefault((".".join(family), *cells), []).append(last)
    count = sum(
        len(steps)
        for of_release in proofs.values()
        for proof in of_release.values()
        for shown in proof["shown"].values()
        for steps in shown.values()
    )
    lines = [
        f"| {f'`{family}`' if family else ''} | {_quoted(names)} | {' | '.join(cells)} |"
        for (family, *cells), names in sorted(families.items())
    ]
    lines += ["\n## What was not shown\n", "| parameters | way | why |", "|---|---|---|"]
    lines += [f"| {_quoted(names)} | {way} | {reason} |" for (reason, way), names in _not_shown(proofs).items()]
    return _HEAD.format(releases=" and ".join(proofs), count=count) + "\n".join(lines) + "\n" + _SUITE


_SUITE: Final = """
## What else is shown there

| what | each time | more with `--full` |
|---|---|---|
| random policies A and B: nothing left after each; back to the same config.data¹ | 12 a way | 100 a way |
| random changes: Ganeti warns of exactly those instances that the plan named² | 12 a way | 40 a way |
| `kill -9` of gpolicy, then `--resume`, an empty plan, `--rollback` | 4 points a way | after every line, also ssh |
| a daemon of Ganeti (luxid, wconfd, noded) is killed during a job | 3 | 15, also ssh |
| the connection that holds the lock on the master is cut during a run | at both ends | |
| texts with special characters for shells and parsers, in every parameter that takes text | 43 a way, also ssh | |
| groups, tags and files with such names | ssh; what RAPI can address | local |
| a roll-out over two clusters is killed, resumed, stopped by trouble and taken back | once | after every line |
| `drift --write` and `adopt` take what was changed by hand; the plan is then empty | through every source | |
| no password stands in an argument, environment, log, plan, journal or output | 17 runs, 8 of them fail | |
| [traps](../explanation/traps.md) | 62 of 62 | |

135 tests run each time, 58 more with `--full`; all have passed on 3.0 and on 3.1. On two clusters side by side, on two
cores, those of each time take 15 to 20 minutes, all but the roll-outs 1 hour and 48 minutes, and the roll-outs of
`--full` another 50 minutes.

¹ Serial numbers and times may differ. ² For some changes, `gnt-cluster verify` must also agree about every
instance.
"""


_WAYS: Final = {"local": "command line", "rapi": "RAPI"}


def _cells(proofs: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return, by parameter, what was shown of it at each level."""
    names = {
        name
        for of_release in proofs.values()
        for proof in of_release.values()
        for key in ("shown", "not_shown")
        for found in proof[key].values()
        for name in found
    }
    return {
        name: [_of_releases({release: _cell(proofs[release], level, name) for release in proofs}) for level in Level]
        for name in names
    }


def _of_releases(said: Mapping[str, str]) -> str:
    """Return what holds on every release, or what on each."""
    if len(set(said.values())) == 1:
        return next(iter(said.values()))
    return ", ".join(f"{release}: {text or 'gone'}" for release, text in said.items())


def _cell(proofs: Mapping[str, Any], level: Level, name: str) -> str:
    if not any(name in proof[key].get(level, {}) for proof in proofs.values() for key in ("shown", "not_shown")):
        return ""
    shown = {route: proofs[route]["shown"].get(level, {}).get(name, []) for route in _WAYS}
    whole = [_WAYS[route] for route, steps in shown.items() if steps == list(STEPS)]
    if len(whole) == len(_WAYS):
        return "both"
    return whole[0] if whole else " / ".join(dict.fromkeys(", ".join(steps) or "not shown" for steps in shown.values()))


def _not_shown(proofs: Mapping[str, Any]) -> dict[tuple[str, str], list[str]]:
    """Return the parameters that were not shown, by the reason and the ways that it holds for."""
    ways: dict[tuple[str, str], set[str]] = {}
    for of_release in proofs.values():
        for route, way in _WAYS.items():
            for lacking in of_release[route]["not_shown"].values():
                for name, reason in lacking.items():
                    ways.setdefault((name, reason), set()).add(way)
    result: dict[tuple[str, str], list[str]] = {}
    for (name, reason), found in sorted(ways.items()):
        result.setdefault((reason, "both" if len(found) > 1 else min(found)), []).append(name)
    return result


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
