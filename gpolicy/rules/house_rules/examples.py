"""Parts of the examples of rules about house rules."""

from __future__ import annotations

from typing import Final

from gpolicy.rules.examples import GROUP

RATIO: Final = "properties: {ipolicy.vcpu-ratio: {maximum: 1}}"
GOLD: Final = f"{GROUP}ipolicy: {{vcpu-ratio: 1}}\n"


def rule(schema: str, *, name: str = "dedicated-cpus", about: str = "kind: NodeGroup") -> str:
    """Return a Rule document in YAML, behind another document."""
    return (
        f"---\ngpolicy: v1\nkind: Rule\nname: {name}\nfor: {{{about}}}\nschema: {{{schema}}}\n"
        "message: gold is sold with dedicated CPUs\n"
    )


GOOD: Final = GOLD + rule(RATIO)
