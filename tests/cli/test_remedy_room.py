"""`gpolicy remedy --want`: its forms, what its JSON promises, its exit codes, and wrong words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from tests.cli.command_line import ROOT, gpolicy

SOURCE = ("--state", f"snapshot:{ROOT / 'policies' / 'two-groups.snapshot.json'}")
POLICY = ROOT / "policies" / "two-groups"
SCHEMA = json.loads((ROOT / "schemas/output/remedy.json").read_text(encoding="utf-8"))


def answered(want: str, code: int) -> dict[str, Any]:
    done = gpolicy("remedy", POLICY, *SOURCE, "--want", want, "--format", "json")
    assert (done.returncode, done.stderr) == (code, "")
    data: dict[str, Any] = json.loads(done.stdout)
    Draft7Validator(SCHEMA).validate(data)
    return data


def test_moves_make_room() -> None:
    data = answered("26x large", 0)
    room = data["room"]
    assert (room["wanted"], room["count"], room["now"], room["after"]) == ("large", 26, 25, 26)
    assert room["most"] >= 26
    assert (data["summary"]["moves"], data["summary"]["copied"], data["new"], data["left"]) == (1, 0, [], [])
    assert data["steps"][0]["commands"]


@pytest.mark.parametrize(
    ("want", "code", "said"),
    [
        ("26x large", 0, "1 move, 0 to copy, makes room for 26 large"),
        ("3x large", 0, "3 large fit as it is: no move is needed"),
        ("memory=48G vcpus=4 disk=100G", 0, "1 memory=48G vcpus=4 disk=100G fit as it is: no move is needed"),
        ("60x large", 1, "no moves make room for 60 large: 25 fit now, and no moves can make it more than"),
        (
            "7x large:max",
            1,
            "no moves were found that make room for 7 large at its largest: 5 fit now; at most 7 could",
        ),
    ],
)
def test_what_the_answer_says(want: str, code: int, said: str) -> None:
    done = gpolicy("remedy", POLICY, *SOURCE, "--want", want)
    assert done.returncode == code
    assert said in " ".join(done.stdout.split())
    assert "What makes room on cluster " in done.stdout


@pytest.mark.parametrize(
    ("want", "said"),
    [
        ("2x nosuch", "there is no size 'nosuch'"),
        ("2x memory=4X", "Ganeti knows no unit 'X'"),
        ("2x memroy=4G", "unknown key 'memroy'"),
        ("0x large", "0 instances"),
        ("3x", "cannot be read"),
        ("large group=nosuch", "there is no group 'nosuch'"),
    ],
)
def test_wrong_words_are_refused(want: str, said: str) -> None:
    done = gpolicy("remedy", POLICY, *SOURCE, "--want", want)
    assert (done.returncode, done.stdout) == (3, "")
    assert said in done.stderr


def test_moves_that_make_room_are_kept_for_apply_and_the_script_asks_again_for_room(tmp_path: Path) -> None:
    file, script = tmp_path / "room.json", tmp_path / "room.sh"
    done = gpolicy("remedy", *SOURCE, "--want", "19x memory=16G disk=100G vcpus=1", "--save", file, "--script", script)
    assert done.returncode == 0
    kept = json.loads(file.read_text(encoding="utf-8"))
    assert (kept["room"]["count"], len(kept["steps"])) == (19, 2)
    assert "room for 19 memory=16G" in gpolicy("show", file).stdout
    assert "gpolicy remedy --want " in script.read_text(encoding="utf-8")


def full_cluster(directory: Path) -> str:
    """Return the source of four nodes, of which one has 30G free, and after one move two have, as N+1 asks for."""
    used = {1: 20480, 2: 20480, 3: 17000, 4: 20480}
    nodes = "".join(f"n{n}|49152|1024|{48128 - much}|1024000|972800|16|N|uuid-1|1||N|1|8\n" for n, much in used.items())
    instances = "".join(f"i{n}|{much}|51200|2|running|Y|n{n}||plain||1|1\n" for n, much in used.items())
    file = directory / "full.data"
    file.write_text(f"default|uuid-1|preferred||\n\n{nodes}\n{instances}\n\n", encoding="utf-8")
    return f"text:{file}"


def test_a_refused_instance_is_told_what_makes_room(tmp_path: Path) -> None:
    source, words = full_cluster(tmp_path), ("memory=30G", "disk=20G", "vcpus=1", "template=plain")
    refused = gpolicy("place", *words, "--state", source)
    assert refused.returncode == 1
    said = "next: 1 move, 50G to copy, makes room: gpolicy remedy --want 'memory=30G disk=20G vcpus=1 template=plain'"
    assert said in " ".join(refused.stdout.split())
    asked = gpolicy("remedy", "--want", " ".join(words), "--state", source)
    assert (asked.returncode, "1 move, 50G to copy, makes room" in asked.stdout) == (0, True)
    assert "next:" not in gpolicy("place", *words, "--state", source, "--ignore-ipolicy").stdout
