from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from gpolicy.adopt.adopting import adopt_cluster
from gpolicy.cluster.sources import read_state
from gpolicy.formatting.formatting import format_text
from gpolicy.suggest.suggesting import suggest
from gpolicy.suggest.suggestion import SuggestRequest
from gpolicy.writing.documents import starter_files
from tests.formatting.test_format_laws import comments, roots
from tests.formatting.written_policies import shown

ROOT = Path(__file__).resolve().parents[2]
POLICIES = sorted((ROOT / "policies").rglob("*.yaml"))
CLUSTERS = sorted((ROOT / "tests/data/clusters").glob("*/config.data"))
HEAD = "gpolicy: v1\nkind: NodeGroup\n"


def formatted(text: str) -> str:
    made = format_text(text, "x.yaml")
    assert made.reason == ""
    assert format_text(made.text, "x.yaml").text == made.text
    return made.text


def body(text: str) -> str:
    """Return the form of a document's text behind its first lines."""
    whole = formatted(HEAD + textwrap.dedent(text))
    assert whole.startswith(HEAD)
    return whole.removeprefix(HEAD)


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_example_is_formatted(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert formatted(text) == text


def test_the_output_of_init_is_formatted() -> None:
    files = {name: text for name, text in starter_files("c.example.org").items() if name.endswith(".yaml")}
    assert {name: formatted(text) for name, text in files.items()} == files


def test_the_output_of_suggest_is_formatted() -> None:
    state = read_state(f"snapshot:{ROOT / 'policies/two-groups.snapshot.json'}")
    report = suggest(state, SuggestRequest())
    assert report.groups
    for made in report.groups:
        assert formatted(made.document) == made.document


@pytest.mark.parametrize("path", CLUSTERS, ids=lambda path: path.parent.name)
def test_the_output_of_adopt_is_formatted(path: Path) -> None:
    files = {
        name: text for name, text in adopt_cluster(read_state(f"config:{path}")).files.items() if name.endswith(".yaml")
    }
    assert len(files) > 1
    assert {name: formatted(text) for name, text in files.items()} == files


def test_the_order_of_keys_with_their_comments() -> None:
    text = """\
        tags: [a]
        # about the policy
        ipolicy:
            # about the ratio
            vcpu-ratio: 4 # and why
            minmax: inherit
            # at the end
        unknown: 1

        # where
        nodes: [b]
        """
    assert body(text) == textwrap.dedent("""\

        # where
        nodes: [b]
        # about the policy
        ipolicy:
          minmax: inherit
          # about the ratio
          vcpu-ratio: 4  # and why
          # at the end
        tags: [a]
        unknown: 1
        """)


def test_the_top_of_a_document_stays_at_the_top() -> None:
    text = (
        "# yaml-language-server: $schema=x\n# What it is.\n\n# about the name\nname: b\nkind: NodeGroup\ngpolicy: v1\n"
    )
    assert formatted(text) == (
        "# yaml-language-server: $schema=x\n# What it is.\ngpolicy: v1\nkind: NodeGroup\n\n# about the name\nname: b\n"
    )


def test_empty_lines_at_the_beginning_of_a_part_stay() -> None:
    assert formatted("# top\n\nkind: X\n\ngpolicy: v1\nname: z\n") == "# top\n\ngpolicy: v1\nkind: X\nname: z\n"
    assert formatted("---\n\nkind: X\ngpolicy: v1\n") == "gpolicy: v1\nkind: X\n"
    text = "ipolicy:\n\n  vcpu-ratio: 4\n  minmax: inherit\n"
    assert body(text) == "ipolicy:\n  minmax: inherit\n  vcpu-ratio: 4\n"


def test_a_list_of_mappings() -> None:
    text = """\
        ipolicy:
          minmax:
          -   max: {spindle-use: 1, memory-size: 2G}
              # named late
              name: big
          # the next
          - name: "small"
        """
    assert body(text) == textwrap.dedent("""\
        ipolicy:
          minmax:
            # named late
            - name: big
              max: {memory-size: 2G, spindle-use: 1}
            # the next
            - name: small
        """)


def test_brackets_over_several_lines_are_joined_if_there_is_no_comment() -> None:
    assert body("nodes: [\n  a,\n  b,\n]  # c\n") == "nodes: [a, b]  # c\n"
    assert body("nodes: [\n  a,  # first\n  # then\n  b,\n  # end\n]  # c\n") == textwrap.dedent("""\
        nodes:  # c
          - a  # first
          # then
          - b
          # end
        """)


def test_a_long_line_becomes_a_block_unless_it_has_a_suppression() -> None:
    nodes = ", ".join(f"node{number}.example.org" for number in range(9))
    assert body(f"nodes: [{nodes}]\n").splitlines()[:2] == ["nodes:", "  - node0.example.org"]
    kept = f"nodes: [{nodes}]  # gpolicy: ignore[GP201] they are all there\n"
    assert body(kept) == kept


@pytest.mark.parametrize(
    ("written", "form"),
    [
        ("'gold'", "gold"),
        ('"3.0"', '"3.0"'),
        ("'3.0'", '"3.0"'),
        ("'a b'", '"a b"'),
        ("a b", "a b"),
        ('"node*"', '"node*"'),
        ("node*", "node*"),
        ("on", '"on"'),
        ("'it''s'", '"it\'s"'),
        ("'a\\b'", "'a\\b'"),
        ('"\\u00e9"', '"\\u00e9"'),
        ("1024", "1024"),
        ("1T", "1T"),
        ("0o17", "0o17"),
        ("4.0", "4.0"),
        ("true", "true"),
        ("~", "~"),
        ("2026-12-31", "2026-12-31"),
    ],
)
def test_scalars(written: str, form: str) -> None:
    assert body(f"description:   {written}  \n") == f"description: {form}\n"


def test_text_of_several_lines_is_kept() -> None:
    text = "description: |  # c\n     one\n       two\n\nname: >-\n  a\n  b\n"
    assert body(text) == "\nname: >-\n  a\n  b\ndescription: |  # c\n  one\n    two\n"
    assert body('description: "a\n\n    b"\n') == 'description: "a\n\n  b"\n'


def test_aligned_comments_keep_their_column() -> None:
    text = "name: a              # one\nnodes:   [b]         # two\n"
    assert body(text) == "name: a              # one\nnodes: [b]           # two\n"


def test_a_comment_that_continues_on_the_next_lines() -> None:
    text = "tags: [a]         # one\n                  # two\nnodes: [b]\n"
    assert body(text) == "nodes: [b]\ntags: [a]         # one\n                  # two\n"
    not_so = "tags:  # one\n       # of the item\n       - a\n"
    assert body(not_so) == "tags:  # one\n  # of the item\n  - a\n"


def test_a_dash_in_the_second_line_of_a_comment_is_not_an_item() -> None:
    text = "nodes:\n  - a     # one\n          # and - two\n  -       # three\n    - b\n"
    assert body(text) == text


def test_the_example_of_the_readme_is_formatted() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8").split("```yaml\n")[2].split("```")[0]
    assert formatted(text) == text


def test_markers_blank_lines_and_line_ends() -> None:
    text = "\ufeff---\r\n\r\ngpolicy: v1  \r\n\r\n\r\nkind: X\r\n...\r\n# between\r\n---\r\n\r\ngpolicy: v1\r\n\r\n"
    assert formatted(text) == "gpolicy: v1\n\nkind: X\n# between\n---\ngpolicy: v1\n"


def test_a_file_of_comments_only() -> None:
    assert formatted("\n# a\n\n\n  # b\n") == "# a\n\n# b\n"
    assert formatted("") == ""


def test_documents_with_nothing_in_them_are_dropped_and_their_comments_are_kept() -> None:
    head = "gpolicy: v1\nkind: X\n"
    assert formatted(f"{head}---\n") == head
    assert formatted(f"---\n# a\n---\n{head}") == f"# a\n{head}"
    assert formatted(f"{head}---\n# a\n---\n{head}---\n# b\n") == f"{head}# a\n---\n{head}# b\n"
    assert formatted("---\n# a\n---\n") == "# a\n"


@pytest.mark.parametrize("value", ["a b\n  c d", "|\n  a b\n  c d", '"a\n  b"'])
def test_a_comment_behind_the_key_of_a_long_text_moves_above_it(value: str) -> None:
    assert body(f"description: # why\n  {value}\n") == f"# why\ndescription: {value}\n"


def test_the_order_of_keys_comes_from_the_generated_schema() -> None:
    program = (
        "import sys; from gpolicy.formatting.formatting import format_text;"
        "print(format_text('kind: Cluster\\ngpolicy: v1\\n', 'f').text, 'scripts.schemas.documents' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "gpolicy: v1\nkind: Cluster\n False\n"


def test_anchors_are_kept_where_they_still_come_first() -> None:
    text = "nodes: &all [a]\ntags: *all\n"
    assert body(text) == text


_WORDS = [
    "- ",
    "  ",
    "\n",
    ": ",
    "#",
    "# x",
    "'",
    '"',
    "[",
    "]",
    "{",
    "}",
    ",",
    "&a ",
    "*a",
    "|",
    ">",
    "---\n",
    "?",
    "\t",
]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(POLICIES[0].read_text(encoding="utf-8"), [(0, 0, "---\n"), (0, 0, "---\n")])
@given(
    st.sampled_from([path.read_text(encoding="utf-8") for path in POLICIES]),
    st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 30), st.sampled_from(_WORDS)), min_size=1, max_size=4),
)
def test_damaged_files_are_formatted_correctly_or_unchanged(text: str, damages: list[tuple[int, int, str]]) -> None:
    for place, length, word in damages:
        start = place % (len(text) + 1)
        text = text[:start] + word + text[start + length :]
    made = format_text(text, "x.yaml")
    if made.reason:
        assert made.text == text
        return
    said = [root for root in roots(text) if root is not None]  # an empty document says nothing, and goes
    assert shown(roots(made.text)) == shown(said)
    assert comments(made.text) == comments(text)
    assert format_text(made.text, "x.yaml").text == made.text
