"""Errors name their subject."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpolicy.analysis.capacity import capacity
from gpolicy.cli.terminal import in_options
from gpolicy.cluster.rapi_client import parse_address
from gpolicy.cluster.sources import read_state
from gpolicy.errors import ArgumentError, GpolicyError, RequestError, about, argument
from gpolicy.suggest.suggesting import suggest
from gpolicy.suggest.suggestion import SuggestRequest


@pytest.mark.parametrize(
    ("where", "shown"),
    [("local:", "local: gone"), ("snapshot:a.json", "snapshot:a.json: gone"), ("ssh://m:22", "ssh://m:22: gone")],
)
def test_a_source_that_ends_in_a_colon_gets_no_second_one(where: str, shown: str) -> None:
    assert about(where, "gone") == shown


def test_what_a_cluster_read_on_its_master_does_not_show_is_said_with_one_colon() -> None:
    recorded = Path(__file__).parent / "data/clusters/full/config.data"
    state = replace(read_state(f"config:{recorded}"), source="local:")
    for asked in (lambda: capacity(state), lambda: suggest(state, SuggestRequest())):
        with pytest.raises(GpolicyError, match=r"^local: not known for group default: node1, .* show no memory"):
            asked()


def test_python_reads_arguments_where_the_command_line_reads_options() -> None:
    """Texts of others, which may look like an argument, stay as they are."""
    theirs = "a group\ufdd0 {group} `group` --group"
    error = RequestError(f"which {argument('group')} of {theirs}?", hint=f"name fewer {argument('divisors')}: {theirs}")
    assert (str(error), error.hint) == (f"which group of {theirs}?", f"name fewer divisors: {theirs}")
    assert in_options(error) == (f"which --group of {theirs}?", f"name fewer --sizes: {theirs}")


def test_an_error_about_an_argument_begins_with_it() -> None:
    for text in ("fail_on cannot be 'x'", "fail_on: cannot be 'x'", "fail_on"):
        error = ArgumentError(text)
        assert str(error) == error.message == text
        assert in_options(error) == (text.replace("fail_on", "--fail-on"), None)


def test_an_error_made_of_another_keeps_its_arguments() -> None:
    with pytest.raises(RequestError) as raised:
        parse_address("rapi://user@master")
    again = GpolicyError("the same", hint=raised.value.marked_hint)
    assert again.hint == "credentials come from rapi_credentials FILE, the environment or netrc"
    assert in_options(again)[1] == "credentials come from --rapi-credentials FILE, the environment or netrc"
