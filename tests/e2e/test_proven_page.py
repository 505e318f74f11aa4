"""docs/how-we-know/proven.md says what the live tests recorded, and nothing is missing from it without a reason."""

from __future__ import annotations

import pytest

from tests.e2e.parameter_values import concrete, levels
from tests.e2e.proven import PAGE, STEPS, page, read_proofs

RELEASES = ("3.0", "3.1")


def test_the_page_is_what_was_recorded() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(read_proofs())


@pytest.mark.parametrize("release", RELEASES)
def test_every_parameter_at_every_level_was_shown_or_has_a_reason(release: str) -> None:
    proofs = read_proofs()[release]
    assert sorted(proofs) == ["local", "rapi"]
    for item, level in levels(release):
        name = ".".join(concrete(item.path))
        for proof in proofs.values():
            steps = proof["shown"].get(level, {}).get(name, [])
            assert steps == list(STEPS) or proof["not_shown"][level][name], (name, level)


@pytest.mark.parametrize("release", RELEASES)
def test_what_one_way_does_not_show_the_other_does_or_the_cluster_cannot(release: str) -> None:
    """No parameter is without any proof because both ways say that the other is the one."""
    by_name = {
        name: [name in proof["shown"].get(level, {}) for proof in read_proofs()[release].values()]
        for item, level in levels(release)
        if (name := ".".join(concrete(item.path)))
    }
    never = {name for name, shown in by_name.items() if not any(shown)}
    assert never == {"drbd_usermode_helper", "instance_communication_network", "volume_group_name"}
