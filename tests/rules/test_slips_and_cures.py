"""One slip is one finding: it stands at the slip, with its cure, and what follows is told with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.policy_texts import CLUSTER, EXCLUSIVE, FOUR, GROUP, HARDWARE, LARGE, SMALL, node_set, spec
from tests.rules.test_slips_between_documents import bad


def group(name: str, nodes: str, more: str = "") -> str:
    return f"---\ngpolicy: v1\nkind: NodeGroup\nname: {name}\nnodes: [{nodes}]\n{more}"


def in_test(body: str) -> str:
    return f"---\ngpolicy: v1\nkind: Test\ntests:\n  - name: t\n{body}"


def dedicated(volumes: str, size: str) -> str:
    hardware = f"hardware: {{memory: 64G, cpus: 16, {volumes}}}\n"
    return f"{EXCLUSIVE}{hardware}ipolicy:\n  vcpu-ratio: 1\n  minmax:\n{size}"


def sized(name: str, *sizes: str) -> str:
    return group(name, f"{name}1, {name}2", f"ipolicy:\n  disk-templates: [plain]\n  minmax:\n{''.join(sizes)}")


def asking(sizes: str) -> str:
    instance = sizes if "spec" in sizes else f"{sizes}, disks: [20G]"
    return in_test(f"    check_instance: {{{instance}, disk-template: plain}}\n    expect: {{refused: false}}\n")


HALVES = (
    ("full", "60G 62G", "8 8", "500G 600G"),
    ("half", "30G 31G", "4 4", "200G 300G"),
    ("quarter", "15G 15G", "2 2", "50G 100G"),
)

USING_FOUR = spec("small", "1G 7G", "1 3", "10G 90G", "1 4")

SHORT = SMALL.replace("12G", "120M").replace("1G", "64M").replace("1 3", "1 4")

STD = "  std: {memory-size: 2G, cpu-count: 1, disk-size: 20G, disk-count: 1, nic-count: 1, spindle-use: 1}\n"

STRIPED = "ipolicy: {disk-templates: [drbd]}\ndiskparams: {plain: {stripes: 4}}\n"

LOST = (
    f"{CLUSTER}ipolicy:\n  minmax:\n{SMALL}"
    + group("gold", "n1", f"ipolicy:\n  minmax:\n{LARGE}")
    + group("spare", "n2", "alloc_policy: unallocable\n")
)

COPIED = (
    'gpolicy: v1\nkind: TagRules\nowns: [migration, nlocation, {{prefix: "cpu:", "on": [node]}},'
    ' {{prefix: "room:", "on": [node]}}]\nfailure_domains: [room]\nmigration: {{domains: [cpu]}}\n'
    + group("prod", '"{}"')
    + group("batch", '"{}"')
    + node_set("old", "n-p1, n-p2, n-p3", "tags: ['cpu:a', 'room:a']")
    + node_set("north", "n-b1", "tags: ['room:a']")
    + node_set("south", "n-b2, n-b3", "tags: ['room:b']")
    + "---\ngpolicy: v1\nkind: NodeSet\nname: new\ngroups: [batch]\ntags: ['cpu:b']\n"
)

CURES: dict[str, tuple[str, str, str, str, list[str]]] = {
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
    "a pattern of one group is too wide": (
        group("gold", '"n[1-8]"') + group("silver", '"n[5-6]"') + group("bronze", "n7") + group("tin", '"n8*"'),
        "GP611",
        '"n[1-8]"',
        "narrow n[1-8]: it meets 2 others",
        ["GP611", "GP611"],
    ),
    "two templates of one name": (
        "".join(f"---\n{GROUP}template: true\nndparams: {{ssh_port: {port}}}\n" for port in (22, 2222))
        + group("silver", "n1", "extends: gold\n"),
        "GP614",
        "gold",
        "give one of the two another name",
        [],
    ),
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
    "a pattern copied from another group, whose nodes are in sets": (
        COPIED.format("n-p[1-6]", "n-p[1-3]"),
        "GP611",
        '"n-p[1-3]"',
        "is n-b[1-3] meant? Node sets name such nodes, and no group does",
        ["GP613", "GP613"],
    ),
    "a wide pattern copied from another group": (
        COPIED.format("n-p[1-6]", "n-p*"),
        "GP611",
        '"n-p*"',
        "is n-b* meant?",
        ["GP613", "GP613"],
    ),
    "the same pattern in two groups, of which one has other nodes in sets": (
        COPIED.format("n-p[1-6]", "n-p[1-6]"),
        "GP611",
        '"n-p[1-6]"',
        "is n-b[1-6] meant?",
        ["GP613", "GP613"],
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
    "memory of nodes without a unit": (
        group("gold", "n1, n2", "hardware: {memory: 256, cpus: 32}\n"),
        "GP222",
        "256",
        "is 256G meant?",
        [],
    ),
    "a pattern takes in that of another group": (
        group("gold", '"d*.example.org"') + group("silver", '"dedicated*.example.org"'),
        "GP611",
        '"d*.example.org"',
        "narrow one of them",
        [],
    ),
    "a short pattern takes in that of another group": (
        group("db", '"d*.example.org"') + group("dedicated", '"dedicated*.example.org"'),
        "GP611",
        '"d*.example.org"',
        "is db*.example.org meant? Else narrow one of them",
        [],
    ),
    "another domain than that of node sets": (
        node_set("a", "k1.example.net, k2.example.net", "tags: ['rack:a']")
        + node_set("b", "k3.example.net, k4.example.net", "tags: ['rack:b']")
        + group("gold", '"k[1-4].example.com"')
        + group("silver", '"web[1-4].example.net"'),
        "GP621",
        '"k[1-4].example.com"',
        "is k[1-4].example.net meant?",
        ["GP613", "GP613"],
    ),
    "no domain": (
        group("gold", '"k[1-4]"') + node_set("a", "k1.example.net, k2.example.net", "tags: ['rack:a']"),
        "GP621",
        '"k[1-4]"',
        "is k[1-4].example.net meant?",
        ["GP613"],
    ),
    "zeros that the nodes have not": (
        group("gold", '"k0[1-4].example.net"') + node_set("a", "k1.example.net, k2.example.net", "tags: ['rack:a']"),
        "GP621",
        '"k0[1-4].example.net"',
        "is k[1-4].example.net meant?",
        ["GP613"],
    ),
    "nodes of another kind": (
        group("gold", '"k[1-4].example.net"') + node_set("a", "c1.example.net, c2.example.net", "tags: ['rack:a']"),
        "GP613",
        "c1.example.net",
        "correct the name, or add the node to its group",
        [],
    ),
    "a copied group with the nodes of the first": (
        group("gold", '"n[1-4]"') + group("silver", '"n[1-4]"'),
        "GP611",
        '"n[1-4]"',
        "leave it out of one of the two: was it copied?",
        [],
    ),
    "two names in one entry": (
        group("gold", '"n[1-4].example.org, n8.example.org"'),
        "GP612",
        '"n[1-4].example.org, n8.example.org"',
        "write each as an entry of its own: n[1-4].example.org, n8.example.org",
        [],
    ),
    "another domain in a pattern": (
        group("gold", '"db*.exmaple.org"') + group("silver", '"web*.example.org"') + group("tin", '"c*.example.org"'),
        "GP621",
        '"db*.exmaple.org"',
        "Did you mean `db*.example.org`?",
        [],
    ),
    "tags of one node set under another name": (
        "gpolicy: v1\nkind: TagRules\nowns: [nlocation, {prefix: 'rack:', 'on': [node]}]\nfailure_domains: [rack]\n"
        + FOUR.replace("gpolicy", "---\ngpolicy", 1)
        + node_set("a", "n1, n2", "tags: ['rack:a']")
        + node_set("b", "n3, n4", "tags: ['row:b']"),
        "GP520",
        "'row:b'",
        "is rack:… meant here, not row:…?",
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
    "one node in place of a list": (
        f"{GROUP}nodes: n1.example.org\n",
        "GP012",
        "n1.example.org",
        'write it as a list: `["n1.example.org"]`',
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
    "another template in place of one that has parameters": (
        f"{CLUSTER}enabled_disk_templates: [plain, diskless]\n---\n{FOUR}{STRIPED}",
        "GP301",
        "drbd",
        "add it to enabled_disk_templates",
        ["GP307"],
    ),
    "a set one node too long": (
        group("north", '"n[1-4]"')
        + node_set("a", '"n[1-2]"', "tags: ['rack:a']")
        + node_set("b", '"n[3-5]"', "tags: ['rack:b']"),
        "GP613",
        '"n[3-5]"',
        "is n[3-4] meant?",
        [],
    ),
    "sets that share two nodes": (
        "gpolicy: v1\nkind: TagRules\nowns: [nlocation]\nfailure_domains: [bldg]\n"
        + group("north", '"n[1-4]"')
        + node_set("a", '"n[1-4]"', "tags: ['bldg:a']")
        + node_set("b", '"n[3-4]"', "tags: ['bldg:b']"),
        "GP528",
        '"n[1-4]"',
        "is n[1-2] meant?",
        [],
    ),
    "a domain by another name than its tags": (
        'gpolicy: v1\nkind: TagRules\nowns: [nlocation, {prefix: "wing:", "on": [node]}]\nfailure_domains: [house]\n'
        + group("north", '"n[1-4]"')
        + node_set("a", '"n[1-2]"', "tags: ['wing:a']")
        + node_set("b", '"n[3-4]"', "tags: ['wing:b']"),
        "GP517",
        "house",
        "is wing meant, which nodes have?",
        [],
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
    "memory of new instances reversed": (
        f"{CLUSTER}beparams: {{minmem: 2G, maxmem: 512M, vcpus: 1}}\nipolicy:\n  minmax:\n{SMALL}",
        "GP108",
        "2G",
        "swap the two only if they are exchanged",
        ["GP163"],
    ),
    "the nodes of a group by another name than in all sets": (
        group("north", '"ofen[1-4]"')
        + node_set("a", "oven1, oven2", "tags: ['rack:a']")
        + node_set("b", "oven3, oven4", "tags: ['rack:b']"),
        "GP613",
        '"ofen[1-4]"',
        "is a node like oven# meant?",
        ["GP613", "GP613"],
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
"""Policies with one slip: the code of the only finding, the text at its place, its hint, and what follows from it."""


@pytest.mark.parametrize("name", CURES)
def test_a_finding_stands_at_the_slip_with_its_cure(name: str, tmp_path: Path) -> None:
    text, code, place, hint, following = CURES[name]
    (found,) = bad(text, tmp_path)
    assert (found.code, [item.code for item in found.consequences]) == (code, following)
    assert found.span is not None
    written = text.splitlines()[found.span.line - 1][found.span.column - 1 : found.span.end_column - 1]
    assert (written, hint in found.hint) == (place, True), found.hint
    assert "meant? Else" not in found.hint or "meant?" in hint or not hint, found.hint
