"""One address, one runner."""

from __future__ import annotations

import pytest

from gpolicy.apply.job_runners import CommandRunner, RapiRunner, open_runner
from gpolicy.apply.jobs import Patience, Runner, StopRequests
from gpolicy.cluster.sources import SourceOptions
from gpolicy.errors import RequestError


def _open(destination: str) -> Runner:
    options = SourceOptions(environ={"PATH": "/usr/bin", "HOME": "/nonexistent"}, rapi_insecure=True)
    return open_runner(destination, options, Patience(), StopRequests())


@pytest.mark.parametrize(
    ("destination", "kind"),
    [("local:", CommandRunner), ("ssh://master", CommandRunner), ("rapi://host:81", RapiRunner)],
)
def test_each_scheme_has_its_runner(destination: str, kind: type[Runner]) -> None:
    runner = _open(destination)
    assert type(runner) is kind
    assert runner.destination == destination


@pytest.mark.parametrize("destination", ["local:x", "ssh:host", "rapi:host", "config:file", "", "tool:hush@host"])
def test_nothing_else_is_a_destination(destination: str) -> None:
    with pytest.raises(RequestError, match="a plan cannot be applied to") as caught:
        _open(destination)
    assert "hush" not in f"{caught.value.message} {caught.value.hint}"


def test_a_wrong_scheme_is_shown_in_part() -> None:
    with pytest.raises(RequestError) as caught:
        _open("x" * 30 + ":rest")
    assert caught.value.message == f"a plan cannot be applied to '{'x' * 20}'"
