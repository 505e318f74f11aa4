"""Slips that another declared value, or the cluster, explains: one finding, at the slip, with the likely cure first."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpolicy.cluster.state import ClusterState
from tests.rules.policy_texts import CLUSTER, EXCLUSIVE, GROUP, LARGE, SMALL, spec
from tests.rules.run_rules import cluster, with_instance, with_resources
from tests.rules.test_slips_between_documents import bad

KVM = f"{CLUSTER}uid_pool: ['20000-20099']\nhvparams:\n  kvm: "
STD = "  std: {memory-size: 2G, cpu-count: 1, disk-size: 20G, disk-count: 1, nic-count: 1, spindle-use: 1}\n"
DRBD = f"{CLUSTER}diskparams:\n  drbd: "
PARTS = (
    f"{EXCLUSIVE}hardware: {{memory: 378G, cpus: 64, pv_count: 12, pv_size: 1T}}\nipolicy:\n  vcpu-ratio: 1\n"
    "  disk-templates: [plain]\n  minmax:\n"
    + spec("half", "177G 184G", "31 31", "5500G 5965G", "6 6")
    + spec("quarter", "89G MOST", "15 15", "2T 2982G", "3 3")
)
SIZED = f"{CLUSTER}ipolicy:\n{STD}  minmax:\n{LARGE}{SMALL}---\n{GROUP}nodes: [n1]\n"


def with_memory(mib: int) -> ClusterState:
    """Return a cluster with an instance that has so much memory."""
    state = with_instance(cluster({"gold": {}}, {"n1": "gold"}), "n1", template="plain", hypervisor="kvm")
    (instance,) = state.instances.values()
    disks = tuple(replace(disk, size=20 * 1024) for disk in instance.disks)
    seen = replace(instance, disks=disks, minmem=mib, maxmem=mib)
    return replace(state, instances={seen.name: seen})


SLIPS: dict[str, tuple[str, ClusterState | None, str, str, str]] = {
    "a pool of user IDs": (
        KVM + "{security_model: user}\n",
        None,
        "GP175",
        "user",
        "is security_model: pool meant, since uid_pool is set? Else declare security_domain as well",
    ),
    "no pool of user IDs": (
        KVM.replace("uid_pool: ['20000-20099']\n", "") + "{security_model: user}\n",
        None,
        "GP175",
        "user",
        "declare security_domain as well",
    ),
    "an image of a floppy disk": (
        KVM + "{boot_order: cdrom, floppy_image_path: /srv/boot.img}\n",
        None,
        "GP175",
        "cdrom",
        "is boot_order: floppy meant, since floppy_image_path is set?",
    ),
    "an address of VNC": (
        KVM + "{vnc_bind_address: 127.0.0.1, spice_use_tls: true}\n",
        None,
        "GP175",
        "true",
        "is vnc_tls meant, since vnc_bind_address is set?",
    ),
    "a rate of the other mode": (
        DRBD + "{dynamic-resync: true, resync-rate: 400M, c-max-rate: 100M}\n",
        None,
        "GP122",
        "400M",
        "is c-max-rate: 400M meant? It is 100M. Else remove it: c-max-rate counts",
    ),
    "the same rate of the other mode": (
        DRBD + "{dynamic-resync: true, resync-rate: 100M, c-max-rate: 100M}\n",
        None,
        "GP122",
        "100M",
        "remove it: c-max-rate counts",
    ),
    "a rate of the controller without it": (
        DRBD + "{dynamic-resync: false, resync-rate: 100M, c-max-rate: 300M}\n",
        None,
        "GP122",
        "300M",
        "is resync-rate: 300M meant? It is 100M. Else remove it: resync-rate counts",
    ),
    "a guess that is too much for a share": (
        PARTS.replace("MOST", "192G"),
        None,
        "GP217",
        "192G",
        "is 92G meant? Else lower the one, or raise the other",
    ),
    "a std without its unit": (SIZED.replace("memory-size: 2G", "memory-size: 2"), None, "GP205", "2", "is 2G meant?"),
    "a maxmem without its unit": (
        f"{CLUSTER}beparams: {{minmem: 1G, maxmem: 3}}\n",
        None,
        "GP152",
        "3",
        "write 3G, if 3 GiB are meant",
    ),
    "a maximum with the unit before it": (
        SIZED.replace("memory-size: 12G", "memory-size: 1200M"),
        with_memory(12 * 1024),
        "GP205",
        "1200M",
        "is 12G meant, as instances have?",
    ),
    "a maximum of which nobody has more": (
        SIZED.replace("memory-size: 12G", "memory-size: 1200M"),
        with_memory(1024),
        "GP205",
        "2G",
        "Ganeti refuses this: correct std, or the size",
    ),
    "a ratio below one": (
        f"{GROUP}nodes: [n1]\nipolicy:\n  vcpu-ratio: 0.3\n  minmax:\n{LARGE}",
        with_resources(cluster({"gold": {}}, {"n1": "gold"}), memory_total=1 << 18, cpu_total=32, disk_total=1 << 23),
        "GP114",
        "0.3",
        "is 3 meant?",
    ),
}


@pytest.mark.parametrize("name", SLIPS)
def test_a_slip_is_one_finding_with_its_likely_cure(name: str, tmp_path: Path) -> None:
    text, state, code, place, hint = SLIPS[name]
    (found,) = bad(text, tmp_path, state)
    assert found.span is not None
    written = text.splitlines()[found.span.line - 1][found.span.column - 1 : found.span.end_column - 1]
    assert (found.code, written) == (code, place), found
    assert (found.hint.startswith(hint), found.fix) == (True, None), found.hint


def test_a_message_tells_the_size_that_is_written(tmp_path: Path) -> None:
    (found,) = bad(SIZED.replace("memory-size: 2G", "memory-size: 2"), tmp_path)
    assert "memory-size 2M is not in 1G to 12G" in found.message
