"""Payloads in every field of states, plans, policies and settings: none reaches a terminal or a log unescaped."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import pytest

from gpolicy.cli.running import run
from gpolicy.cli.terminal import complain
from tests.cli.command_line import CONFIG, STATE

PAYLOAD = (
    "\x1b[35mq\x1b]0;t\x07\x9b2J\x7f\u202e\u2066\u200b\u2028\x85\r\t\ufe0f\u3164\n::error::forged\n##[group]forged"
)
POLICY = """gpolicy: v1
kind: Cluster
name: cluster
ganeti_version: '3.0'
ipolicy: {vcpu-ratio: 7}
---
gpolicy: v1
kind: NodeGroup
name: platinum
alloc_policy: last_resort
---
gpolicy: v1
kind: Guards
guards: [{name: few, max_changes: 1}]
"""
FORMS = ("json", "markdown", "html", "github")

Run = Callable[..., str]


def unclean(text: str) -> set[str]:
    """Return the characters that must not be in what was written."""
    return {letter for letter in text if not (letter.isprintable() or letter == "\n") or letter in "\ufe0f\u3164"}


@pytest.fixture(name="said")
def _said(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a verb, hold what it wrote against the rules, and return it."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")

    def said(*words: str | Path) -> str:
        capfd.readouterr()
        code = run([str(word) for word in words])
        out, err = capfd.readouterr()
        assert code in (0, 1, 2, 3), (code, err)
        assert not unclean(out + err), (words, unclean(out + err))
        lines = [] if "github" in words else (out + err).split("\n")
        forged = [line for line in lines if re.match(r"\s*(::|##\[)", line) or line.startswith("forged")]
        assert not forged, (words, forged)
        commands = [line for line in out.split("\n") if line.startswith("::")]
        assert not any(line.startswith("::error::forged") for line in commands)
        return out + err

    return said


def _keys(tree: Any) -> Iterator[str]:
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield key if isinstance(value, str | dict) or (isinstance(value, list) and value) else ""
            yield from _keys(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _keys(value)


def _with_payload(tree: Any, wanted: Collection[str], key: str = "") -> Any:
    """Return a tree of JSON with the payload behind all texts under some keys, and behind keys of their mappings."""
    if isinstance(tree, dict):
        behind = PAYLOAD if key in wanted else ""
        return {f"{name}{behind}": _with_payload(value, wanted, name) for name, value in tree.items()}
    if isinstance(tree, list):
        return [_with_payload(value, wanted, key) for value in tree]
    return f"{tree}{PAYLOAD}" if isinstance(tree, str) and key in wanted else tree


@pytest.fixture(name="policy")
def _policy(tmp_path: Path) -> Path:
    """A policy that changes the recorded cluster."""
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY)
    return file


def _snapshot(directory: Path) -> Any:
    assert run(["snapshot", "--state", STATE, "--save", str(directory / "whole.json")]) == 0
    return json.loads((directory / "whole.json").read_text())


@pytest.mark.parametrize("together", [20, pytest.param(1, marks=pytest.mark.full)])
@pytest.mark.parametrize("source", ["config", "snapshot"])
@pytest.mark.slow
def test_long_numbers_of_a_cluster(source: str, together: int, said: Run, policy: Path, tmp_path: Path) -> None:
    """A payload under each key that gpolicy reads: alone where that stops it, else under so many keys at a time."""
    whole = json.loads(CONFIG.read_text()) if source == "config" else _snapshot(tmp_path)
    file, again = tmp_path / "state.json", tmp_path / "again.json"
    state = f"{source}:{file}"

    def is_read(*keys: str) -> bool:
        file.write_text(json.dumps(_with_payload(whole, keys)))
        again.unlink(missing_ok=True)
        said("snapshot", "--state", state, "--save", again)
        return again.exists()

    read = [key for key in sorted(set(_keys(whole)) - {""}) if is_read(key)]
    assert len(read) > 100
    for first in range(0, len(read), together):
        keys = read[first : first + together]
        assert is_read(*keys)
        said("plan", policy, "--state", state, "--no-impact")
        said("drift", policy, "--state", state)
        said("place", "--state", state, "memory=1G", "disk=1G", "vcpus=1")
        said("adopt", "--state", state, "--save", tmp_path / f"adopted-{keys[0]}")


@pytest.mark.parametrize("key", ["name", "tags", "own", "ipolicy", "group", "groups", "nodes", "instances"])
def test_long_numbers_of_a_cluster_in_all_forms(key: str, said: Run, policy: Path, tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    file.write_text(json.dumps(_with_payload(_snapshot(tmp_path), [key])))
    state = f"snapshot:{file}"
    for form in FORMS:
        said("plan", policy, "--state", state, "-f", form)
    for verb in ("capacity", "suggest"):
        for form in ("text", "json", "markdown"):
            said(verb, "--state", state, "-f", form)
    for form in ("text", "json", "prometheus"):
        said("drift", policy, "--state", state, "-f", form)
    said("htools", "hspace", "--simulate", f"p,2,1t,64g,16{PAYLOAD}")


@pytest.mark.slow
def test_long_numbers_of_a_plan(said: Run, policy: Path, tmp_path: Path) -> None:
    assert run(["plan", str(policy), "--state", STATE, "--save", str(tmp_path / "whole.json")]) in (0, 1)
    whole = json.loads((tmp_path / "whole.json").read_text())
    for guard in whole["guards"]:
        guard["ok"] = True
    file = tmp_path / "plan.json"
    for key in sorted(set(_keys(whole)) - {""}):
        file.write_text(json.dumps(_with_payload(whole, [key])))
        said("render", file)
        said("render", "--rollback", file)
        said("apply", file, "--to", "local:", "--yes")


DOCUMENTS = {
    "name": "gpolicy: v1\nkind: NodeGroup\nname: {}\n",
    "kind": "gpolicy: v1\nkind: {}\n",
    "key": "gpolicy: v1\nkind: NodeGroup\nname: gold\n{}: 1\n",
    "parameter": "gpolicy: v1\nkind: NodeGroup\nname: gold\nndparams: {{{}: 1}}\n",
    "value": "gpolicy: v1\nkind: NodeGroup\nname: gold\nalloc_policy: {}\n",
    "tags": "gpolicy: v1\nkind: NodeGroup\nname: gold\ntags: [{}]\n",
    "nodes": "gpolicy: v1\nkind: NodeGroup\nname: gold\nnodes: [{}]\n",
    "extends": "gpolicy: v1\nkind: NodeGroup\nname: gold\nextends: {}\n",
    "pair": "gpolicy: v1\nkind: NodeGroup\nname: gold\nipolicy: {{minmax: [{{name: {}, min: {{}}, max: {{}}}}]}}\n",
    "waiver": "gpolicy: v1\nkind: Waiver\nwaivers: [{{rule: GP201, reason: {}, until: 2020-01-01}}]\n",
    "guard": "gpolicy: v1\nkind: Guards\nguards: [{{name: {}, max_changes: 0}}]\n",
    "test": "gpolicy: v1\nkind: Test\ntests: [{{name: {}, capacity: {{group: gold}}, expect: {{standard: 1}}}}]\n",
    "comment": "gpolicy: v1\nkind: NodeGroup\nname:   gold  # gpolicy: ignore[{}]\n",
}


QUOTED = pytest.mark.parametrize(
    "written",
    [json.dumps(f"gold{PAYLOAD}"), "gold\u202e\u2066\u200b\u2028\x85##[group]\ufe0f"],
    ids=["quoted", "plain"],
)


@QUOTED
@pytest.mark.parametrize("place", DOCUMENTS)
def test_long_numbers_of_a_policy(place: str, written: str, said: Run, tmp_path: Path) -> None:
    text = "gpolicy: v1\nkind: Cluster\nname: c.example.org\n---\n" + DOCUMENTS[place].format(written)
    (tmp_path / "p.yaml").write_text(text, encoding="utf-8")
    for words in (["check"], ["check", "-f", "github"], ["show"], ["show", "-f", "json"], ["test"]):
        said(*words, tmp_path / "p.yaml")
    said("plan", tmp_path / "p.yaml", "--state", STATE)


@QUOTED
def test_long_numbers_of_a_policy_in_all_forms(written: str, said: Run, tmp_path: Path) -> None:
    for place, text in DOCUMENTS.items():
        (tmp_path / f"{place}.yaml").write_text(text.format(written), encoding="utf-8")
    for form in ("text", "json", "sarif", "github", "gitlab", "junit", "markdown"):
        said("check", tmp_path, "-f", form)
    for words in (["check", "--diff"], ["fmt", "--diff"], ["fmt"]):
        said(*words, tmp_path)


def test_long_numbers_of_settings_and_names_of_files(said: Run, tmp_path: Path) -> None:
    home = tmp_path / f"home{PAYLOAD.replace('/', '')}"
    home.mkdir()
    for name in ("::error::forged.yaml", "a\n::error::forged\x1b[35m.yaml", os.fsdecode(b"\xff\x9b.yaml")):
        (home / name).write_text("gpolicy: v1\nkind: Nope\nname:   x\n")
    for form in ("text", "json", "sarif", "github", "gitlab", "junit", "markdown"):
        said("check", home, "-f", form)
    for words in (["show"], ["fmt", "--diff"], ["fmt", "--check"], ["check", "--write-baseline", home / "b\x1b.json"]):
        said(*words, home)
    for text in (f"[check]\n{json.dumps(PAYLOAD)} = 1\n", f"[check]\nselect = [{json.dumps(PAYLOAD)}]\n"):
        (home / "gpolicy.toml").write_text(text)
        said("check", home)
    said("check", f"gone{PAYLOAD}")
    said("init", tmp_path / f"new{PAYLOAD}".replace("/", ""))
    for verb in ("check", "plan", PAYLOAD):
        said(verb, f"--{PAYLOAD}")


def test_a_word_of_a_cluster_cannot_fill_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    complain(f"no such disk template: {'A' * 1_000_000}", None)
    assert len(capsys.readouterr().err) < 2100
