"""GP139 finds the values with which Ganeti 3.1 makes no command of QEMU, and no others: asked of Ganeti's own code."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from gpolicy.findings import told
from gpolicy.ganeti.parameters import parameter_at
from gpolicy.policy.loading import load_policy
from tests.ganeti.real_ganeti import RELEASE, RefusedError, needs_ganeti, real_ganeti
from tests.mistakes import find_mistakes
from tests.rules.policy_texts import CLUSTER

pytestmark = [
    *needs_ganeti,
    pytest.mark.skipif(RELEASE != "3.1", reason="Ganeti 3.1 is not installed (tests/e2e/cluster/debian13 has it)"),
]
TODAY = date(2026, 6, 15)
DEVICES = (Path(__file__).parents[1] / "data" / "hypervisors" / "qemu-10.0-devices.txt").read_text(encoding="utf-8")
"""What `qemu-system-x86_64 -device help` of QEMU 10.0 says, less headings."""

ADDRESSES = {
    "rbd": ("pool", "rbd:{}/4e1f6f2c.rbd.disk0", ("rbd", "vm_pool", "VM2", "vm-pool", "vm.pool", "a b", "é")),
    "gluster": ("host", "gluster://{}:24007/gv0/ganeti/4e1f.gluster.disk0", ("127.0.0.1", "10.1.2.3", "[fd00::1]")),
}
"""By disk template: a parameter, the address that Ganeti makes with it, and values (names of hosts are resolved)."""


def starts(**values: str) -> bool:
    """Return whether Ganeti makes a command of QEMU."""
    try:
        real_ganeti().ask({"starts": values, "devices": DEVICES})
    except RefusedError as refused:
        if not str(refused).startswith("HypervisorError"):
            raise
        return False
    return True


def is_found(text: str, directory: Path) -> bool:
    (directory / "policy.yaml").write_text(f'{CLUSTER}ganeti_version: "3.1"\n{text}', encoding="utf-8")
    return any(item.code == "GP139" for item in told(find_mistakes(load_policy(directory), today=TODAY)))


@pytest.mark.parametrize("name", ["disk_type", "cdrom_disk_type"])
def test_types_of_disks(name: str, tmp_path: Path) -> None:
    parameter = parameter_at(("hvparams", "kvm", name))
    assert parameter is not None
    for word in filter(None, parameter.choices):
        text = f"hvparams:\n  kvm: {{{name}: {word}}}\n"
        assert is_found(text, tmp_path) is not starts(**{name: word}), word


@pytest.mark.parametrize("template", ADDRESSES)
def test_addresses_of_disks_in_userspace(template: str, tmp_path: Path) -> None:
    name, address, values = ADDRESSES[template]
    for value in values:
        text = f'diskparams:\n  {template}: {{access: userspace, {name}: "{value.strip("[]")}"}}\n'
        assert is_found(text, tmp_path) is not starts(address=address.format(value)), value
