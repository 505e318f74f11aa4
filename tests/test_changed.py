"""`scripts/test --changed` runs what a change can break."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.changed import ALWAYS, RUFF, import_graph, reached_tests

Reached = Callable[..., set[str]]


@pytest.fixture(scope="module")
def reached() -> Reached:
    if not RUFF.exists():
        pytest.skip("ruff reads the imports: scripts/venv dev installs it")
    graph = import_graph()
    return lambda *changed: set(reached_tests(changed, graph))


def test_a_module_reaches_its_room_and_whatever_imports_it(reached: Reached) -> None:
    found = reached("gpolicy/plan/diff.py")
    assert {"tests/plan/test_diff.py", "tests/plan/test_steps.py", "tests/impact/test_limits.py", *ALWAYS} <= found
    assert not any(test.startswith(("tests/editors/", "tests/fleet/")) for test in found)


def test_a_leaf_reaches_its_room_alone(reached: Reached) -> None:
    rooms = {test.split("/")[1] for test in reached("gpolicy/rules/tags/htools.py")}
    assert rooms == {"rules", *(name.removeprefix("tests/") for name in ALWAYS)}


def test_a_verb_is_reached_through_the_command_line(reached: Reached) -> None:
    assert "tests/cli/test_exit_codes.py" in reached("gpolicy/cli/verbs/plan.py")


def test_what_only_tests_read_reaches_the_tests_that_name_it(reached: Reached) -> None:
    assert "tests/test_run_pages.py" in reached("docs/tutorial.md")
    assert "tests/cluster/test_config_data.py" in reached("tests/data/clusters/full/config.data")


def test_a_source_of_the_engine_reaches_whoever_loads_it(reached: Reached) -> None:
    source = "hash"  # apart from its folder: else this file would name the source
    found = reached(f"gpolicy/allocator/native/source/{source}.c")
    assert {"tests/allocator/test_native.py", "tests/analysis/test_placing.py"} <= found


def test_nothing_reaches_only_what_always_runs(reached: Reached) -> None:
    assert reached() == set(ALWAYS)
