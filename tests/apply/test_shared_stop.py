"""Requests to stop in a process and in copies of it."""

from __future__ import annotations

import os

import pytest

from gpolicy.apply.jobs import SharedStopRequests


def _in_a_copy(stop: SharedStopRequests, asked: int = 0) -> tuple[bool, bool]:
    """Return what a copy of this process says of stopping, after it was asked itself so many times."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        for _ in range(asked):
            stop.ask()
        os.write(write, bytes([stop.after_step, stop.at_once]))
        os._exit(0)
    os.waitpid(child, 0)
    after_step, at_once = os.read(read, 2)
    os.close(read)
    os.close(write)
    return bool(after_step), bool(at_once)


@pytest.mark.parametrize(("asked", "after_step", "at_once"), [(0, False, False), (1, True, False), (2, True, True)])
def test_copies_stop_as_the_original_does(asked: int, *, after_step: bool, at_once: bool) -> None:
    stop = SharedStopRequests()
    for _ in range(asked):
        stop.ask()
    assert (stop.after_step, stop.at_once) == (after_step, at_once)
    assert _in_a_copy(stop) == (after_step, at_once)


@pytest.mark.parametrize("asked", [1, 3])
def test_what_a_copy_is_asked_counts_once_and_for_itself(asked: int) -> None:
    stop = SharedStopRequests()
    assert _in_a_copy(stop, asked) == (True, False)
    assert (stop.after_step, stop.at_once) == (False, False)


def test_more_requests_than_a_byte_holds_are_no_error() -> None:
    stop = SharedStopRequests()
    for _ in range(300):
        stop.ask()
    assert stop.at_once


def test_a_copy_without_its_original_ends_after_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    stop = SharedStopRequests()
    original = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: original + 1)
    assert stop.after_step  # the parent of this process is another one
    monkeypatch.setattr(os, "getppid", lambda: original)
    assert not stop.after_step
