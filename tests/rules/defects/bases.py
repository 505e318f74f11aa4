"""The good policies: the worked examples, the one that `gpolicy init` writes, and the one of the page on tests."""

from __future__ import annotations

import re
from pathlib import Path

from gpolicy.writing.documents import starter_files
from tests.rules.defects.seeding import Base

TOP = Path(__file__).resolve().parents[3]
SLOW = "resource-model/tests.yaml"  # `check` takes ten times as long to run these tests as for all that it does else


def good_policies() -> tuple[Base, ...]:
    """Return all policies that mistakes are put into."""
    policies = TOP / "policies"
    examples = [
        Base(directory.name, _texts(directory)) for directory in sorted((policies / "design-documents").iterdir())
    ]
    fleet = _texts(policies / "fleet")
    members = [
        Base(
            f"fleet/{name}", {file: text for file, text in fleet.items() if Path(file).parts[0] in (name, "base.yaml")}
        )
        for name in ("amsterdam", "berlin")
    ]
    singles = [Base(name, _texts(policies / name)) for name in ("large-cluster", "two-groups")]
    starter = {file: text for file, text in starter_files("first.example.org").items() if file.endswith(".yaml")}
    return (*examples, *members, *singles, Base("starter", starter), Base("testing", {"policy.yaml": _page()}))


def _texts(directory: Path) -> dict[str, str]:
    return {
        file.relative_to(directory).as_posix(): file.read_text(encoding="utf-8")
        for file in sorted(directory.rglob("*.yaml"))
        if not file.as_posix().endswith(SLOW)
    }


def _page() -> str:
    """Return the policy and the tests that docs/guides/testing.md shows, as one file."""
    text = (TOP / "docs" / "guides" / "testing.md").read_text(encoding="utf-8")
    return "---\n".join(re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
