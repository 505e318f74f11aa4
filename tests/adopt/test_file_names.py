"""File names for groups with any name."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpolicy.adopt.file_names import file_names

_names = st.lists(st.text(max_size=20) | st.sampled_from(["a", "A", "a-2", "A-2", ".a", "-a", "con", "x.yaml"]))


def test_a_plain_name_stays() -> None:
    assert file_names(["default", "gold-2", "a.b_c"]) == {"default": "default", "gold-2": "gold-2", "a.b_c": "a.b_c"}


def test_other_names_become_plain() -> None:
    names = ["../etc", ".hidden", "-rf", "a/b", "\u00fc", "con", "x.yaml", "", "g" * 300]
    found = file_names(names)
    assert [found[name] for name in names] == [
        "etc", "hidden", "rf", "a-b", "group-2", "group-con", "x", "group", "g" * 100,
    ]  # fmt: skip


def test_file_names_differ_in_more_than_case() -> None:
    assert sorted(file_names(["Gold", "gold", "GOLD"]).values()) == ["GOLD", "Gold-2", "gold-3"]


@given(_names)
def test_file_names_are_unique_visible_and_in_the_directory(names: list[str]) -> None:
    result = file_names(names)
    assert result.keys() == set(names)
    assert len({file.lower() for file in result.values()}) == len(result)
    for file in result.values():
        assert file.isascii()
        assert file
        assert file[0] not in ".-"
        assert not set(file) & set("/\\: \n\0")
