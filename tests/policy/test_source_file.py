"""Places in the text of a file: offsets, lines and comments."""

from __future__ import annotations

from hypothesis import given, strategies as st

from gpolicy.policy.source_file import SourceFile
from gpolicy.policy.yaml_reader import read_yaml
from tests.processor_time import takes


@given(st.text(alphabet="ab\r\n\x85\u2028é"))
def test_offsets_and_places_are_inverse(text: str) -> None:
    file = SourceFile("f", text)
    for place in range(len(text) + 1):
        if text[max(place - 1, 0) : place + 1] != "\r\n":
            assert file.offset(*file.line_and_column(place)) == place
    assert "".join(text[a:b] for a, b in zip(file.starts, file.starts[1:], strict=False)) == text


def test_lines() -> None:
    file = SourceFile("f", "a\r\nb\n")
    assert [file.line(number) for number in (0, 1, 2, 3, 4)] == ["", "a", "b", "", ""]
    assert [SourceFile("f", text).line_count for text in ("", "a", "a\n", "a\n\nb")] == [1, 1, 2, 3]
    assert SourceFile("f", "a\nb").line_and_column(3) == (2, 2)
    assert SourceFile("f", "a\nb\n").line_and_column(4) == (3, 1)
    assert SourceFile("f", "").line_and_column(0) == (1, 1)


def test_the_document_of_a_line_begins_at_its_mark() -> None:
    file = read_yaml("# above\na: 1\n--- # mark\n# about b\nb: 1\n...\n---\n{c: 1}\n# behind c\n--- \nd: {\n", "f")
    found = [file.document_at(line) for line in range(1, 12)]
    assert [list(document.root) for document in found if document] == [
        *[["a"]] * 2, *[["b"]] * 4, *[["c"]] * 3, *[[]] * 2
    ]  # fmt: skip
    assert SourceFile("f", "").document_at(1) is None


def test_comments_are_found_in_linear_time() -> None:
    def seconds(count: int) -> float:
        text = "a:\n" + "".join(f"  - {{b: 'x # y', c: {number}}} # d\n" for number in range(count))
        files = [read_yaml(text, "f") for _ in range(3)]
        return takes(lambda: len(files.pop().comments))

    assert seconds(8_000) < 16 * 5 * seconds(500)
