"""The schemas in the YAML server that VS Code, Neovim and others run: what an editor offers, says and marks.

Needs node and the npm package yaml-language-server (`npm install --prefix DIR yaml-language-server`, then
GPOLICY_YAML_SERVER=DIR). `test_recorded_server.py` stands in where they are not.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from gpolicy.policy.conformance import file_name
from gpolicy.policy.kinds import KINDS
from gpolicy.writing.documents import GUARDS_FILE, SCHEMA_FILE, modelines, schema_text, starter_files
from scripts.schemas.documents import schemas
from tests.editors.editor_cases import CASES, MODELINES, answer_of
from tests.editors.language_server import LanguageServer, server_script
from tests.editors.sections import SCHEMAS, Section, at_section, choices, sections

SCRIPT = server_script()
pytestmark = pytest.mark.skipif(
    SCRIPT is None or not SCRIPT.is_file() or shutil.which("node") is None,
    reason="no yaml-language-server: npm install --prefix DIR yaml-language-server; GPOLICY_YAML_SERVER=DIR",
)

HEAD = MODELINES
SECTIONS = [section for kind in KINDS for section in sections(kind)]
OF_VALUES = [(section, key) for section in SECTIONS for key, schema in section.keys.items() if choices(schema)]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a policy's directory, with the schema where `gpolicy init` writes it."""
    directory = tmp_path_factory.mktemp("policy")
    schema = directory / SCHEMA_FILE
    schema.parent.mkdir()
    schema.write_text(schema_text(), encoding="utf-8")
    return directory


@pytest.fixture(scope="module")
def server(home: Path) -> Iterator[LanguageServer]:
    assert SCRIPT is not None
    with LanguageServer(SCRIPT, home) as running:
        yield running


def test_every_key_of_every_section_is_offered_and_explained(server: LanguageServer) -> None:
    for section in SECTIONS:
        items = {item["label"]: item for item in server.complete(HEAD + at_section(section, "|"))}
        wanted = set(section.keys) - {"gpolicy", "kind"}  # at_section has written these two
        assert wanted <= items.keys(), section
        assert all(items[key].get("documentation") for key in wanted), section


def test_every_word_that_can_be_chosen_is_offered(server: LanguageServer) -> None:
    assert len(OF_VALUES) > 100
    for section, key in OF_VALUES:
        if key in {"gpolicy", "kind"}:
            continue
        written = f'"{key}": |' if key == "on" else f"{key}: |"
        offered = {label.strip('"') for label in server.labels(HEAD + at_section(section, written))}
        assert set(choices(section.keys[key])) <= offered, (section, key)


def test_every_key_has_its_description_on_hover(server: LanguageServer) -> None:
    for section in SECTIONS:
        for key, schema in section.keys.items():
            if "description" not in schema or key in {"gpolicy", "kind"}:
                continue
            name, value = f'"{key}"' if key == "on" else key, fitting(section, schema)
            if value == '"inherit"':  # then this word is explained
                continue
            said = server.hover(HEAD + at_section(section, f"{name[:1]}|{name[1:]}: {value}"))
            assert _plain(schema["description"])[:60] in _plain(said), (section, key, said)


def test_a_wrong_key_is_marked_in_every_section(server: LanguageServer) -> None:
    texts = [HEAD + at_section(section, "nonsense-key: 1") for section in SECTIONS]
    for section, text, marks in zip(SECTIONS, texts, server.all_diagnostics(texts), strict=True):
        assert text.count("\n") in [line for line, _ in marks], (section, marks)


def fitting(section: Section, schema: dict[str, Any]) -> str:
    """Return a value that the schema takes."""
    values: tuple[Any, ...] = (
        2,
        "4G",
        True,
        "5%",
        "2026-01-31",
        "drbd",
        "3.0",
        ["a"],
        ["drbd"],
        [],
        {},
        "x",
        {"at_most": 1},
    )
    check = Draft7Validator(schema | {"definitions": SCHEMAS[file_name(section.kind)]["definitions"]})
    words = (word for word in values if check.is_valid(word))
    return json.dumps(next(words, (choices(schema) or ["x"])[0]))


def _plain(text: str) -> str:
    """Return a text without what Markdown escapes or breaks lines by."""
    return "".join(letter for letter in text if letter.isalnum())


