"""A search ends after some time, after some work, with Ctrl-C, or never."""

from __future__ import annotations

import pytest

from gpolicy.progress import Stop, StoppedError, after, after_work, until_stopped


def test_work_is_counted_and_a_share_of_it_is_over_earlier() -> None:
    stop = after_work(10)
    stop.spend(5)
    assert not stop.is_over(share=0.5)
    stop.spend(5)
    assert stop.is_over(share=0.5)
    with pytest.raises(StoppedError):
        stop.spend(1)


def test_the_clock_is_read_only_where_there_is_a_limit_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    late, none = after(60), Stop()
    assert not late.is_over()
    monkeypatch.setattr("gpolicy.progress.time.monotonic", lambda: float("inf"))
    assert late.is_over()
    assert not none.is_over()
    assert not after_work(1).is_over()


def test_what_has_ended_stays_over() -> None:
    stop = Stop()
    stop.ended = True
    with pytest.raises(StoppedError):
        stop.spend()


@pytest.mark.parametrize("error", [StoppedError, KeyboardInterrupt])
def test_a_search_that_is_stopped_goes_on_behind_its_context(error: type[BaseException]) -> None:
    done = []
    with until_stopped():
        done.append(1)
        raise error
    assert done == [1]
