"""The policies of a directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpolicy.policy.files import policy_roots

PLAIN = "gpolicy: v1\nkind: Cluster\nname: c.example.org\n"


def tree(directory: Path, **texts: str) -> list[str]:
    """Return the names of the policies among directories that hold one file each."""
    for name, text in texts.items():
        (directory / name).mkdir()
        (directory / name / "policy.yaml").write_text(text, encoding="utf-8")
    return [root.name for root in policy_roots(directory)]


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        '"gpolicy": v1\n"kind": Cluster\nname: c.example.org\n',
        "{gpolicy: v1, kind: 'Cluster', name: c.example.org}\n",
        "gpolicy: v1\nkind: NodeGroup\nname: g\n---\nkind:\n  Cluster  # of two\ngpolicy: v1\n",
        f"{PLAIN}nodes: [\n",
    ],
)
def test_directories_with_a_cluster_each_are_policies_however_it_is_written(text: str, tmp_path: Path) -> None:
    assert tree(tmp_path, one=PLAIN, two=text) == ["one", "two"]


@pytest.mark.parametrize(
    "text",
    [
        f"{PLAIN}template: true\n",
        f"{PLAIN}'template': TRUE  # for all\n",
        "gpolicy: v1\nkind: NodeGroup\nname: g\ncomment: |\n  text\n\n  kind: Cluster\n",
        "gpolicy: v1\nkind: NodeGroup\nname: Cluster\n# kind: Cluster\n",
        "- kind: Cluster\n",
    ],
)
def test_other_documents_make_no_policy(text: str, tmp_path: Path) -> None:
    assert tree(tmp_path, one=PLAIN, two=text) == [tmp_path.name]


def test_a_cluster_inside_another_policy_is_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(PLAIN, encoding="utf-8")
    assert tree(tmp_path, one=PLAIN, two=PLAIN) == [tmp_path.name]
