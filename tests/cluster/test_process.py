"""Programs that are run to their end, and pagers."""

from __future__ import annotations

import signal
import sys

import pytest

from gpolicy.cluster.process import run, show_in_pager
from gpolicy.errors import UnreachableError


def _run(code: str, *, seconds: float = 20, limit: int = 100) -> tuple[int, bytes, str]:
    found = run([sys.executable, "-S", "-c", code], environ={}, seconds=seconds, limit=limit)
    return found.code, found.stdout, found.stderr


def test_both_outputs_and_the_exit_code() -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    assert _run(code) == (3, b"out\n", "err\n")


def test_a_program_that_says_nothing_has_its_time() -> None:
    assert _run("import time; time.sleep(0.2); print(1)", seconds=5) == (0, b"1\n", "")
    with pytest.raises(UnreachableError, match="did not end within 0 seconds"):
        _run("import time; time.sleep(20)", seconds=0.3)


def test_a_program_that_keeps_talking_is_ended_as_well() -> None:
    with pytest.raises(UnreachableError, match="did not end within 0 seconds"):
        _run("while True: print(1, flush=True)", seconds=0.3, limit=10**9)


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_more_than_the_limit_is_refused(stream: str) -> None:
    assert _run(f"import sys; sys.{stream}.write('x' * 100)")[0] == 0
    with pytest.raises(UnreachableError, match="prints more than"):
        _run(f"import sys; sys.{stream}.write('x' * 101)")


def test_after_a_pager_ctrl_c_is_for_us_again() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job would ignore it
    try:
        show_in_pager(["true"], b"text", {})
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        with pytest.raises(UnreachableError, match="no-such-pager: cannot be run"):
            show_in_pager(["no-such-pager"], b"text", {})
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