@pytest.mark.parametrize("name", CASES)
def test_the_named_cases_are_as_recorded(server: LanguageServer, name: str) -> None:
    recorded = json.loads((Path(__file__).parent / "recorded.json").read_text(encoding="utf-8"))["answers"]
    answer = answer_of(server, CASES[name])
    if isinstance(answer, list) and CASES[name].ask == "complete":  # the order is the server's own affair
        assert set(answer) == set(recorded[name])
    else:
        assert answer == recorded[name]


def test_the_starter_and_the_worked_examples_are_without_a_mark(server: LanguageServer, home: Path) -> None:
    files = starter_files("cluster.example.org")
    texts = {name: text for name, text in files.items() if name.endswith(".yaml")}
    for name, text in texts.items():
        (home / name).parent.mkdir(exist_ok=True)
        assert server.diagnostics(text, name, settle=0.0) == [], name
    policies = Path(__file__).resolve().parents[2] / "policies"
    bare = {}
    for file in sorted(policies.rglob("*.yaml")):
        documents = file.read_text(encoding="utf-8").split("\n---\n")
        whole = "\n---\n".join(HEAD.splitlines()[0] + "\n" + document for document in documents)
        bare[file] = "".join(f"{line}\n" for line in whole.splitlines() if "schemas/policy.json" not in line)
    for file, marks in zip(bare, server.all_diagnostics(bare.values()), strict=True):
        assert marks == [], file


def test_the_starter_completes_through_its_own_modeline(server: LanguageServer, home: Path) -> None:
    for name, text in starter_files("cluster.example.org").items():
        if name.endswith(".yaml"):
            (home / name).parent.mkdir(exist_ok=True)
            keys = {"description"} if name == GUARDS_FILE else {"hv_state", "tags"}
            assert keys <= set(server.labels(text + "|", name)), name


def test_the_modeline_of_jetbrains_alone_serves_too(server: LanguageServer) -> None:
    assert "alloc_policy" in server.labels(f"{modelines(SCHEMA_FILE)[1]}\ngpolicy: v1\nkind: NodeGroup\nname: x\n|")


def test_each_document_needs_a_modeline_of_its_own(server: LanguageServer) -> None:
    """A limit of the server, which docs/guides/editors.md names: this test tells when it is gone."""
    first, group = "gpolicy: v1\nkind: Cluster\nname: c\n---\n", "gpolicy: v1\nkind: NodeGroup\nname: x\n|"
    assert server.labels(HEAD + first + group) == []
    assert "alloc_policy" in server.labels(HEAD + first + HEAD + group)


def test_files_named_in_the_settings_need_no_modeline(home: Path) -> None:
    assert SCRIPT is not None
    with LanguageServer(SCRIPT, home, {"schemas": {SCHEMA_FILE: ["**/*.yaml"]}}) as server:
        second = "gpolicy: v1\nkind: Cluster\nname: c\n---\ngpolicy: v1\nkind: NodeGroup\nalloc_policy: prefered\n"
        marks = server.diagnostics(second)
        assert (5, 'Missing property "name".') in marks
        assert any(line == 7 and message.startswith("Value is not accepted") for line, message in marks)
        assert "alloc_policy" in server.labels(second.replace("alloc_policy: prefered", "name: x\n|"))


def test_a_schema_of_one_kind_serves_as_well(server: LanguageServer, home: Path) -> None:
    (home / "node-group.json").write_text(json.dumps(schemas()["node-group.json"]), encoding="utf-8")
    line = "# yaml-language-server: $schema=node-group.json\n"
    assert "kind" in server.labels(line + "gpolicy: v1\n|")
    assert "preferred" in server.labels(line + "gpolicy: v1\nkind: NodeGroup\nalloc_policy: |")


def section_named(name: str) -> Section:
    return next(section for section in SECTIONS if str(section) == name)


def test_a_flow_mapping_is_completed_once_a_letter_stands_there(server: LanguageServer) -> None:
    text: Any = HEAD + "gpolicy: v1\nkind: Cluster\nname: c\nipolicy:\n  std: {memory-size: 1G, c|}\n"
    assert "cpu-count" in server.labels(text)
