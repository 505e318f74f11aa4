"""The text grammars, without Ganeti: escapes, refusals, and a shell that gives every argument back."""

from __future__ import annotations

import os
import subprocess

import pytest
from hypothesis import given, strategies as st

from gpolicy.ganeti.commands import (
    bounds,
    escape,
    ident_key_values,
    key_values,
    seconds,
    shell_line,
    uid_ranges,
)

any_argument = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
nasty_argument = st.text(alphabet="'\"\\\n\t $`!*?~#&;|<>(){}[]=%^-\ra\udcff", max_size=20)


def test_commas_and_backslashes_are_escaped() -> None:
    assert escape("a,b\\c") == "a\\,b\\\\c"


def test_an_ident_stands_in_front_of_its_values() -> None:
    assert ident_key_values("drbd", {"metavg": "a:b", "protocol": "C"}) == "drbd:metavg=a:b,protocol=C"


def test_bounds_hold_every_pair() -> None:
    pair = {"min": {"cpu-count": 1}, "max": {"cpu-count": 2}}
    assert bounds([pair, pair]) == "min:cpu-count=1/max:cpu-count=2//min:cpu-count=1/max:cpu-count=2"


def test_one_user_id_is_written_as_one() -> None:
    assert uid_ranges([(5, 5), (10, 20)]) == "5,10-20"


@pytest.mark.parametrize("ident", ["", "a:b", "no_drbd", "-drbd"])
def test_idents_that_ganeti_reads_otherwise_are_refused(ident: str) -> None:
    with pytest.raises(ValueError, match="in front of"):
        ident_key_values(ident, {})


@pytest.mark.parametrize("key", ["", "a=b"])
def test_keys_that_end_early_are_refused(key: str) -> None:
    with pytest.raises(ValueError, match="cannot be a key"):
        key_values({key: "x"})


@given(st.integers(1, 10**13))
def test_seconds_come_back_as_the_same_microseconds(microseconds: int) -> None:
    assert int(1e6 * float(seconds(microseconds))) == microseconds


def through_a_shell(arguments: list[str]) -> list[str]:
    line = shell_line(["printf", "%s\\0", *arguments])
    answer = subprocess.run(["sh"], input=os.fsencode(line), capture_output=True, check=True)
    assert not answer.stderr
    return [os.fsdecode(word) for word in answer.stdout.split(b"\0")[:-1]]


@given(st.lists(any_argument | nasty_argument, min_size=1, max_size=10))
def test_a_real_shell_gives_every_argument_back(arguments: list[str]) -> None:
    assert through_a_shell(arguments) == arguments


@pytest.mark.parametrize(
    "argument", ["", "a\nb", "\n", "it's", "$(exit 1)", "~", "a=b", "-n", "é", "\udcff\udc80", "\\", "!!"]
)
def test_known_traps_of_shells_do_no_harm(argument: str) -> None:
    assert through_a_shell([argument]) == [argument]


def test_the_first_word_is_never_an_assignment_or_a_keyword() -> None:
    assert shell_line(["gnt-cluster", "modify"]) == "gnt-cluster modify"
    assert shell_line(["A=b", "c"]) == "'A=b' c"
    assert shell_line(["if"]) == "'if'"


def test_arguments_that_no_process_can_get_are_refused() -> None:
    with pytest.raises(ValueError, match="NUL"):
        shell_line(["a", "\0"])
    with pytest.raises(ValueError, match="no command"):
        shell_line([])
