"""docs/reference/ganeti-releases.md names every difference between 3.0 and 3.1 that the tables hold."""

from __future__ import annotations

from pathlib import Path

from gpolicy.ganeti.parameters import PARAMETERS
from gpolicy.ganeti.releases import release_key
from gpolicy.ganeti.tables.hypervisors import CHOICES_SINCE, CHOICES_UNTIL

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "ganeti-releases.md"


def differences() -> set[str]:
    """Return the parameters that are not the same in both."""
    moved = {
        ".".join(item.path)
        for item in PARAMETERS
        for release in (item.since, item.until, item.new_default[0] if item.new_default else "")
        if release and release_key("3.0") < release_key(release) <= release_key("3.1")
    }
    words = {f"hvparams.{hypervisor}.{name}" for hypervisor, name, _ in (*CHOICES_SINCE, *CHOICES_UNTIL)}
    return moved | words


def test_the_page_names_them_and_no_others() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## Parameters")[2].partition("## ")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    named = {name.strip(" `") for cell in cells for name in cell.split(",")}
    assert named == differences()
