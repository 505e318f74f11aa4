"""Recorded input, damaged at random: it is read into a usable state, or gives one GpolicyError."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from gpolicy.cluster import rapi
from gpolicy.cluster.htools_sources import parse_text
from gpolicy.cluster.json_input import parse_json
from gpolicy.cluster.rapi_client import Client
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.state_files import dump_snapshot, parse_config, parse_snapshot, state_digest
from gpolicy.errors import GpolicyError
from tests.cluster import rapi_server, recorded

# ruff: noqa: S311 (chance is for finding mistakes here, not for secrets)
SEED = random.SystemRandom().randrange(2**32)
ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    2**70,
    1.5,
    -1e300,
    "",
    "x",
    "\ud800",
    "é\n\x1b",
    [],
    [[]],
    [None],
    {},
    {"": {}},
    {"min": 1},
)


def damage(value: Any, chance: random.Random) -> Any:
    """Return a copy of a JSON value with one to three places replaced, removed or doubled."""
    value = copy.deepcopy(value)
    for _ in range(chance.randint(1, 3)):
        holder: Any = [value]
        key: Any = 0
        for _ in range(chance.randint(1, 8)):
            below = holder[key]
            if not isinstance(below, dict | list) or not below:
                break
            holder, key = below, chance.choice(list(below) if isinstance(below, dict) else range(len(below)))
        match chance.randrange(4):
            case 0 if isinstance(holder, dict):
                del holder[key]
            case 1 if isinstance(holder, list):
                holder.append(holder[key])
            case 2 if isinstance(holder, dict):
                holder[chance.choice(["", "x", "name", "\x00", "a\nb", "a" * 300])] = copy.deepcopy(holder[key])
            case _:
                holder[key] = copy.deepcopy(chance.choice(ODD))
        if isinstance(holder, list) and len(holder) == 1 and key == 0 and not isinstance(value, type(holder[0])):
            value = holder[0] if holder[0] in ODD else value
    return value


def usable(state: ClusterState) -> None:
    parse_snapshot(dump_snapshot(state), "file")
    state_digest(state)
    for node in state.nodes.values():
        state.effective_of_node(node)


def spoil(data: bytes, chance: random.Random) -> bytes:
    """Return the bytes with a piece cut out, doubled or replaced."""
    if not data:
        return data
    begin = chance.randrange(len(data))
    end = min(begin + chance.choice([1, 3, 40, 4000]), len(data))
    middle = chance.choice([b"", data[begin:end] * 2, b"|", b"\n\n", b"\0", b"\xff", b"-1", b'"', b"[", b"9" * 30])
    return data[:begin] + middle + data[end:]


def survives(read: Callable[[], ClusterState], number: int) -> None:
    """See that reading gives a state that all can use, or one clear error."""
    try:
        usable(read())
    except GpolicyError as error:
        clear = error.message.isprintable()
        if not clear:
            raise AssertionError(f"seed {SEED}, number {number}: {error.message!r}") from error
    except Exception as error:
        raise AssertionError(f"seed {SEED}, number {number}") from error


def json_bytes(value: Any, chance: random.Random, number: int) -> bytes:
    data = json.dumps(value).encode()
    return spoil(data, chance) if number % 4 == 0 else data


@pytest.mark.parametrize("cluster", recorded.CLUSTERS)
def test_config_data(cluster: str) -> None:
    chance = random.Random(f"{SEED}{cluster}")
    whole = recorded.load(cluster, "config.data")
    for number in range(50):
        data = json_bytes(damage(whole, chance), chance, number)
        survives(partial(parse_config, data, where="file", source="config:file"), number)


class Answers(Client):
    """A client that gets damaged answers."""

    __slots__ = ("parts",)
    parts: dict[str, Any]

    def get(self, path: str, *, until: float | None = None) -> Any:  # noqa: ARG002
        return parse_json(json.dumps(self.parts[path]).encode(), path)

    get_if_allowed = get


def test_rapi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rapi, "_PAUSE", 0.0)
    chance = random.Random(SEED)
    whole = rapi_server.answers("full")
    for number in range(120):
        client = Answers("host", 1, None)
        part = chance.choice(sorted(whole))
        object.__setattr__(client, "parts", {**whole, part: damage(whole[part], chance)})
        survives(partial(rapi.read_rapi, client), number)


def test_snapshot() -> None:
    chance = random.Random(SEED)
    whole = json.loads(dump_snapshot(recorded.from_config("full")))
    for number in range(120):
        survives(partial(parse_snapshot, json_bytes(damage(whole, chance), chance, number), "file"), number)


def test_text() -> None:
    chance = random.Random(SEED)
    data = recorded.path("full", "htools.data").read_bytes()
    for number in range(300):
        damaged = data
        for _ in range(chance.randint(1, 3)):
            damaged = spoil(damaged, chance)
        text = damaged.decode(errors="replace")
        survives(partial(parse_text, text, where="file", source="text:file"), number)
