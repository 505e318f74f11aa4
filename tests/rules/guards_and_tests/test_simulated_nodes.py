"""Names of simulated nodes that are not those of the policy, and those that are meant to be others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.run_rules import check

HEAD = "gpolicy: v1\nkind: "
GROUP = f'{HEAD}NodeGroup\nname: gold\nnodes: ["web[1-4].a.example.org", db.a.example.org]\n---\n'


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("web2.b.example.org", "web2.a.example.org"),
        ("web2", "web2.a.example.org"),
        ("bd.a.example.org", "db.a.example.org"),
        ("web5.a.example.org", None),  # one more node
        ("web1.b.example.org", None),  # web1 is there
        ("other.b.example.org", None),
        ('web2.b.example.org, tags: ["rack:a"]', None),  # the test says what it has
    ],
)
def test_a_simulated_node_with_almost_the_name_of_another(name: str, meant: str | None, tmp_path: Path) -> None:
    nodes = f"[{{name: web1.a.example.org}}, {{name: {name}}}]"
    simulated = f"{{simulate: {{memory: 8G, cpus: 4, disk: 1T, nodes: {nodes}}}}}"
    text = f"{GROUP}{HEAD}Test\ntests:\n  - name: t\n    'on': {simulated}\n"
    findings = check(f"{text}    redundancy: {{}}\n    expect: {{survives: true}}\n", tmp_path)
    assert [item.hint for item in findings if item.code == "GP825"] == ([f"Did you mean `{meant}`?"] if meant else [])
