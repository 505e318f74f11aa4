"""The pages of the reference: complete, and their examples hold."""

from __future__ import annotations

import re

import pytest

from gpolicy.checking.catalogue import CATALOGUE
from gpolicy.ganeti.parameters import PARAMETERS
from gpolicy.policy.schema_errors import shape_findings
from gpolicy.policy.yaml_reader import read_yaml
from gpolicy.reference.blocks import Heading, PageListing
from gpolicy.reference.keys import keys_of
from scripts.reference.output import definition_keys, output_schemas
from scripts.reference.pages import pages
from scripts.reference.parameters import parameter_sections

PAGES = {path.rpartition("/")[2]: text for path, text in pages().items()}


def test_every_parameter_has_its_row() -> None:
    page = PAGES["parameters.md"]
    for parameter in PARAMETERS:
        if parameter.family != "hv_state" or parameter.path[1] == "kvm":  # it is the same for each hypervisor
            assert f'<a id="{parameter.name}"></a>' in page


OF_PYTHON = {
    "AbstractContextManager",
    "Callable",
    "False",
    "FilePath",
    "Iterable",
    "Literal",
    "Mapping",
    "None",
    "Path",
}


def test_each_type_in_the_python_interface_has_a_section() -> None:
    page = PAGES["python.md"]
    own, further = page.split("## Further types")
    listings = re.findall(r"```python\n(.*?)```", own, re.DOTALL)
    code = [re.sub(r"(?m)^#.*", "", text) for text in listings]  # without the first lines of docstrings
    named = {word for text in code for word in re.findall(r"\b[A-Z][a-z]\w*", text)}
    titles = re.findall(r"(?m)^### `(?:\w+\.)?(\w+)`$", page)
    assert named - {*titles} <= OF_PYTHON | {"Sequence", "True"}
    assert {"Agree", "Carry", "PlanStage", "RolledOut", "RunResult", "Watcher"} <= {*titles}
    assert further.count("\n### ") == further.count("\nIt is in `gpolicy.")


def test_defaults_in_the_python_interface_are_python() -> None:
    listings = re.findall(r"```python\n(.*?)```", PAGES["python.md"], re.DOTALL)
    fields = {line for text in listings for line in text.splitlines()}
    assert {
        "jobs: int = 1",
        "labels: Mapping[str, str] = {}",
        "watch: Callable[[Sequence[str]], Watcher] = lambda _: Watcher()",
    } <= fields
    assert "write_texts(texts: Mapping[str, str], *policies: Policy) -> None" in fields
    assert not [line for line in fields if re.search(r"<\w|PosixPath", line)]


def test_the_examples_of_parameters_are_documents() -> None:
    """Each section has one listing with all its keys."""
    kind, found = "Cluster", 0
    for block in parameter_sections():
        if isinstance(block, Heading):
            kind = "NodeGroup" if block.title == "alloc_policy" else "Cluster"
        if isinstance(block, PageListing):
            (document,) = read_yaml(f"gpolicy: v1\nkind: {kind}\nname: x\n{block.text}", "example").documents
            assert not shape_findings(document), block.text
            found += 1
    assert found == 17


def test_every_rule_has_its_section() -> None:
    for info in CATALOGUE:
        assert f"### {info.code} {info.name}\n" in PAGES["rules.md"]


@pytest.mark.parametrize("name", output_schemas())
def test_every_key_of_an_output_has_a_meaning(name: str) -> None:
    schema = output_schemas()[name]
    keys = [*keys_of(name, schema, expand=False)]
    for definition in schema.get("definitions", {}):
        keys += definition_keys(name, schema, definition)
    assert [key.name for key in keys if not key.text] == []


@pytest.mark.parametrize("name", PAGES)
def test_no_cell_of_a_table_is_lost(name: str) -> None:
    """A row with more or fewer cells than its head would lose some, or move them."""
    columns = 0
    for line in PAGES[name].splitlines():
        cells = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("| ") else 0
        assert not columns or not cells or cells == columns, line
        columns = cells
