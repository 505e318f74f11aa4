"""Without the YAML server: what it answered when it was there still fits the schemas (`record.py` asks it anew)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpolicy.policy.conformance import whole_schema
from tests.editors.editor_cases import CASES

RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "recorded.json").read_text(encoding="utf-8"))
SNIPPETS_OF_THE_SERVER = ("object(", "gpolicy: a document")


def words(value: Any) -> set[str]:
    """Return every key, word, label and const that a schema offers."""
    found: set[str] = set()
    if isinstance(value, dict):
        found |= set(value.get("properties", ()))
        found |= {str(word) for word in value.get("enum", ())}
        found |= {str(value[key]) for key in ("const", "label") if key in value}
        found |= {"true", "false"} if value.get("type") == "boolean" else set()
        for below in value.values():
            found |= words(below)
    elif isinstance(value, list):
        for below in value:
            found |= words(below)
    return found


def enumerations(value: Any) -> list[set[str]]:
    """Return every list of words that a schema lets choose from."""
    below = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    own = (
        [{str(word) for word in value["enum"]}]
        if isinstance(value, dict) and isinstance(value.get("enum"), list)
        else []
    )
    return own + [found for each in below for found in enumerations(each)]


def test_every_case_is_recorded() -> None:
    assert set(RECORDED["answers"]) == set(CASES), "record them: python -m tests.editors.record"
    assert RECORDED["server"].startswith("yaml-language-server ")


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.ask == "complete"])
def test_offered_completions_are_still_in_the_schema(name: str) -> None:
    offered = [word for word in RECORDED["answers"][name] if not word.startswith(SNIPPETS_OF_THE_SERVER)]
    assert offered
    known = words(whole_schema())
    names = {"pair", "spec", "simulatedGroup", "existingInstance"}  # definitions, which the server names as well
    assert set(offered) - names <= known


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.ask == "complete"])
def test_a_word_that_came_to_a_list_is_recorded(name: str) -> None:
    offered = set(RECORDED["answers"][name])
    for choice in enumerations(whole_schema()):
        if len(choice & offered) > 0.8 * len(choice) > 4:  # a short list may share its words with another
            assert choice <= offered, "record the answers anew: python -m tests.editors.record"


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.ask == "marks"])
def test_marks_are_on_the_line_of_the_error(name: str) -> None:
    marks = RECORDED["answers"][name]
    lines = CASES[name].text.count("\n") + 2
    assert marks
    assert all(1 <= line <= lines + 1 for line, _ in marks)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.ask == "hover"])
def test_hover_texts_are_in_the_schema(name: str) -> None:
    text = json.dumps(whole_schema(), ensure_ascii=False)
    sentence = RECORDED["answers"][name].split("\n\n")[1].split(". ")[0]
    assert json.dumps(sentence, ensure_ascii=False)[1:-1] in text
