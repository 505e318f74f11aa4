from __future__ import annotations

from gpolicy.reference.blocks import Heading, PageTable
from scripts.reference.markdown import Link, anchor, markdown


def test_what_is_no_markup_is_escaped() -> None:
    assert markdown(["a *b* [c](d) <e> `<f>_*`"]) == "a \\*b\\* \\[c\\](d) \\<e\\> `<f>_*`\n"


def test_a_bar_does_not_end_a_cell() -> None:
    table = PageTable(("key", "empty", "text"), ((Link("x", "#x"), "", "`a|<b>` or c|d"),), anchors=("key-x",))
    assert markdown([table]).splitlines() == [
        "| key | text |",
        "| --- | --- |",
        '| <a id="key-x"></a>[`x`](#x) | <code>a&#124;&lt;b&gt;</code> or c&#124;d |',
    ]


def test_an_anchor_is_made_as_github_makes_it() -> None:
    assert anchor("GP201 spec-overlap") == "gp201-spec-overlap"
    assert anchor("Structure: reading the files, `YAML` and schemas") == "structure-reading-the-files-yaml-and-schemas"
    assert markdown([Heading("gpolicy plan", 2)]) == "## gpolicy plan\n"
