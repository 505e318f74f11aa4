"""Slips in sizes, and in what nodes have."""

from __future__ import annotations

from typing import Final

from tests.rules.policy_texts import (
    CLUSTER,
    EXCLUSIVE,
    GROUP,
    LARGE,
    SMALL,
    asking,
    dedicated,
    group,
    sized,
    spec,
)

HALVES = (
    ("full", "60G 62G", "8 8", "500G 600G"),
    ("half", "30G 31G", "4 4", "200G 300G"),
    ("quarter", "15G 15G", "2 2", "50G 100G"),
)

USING_FOUR = spec("small", "1G 7G", "1 3", "10G 90G", "1 4")

SHORT = SMALL.replace("12G", "120M").replace("1G", "64M").replace("1 3", "1 4")

STD = "  std: {memory-size: 2G, cpu-count: 1, disk-size: 20G, disk-count: 1, nic-count: 1, spindle-use: 1}\n"

LOST = (
    f"{CLUSTER}ipolicy:\n  minmax:\n{SMALL}"
    + group("gold", "n1", f"ipolicy:\n  minmax:\n{LARGE}")
    + group("spare", "n2", "alloc_policy: unallocable\n")
)

OF_SIZES: Final[dict[str, tuple[str, str, str, str, list[str]]]] = {
    "memory of a node without its unit, with sizes that need TiB": (
        group("gold", "n1, n2", f"hardware: {{memory: 1, cpus: 64}}\nipolicy:\n  minmax:\n{LARGE}"),
        "GP152",
        "1",
        "write 1T, if 1 TiB is meant",
        ["GP222", "GP211"],
    ),
    "memory of a node without its unit, with CPUs that need GiB": (
        group("gold", "n1, n2", f"hardware: {{memory: 128, cpus: 64}}\nipolicy:\n  minmax:\n{LARGE}"),
        "GP152",
        "128",
        "write 128G, if 128 GiB are meant",
        ["GP222", "GP211"],
    ),
    "memory of a node that no unit makes enough for the sizes": (
        group("gold", "n1, n2", "hardware: {memory: 100}\nipolicy:\n  minmax:\n")
        + spec("large", "16G 128G", "4 16", "100G 1T"),
        "GP152",
        "100",
        "correct the number or its unit",
        ["GP211"],
    ),
    "a volume without its unit": (
        EXCLUSIVE.replace("dedicated", "gold")
        + "nodes: [n1, n2]\nhardware: {pv_count: 12, pv_size: 1}\nipolicy:\n  minmax:\n"
        + LARGE,
        "GP152",
        "1",
        "write 1T, if 1 TiB is meant",
        [],
    ),
    "a ratio without its last digit, of which a group has spindles enough for its sizes": (
        (
            f"{CLUSTER}ipolicy:\n  spindle-ratio: 3.2\n  minmax:\n{USING_FOUR}---\n"
            f"{GROUP}nodes: [n1, n2]\nhardware: {{memory: 190G, cpus: 48}}\nndparams: {{spindle_count: 4}}\n"
            "ipolicy: {vcpu-ratio: 4}\n"
        ),
        "GP195",
        "3.2",
        "is 32 meant?",
        [],
    ),
    "a ratio without its last digit, by which a size is too large": (
        (
            f"{CLUSTER}ndparams: {{spindle_count: 1}}\nipolicy:\n  spindle-ratio: 3.2\n  minmax:\n"
            f"{USING_FOUR}{USING_FOUR.replace('small', 'tiny').replace('G,', '00M,')}---\n"
            f"{GROUP}nodes: [n1, n2]\nhardware: {{memory: 190G, cpus: 48}}\n"
        ),
        "GP223",
        "3.2",
        "is 32 meant?",
        ["GP223"],
    ),
    "a size for more spindles than a group has, whose cluster has one": (
        (
            f"{CLUSTER}ndparams: {{spindle_count: 1}}\nipolicy:\n  spindle-ratio: 4\n  minmax:\n"
            f"{spec('small', '1G 7G', '1 3', '10G 90G', '1 10')}---\n"
            f"{GROUP}nodes: [n1, n2]\nndparams: {{spindle_count: 2}}\n"
        ),
        "GP223",
        "10",
        "raise spindle-ratio or spindle_count, or lower the bound",
        [],
    ),
    "a size ends in another unit, below std and the default instance": (
        (
            f"{CLUSTER}beparams: {{minmem: 3G, maxmem: 3G, vcpus: 3}}\nipolicy:\n"
            f"  std: {{memory-size: 4G, cpu-count: 3}}\n  minmax:\n{LARGE}{SHORT}"
        ),
        "GP205",
        "120M",
        "is 12G meant?",
        ["GP215"],
    ),
    "a size begins in another unit, above std and the default instance": (
        (
            f"{CLUSTER}beparams: {{maxmem: 3G, vcpus: 5}}\nipolicy:\n"
            f"  std: {{memory-size: 2G, cpu-count: 5}}\n  minmax:\n{LARGE.replace('16G', '10G')}"
        ),
        "GP205",
        "10G",
        "is 1G meant?",
        [],
    ),
    "a std that two sizes may be meant for": (
        f"{CLUSTER}ipolicy:\n  std: {{memory-size: 14G, cpu-count: 4}}\n  minmax:\n{LARGE}{SMALL}",
        "GP205",
        "14G",
        "Ganeti refuses this",
        [],
    ),
    "what a node has, written as what it keeps": (
        f"{GROUP}nodes: [n1]\nhardware: {{memory: 128G, cpus: 32}}\nhv_state:\n  kvm: {{mem_node: 128G}}\n",
        "GP419",
        "128G",
        "is mem_total meant?",
        [],
    ),
    "the CPUs of a node, written as those it keeps": (
        f"{GROUP}nodes: [n1]\nhardware: {{memory: 128G, cpus: 32}}\nhv_state:\n  kvm: {{cpu_node: 32}}\n",
        "GP419",
        "32",
        "is cpu_total meant?",
        [],
    ),
    "too much that a node keeps, beside what it has": (
        (
            f"{GROUP}nodes: [n1]\nhardware: {{memory: 128G, cpus: 32}}\n"
            "hv_state:\n  kvm: {mem_total: 128G, mem_node: 120G}\n"
        ),
        "GP419",
        "120G",
        "correct the unit, or the hardware",
        [],
    ),
    "what a node keeps, written as what it has": (
        f"{GROUP}nodes: [n1]\nhardware: {{memory: 128G, cpus: 32}}\nhv_state:\n  kvm: {{mem_total: 4G}}\n",
        "GP153",
        "4G",
        "is mem_node meant?",
        [],
    ),
    "a total without its last digit": (
        f"{GROUP}nodes: [n1]\nhardware: {{memory: 640G, cpus: 32}}\nhv_state:\n  kvm: {{mem_total: 64G}}\n",
        "GP153",
        "64G",
        "correct the one that is wrong",
        [],
    ),
    "what a node has and keeps, exchanged": (
        f"{GROUP}nodes: [n1]\nhv_state:\n  kvm: {{mem_total: 4G, mem_node: 128G}}\n",
        "GP151",
        "128G",
        "exchange the two",
        [],
    ),
    "a list of sizes that takes the inherited ones away": (
        LOST + asking("group: gold, spec: small"),
        "GP812",
        "small",
        "the specs are large; if the inherited one is meant, write small in the list of group gold as well",
        ["GP610"],
    ),
    "a list of sizes that leaves inherited ones to a closed group": (
        LOST,
        "GP610",
        "unallocable",
        "or write small in the list of group gold, which replaces the inherited one",
        [],
    ),
    "no size has a unit": (
        group("gold", "n1, n2", f"ipolicy:\n  minmax:\n{spec('large', '16 64', '4 16', '100 1024')}"),
        "GP152",
        "16",
        "; disk-size 100, memory-size 64 and disk-size 1024 beside it have no unit either",
        ["GP219", "GP224"],
    ),
    "a size without a unit that is rounded": (
        group("gold", "n1, n2", f"ipolicy:\n  minmax:\n{spec('small', '1G 12G', '1 3', '10G 90')}"),
        "GP152",
        "90",
        "write 90G, or 90M if you mean MiB",
        ["GP206", "GP015"],
    ),
    "a minimum in another unit": (
        sized("gold", LARGE, spec("small", "512G 12G", "1 3", "10G 90G")),
        "GP206",
        "512G",
        "min 512G is far from the other sizes: is 512M meant?",
        [],
    ),
    "bounds that may be exchanged": (
        sized("gold", LARGE, spec("small", "1G 12G", "1 3", "20G 9G")),
        "GP206",
        "20G",
        "if they are exchanged, write min 9G and max 20G",
        [],
    ),
    "memory of nodes without a unit": (
        group("gold", "n1, n2", "hardware: {memory: 256, cpus: 32}\n"),
        "GP222",
        "256",
        "is 256G meant?",
        [],
    ),
    "a digit too many in a maximum": (
        sized("gold", *(spec(*size) for size in HALVES)).replace("max: {memory-size: 62G", "max: {memory-size: 620G"),
        "GP230",
        "620G",
        "correct the maximum",
        [],
    ),
    "a maximum without a unit that is rounded": (
        sized("gold", *(spec(*size) for size in HALVES)).replace("300G", "3001"),
        "GP206",
        "3001",
        "max 3001M is far from the other sizes",
        ["GP015"],
    ),
    "a share written as a fraction": (
        "gpolicy: v1\nkind: Guards\nguards:\n  - {name: keep, capacity_loss: {at_most: 0.1}}\n",
        "GP012",
        "0.1",
        "Did you mean `10%`?",
        [],
    ),
    "the standard instance in another unit": (
        f"{CLUSTER}ipolicy:\n  std: {{memory-size: 2T, cpu-count: 2}}\n  minmax:\n{SMALL}",
        "GP205",
        "2T",
        "is 2G meant?",
        [],
    ),
    "cpus of a promise are all that dedicated sizes want": (
        f"{CLUSTER}hv_state: {{kvm: {{cpu_node: 2}}}}\nipolicy: {{vcpu-ratio: 1}}\n---\n{EXCLUSIVE}"
        "hardware: {memory: 256G, cpus: 32, pv_count: 8, pv_size: 2T}\nipolicy:\n  minmax:\n"
        + spec("whole", "200G 240G", "32 32", "15T 15904G", "8 8")
        + spec("half", "90G 120G", "16 16", "7T 7952G", "4 4"),
        "GP226",
        "32",
        "correct this figure, or all these sizes",
        ["GP415", "GP416"],
    ),
    "bounds exchanged where only then the standard instance fits": (
        f"{CLUSTER}ipolicy:\n{STD}  minmax:\n{LARGE}{spec('web', '6G 1G', '1 3', '10G 60G', '1 2')}",
        "GP206",
        "1G",
        "if they are exchanged, write min 1G and max 6G",
        [],
    ),
    "one volume of another size": (
        dedicated("pv_size: [4T, 4T, 3T, 4T]", spec("whole", "32G 60G", "4 14", "15000G 15904G", "4 4")),
        "GP401",
        "3T",
        "is 4T meant?",
        ["GP405", "GP402", "GP404"],
    ),
    "a disk of more volumes than a size may have": (
        dedicated("pv_count: 12, pv_size: 1T", spec("part", "8G 16G", "2 4", "2000G 5000G", "1 4")),
        "GP402",
        "5000G",
        "write a maximum of 3976G",
        ["GP403"],
    ),
}
