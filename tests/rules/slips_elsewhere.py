"""Slips in tests, guards, templates and parameters."""

from __future__ import annotations

from typing import Final

from tests.rules.policy_texts import CLUSTER, FOUR, GROUP, HARDWARE, LARGE, SMALL, asking, group, in_test, sized, spec

STRIPED = "ipolicy: {disk-templates: [drbd]}\ndiskparams: {plain: {stripes: 4}}\n"

OTHERS: Final[dict[str, tuple[str, str, str, str, list[str]]]] = {
    "a test loses all nodes": (
        group("gold", "n1, n2", HARDWARE)
        + in_test("    redundancy:\n      group: gold\n      failures: 2\n    expect: {survives: true}\n"),
        "GP824",
        "2",
        "is 1 meant?",
        [],
    ),
    "a guard about a closed group": (
        group("gold", "n1, n2", f"alloc_policy: unallocable\nipolicy:\n  minmax:\n{SMALL}")
        + "---\ngpolicy: v1\nkind: Guards\nguards:\n  - {name: room, group: gold, spec: small, at_least: 4}\n",
        "GP610",
        "unallocable",
        "write last_resort",
        ["GP805"],
    ),
    "two templates of one name": (
        "".join(f"---\n{GROUP}template: true\nndparams: {{ssh_port: {port}}}\n" for port in (22, 2222))
        + group("silver", "n1", "extends: gold\n"),
        "GP614",
        "gold",
        "give one of the two another name",
        [],
    ),
    "a test names the group of another size": (
        sized("gold", LARGE) + sized("silver", SMALL) + asking("group: gold, spec: small"),
        "GP812",
        "small",
        "the specs are large; or is group silver meant, which has it?",
        [],
    ),
    "a test simulates the group of other sizes": (
        sized("gold", LARGE, SMALL)
        + sized("silver", spec("tiny", "512M 512M", "1 1", "5G 9G"))
        + in_test(
            '    "on": {simulate: {group: silver, nodes: 2, memory: 256G, cpus: 32, disk: 4T}}\n'
            "    capacity: {}\n    expect: {specs: {large: {at_least: 1}, small: {at_least: 1}}}\n"
        ),
        "GP812",
        "{at_least: 1}",
        "the specs are tiny; or is group gold meant, which has it?",
        ["GP812"],
    ),
    "a test names another group than its sizes are of": (
        sized("gold", LARGE) + sized("silver", SMALL) + asking("group: gold, memory-size: 2G, cpu-count: 2"),
        "GP819",
        "false",
        "correct the test: what it expects, or its group, since in group silver it passes",
        [],
    ),
    "a group forgets its base": (
        f"{GROUP.replace('gold', 'base')}template: true\nipolicy:\n  minmax:\n{LARGE}"
        + group("gold", "n1", "extends: base\n")
        + group("silver", "n2", "extends: base\n")
        + group("bronze", "n3", f"ipolicy:\n  minmax:\n{SMALL}")
        + "---\ngpolicy: v1\nkind: Guards\nguards:\n  - {name: room, group: bronze, spec: large, at_least: 4}\n",
        "GP802",
        "large",
        "is `extends: base` in group bronze missing?",
        [],
    ),
    "a guard about a group that has not the size": (
        f"{CLUSTER}ipolicy:\n  minmax:\n{SMALL}"
        + group("gold", "n1")
        + group("silver", "n2", f"alloc_policy: unallocable\nipolicy:\n  minmax:\n{LARGE}")
        + "---\ngpolicy: v1\nkind: Guards\nguards:\n  - {name: room, group: silver, spec: small, at_least: 3}\n",
        "GP802",
        "small",
        "write small in the list of group silver as well; or is group gold meant, which has it?",
        [],
    ),
    "exclusive storage that is not meant": (
        sized("gold", spec("large", "4G 64G", "1 16", "100G 800G", "1 8")).replace("[plain]", "[drbd, plain]")
        + "  vcpu-ratio: 1\nndparams: {exclusive_storage: true}\n"
        + HARDWARE.replace("pv_count: 12", "pv_count: 4"),
        "GP407",
        "drbd",
        "is exclusive storage meant here?",
        ["GP402", "GP212", "GP411"],
    ),
    "a guard that DRBD cannot keep": (
        group("gold", "n1, n2, n3, n4", "ipolicy: {disk-templates: [drbd]}\n")
        + "---\ngpolicy: v1\nkind: Guards\nguards:\n  - {name: survive, group: gold, node_failures: 2}\n",
        "GP808",
        "2",
        "write 1, or accept it with a reason",
        [],
    ),
    "a hypervisor in another table": (
        f"{GROUP}ndparams:\n  kvm: {{mem_node: 6G}}\n",
        "GP011",
        "kvm",
        "it belongs below hv_state or hvparams",
        [],
    ),
    "the switch of the controller is lost": (
        f"{CLUSTER}diskparams:\n  drbd: {{c-plan-ahead: 20, c-min-rate: 10M, c-max-rate: 110M}}\n",
        "GP122",
        "10M",
        "add `dynamic-resync: true`, or remove them",
        [],
    ),
    "the controller is off": (
        f"{CLUSTER}diskparams:\n  drbd: {{dynamic-resync: false, c-min-rate: 10M, c-max-rate: 110M}}\n",
        "GP122",
        "10M",
        "",
        [],
    ),
    "a rate in bits": (
        f"{CLUSTER}diskparams:\n  drbd: {{resync-rate: 100Mbit}}\n",
        "GP012",
        "100Mbit",
        "Did you mean `100M`?",
        [],
    ),
    "another template in place of one that has parameters": (
        f"{CLUSTER}enabled_disk_templates: [plain, diskless]\n---\n{FOUR}{STRIPED}",
        "GP301",
        "drbd",
        "add it to enabled_disk_templates",
        ["GP307"],
    ),
    "memory of new instances reversed": (
        f"{CLUSTER}beparams: {{minmem: 2G, maxmem: 512M, vcpus: 1}}\nipolicy:\n  minmax:\n{SMALL}",
        "GP108",
        "2G",
        "swap the two only if they are exchanged",
        ["GP163"],
    ),
    "stripes that no group has the volumes for": (
        f"{CLUSTER}diskparams: {{plain: {{stripes: 20}}}}\n---\n{GROUP}hardware: {{pv_count: 4, pv_size: 1T}}\n"
        + group("silver", "n1", "hardware: {pv_count: 2, pv_size: 1T}\n"),
        "GP128",
        "20",
        "write at most 2",
        ["GP128"],
    ),
    "volumes without their whole names": (
        f"{CLUSTER}physical_volumes: {{exclude: [sda*, sdb*]}}\n",
        "GP424",
        "[sda*, sdb*]",
        "write /dev/sda*",
        ["GP424"],
    ),
    "parameters of a group below its hardware": (
        f"{FOUR}hardware:\n  memory: 64G\n  ndparams: {{spindle_count: 4}}\n",
        "GP011",
        "ndparams",
        "it belongs to the NodeGroup itself",
        [],
    ),
    "the name of an option": (
        f"{CLUSTER}backend-parameters: {{minmem: 1G, maxmem: 2G, vcpus: 1}}\n",
        "GP011",
        "backend-parameters",
        "is called beparams",
        [],
    ),
    "exclusive storage is forgotten, and a test has spindles": (
        f"{FOUR}{HARDWARE}ipolicy:\n  disk-templates: [plain]\n  minmax:\n{spec('s', '1G 2G', '1 1', '9G 10G', '2 2')}"
        + in_test(
            "    check_instance: {group: gold, memory-size: 1G, cpu-count: 1, disks: [{size: 9G, spindles: 2}]}\n"
            "    expect: {refused: false}\n"
        ),
        "GP414",
        "2",
        "write ndparams: {exclusive_storage: true}",
        ["GP818"],
    ),
}
