"""Rules about the shape of a policy: what reading and the schemas find. They have no check of their own.

The catalogue (`gpolicy.checking.catalogue`) shows them beside the rules about meaning.
"""

from __future__ import annotations

from typing import Final

from gpolicy.findings import RuleInfo, Severity

_CLUSTER = "gpolicy: v1\nkind: Cluster\nname: c.example.org\n"

UNREADABLE_FILE: Final = RuleInfo(
    code="GP001",
    name="unreadable-file",
    severity=Severity.ERROR,
    summary="A file of the policy cannot be read.",
    rationale="A policy that is only partly read would be planned as if the rest did not exist.",
    source="gpolicy",
)
YAML_SYNTAX: Final = RuleInfo(
    code="GP002",
    name="yaml-syntax",
    severity=Severity.ERROR,
    summary="The file is not YAML.",
    rationale="Nothing behind the error can be read.",
    source="YAML 1.2",
    bad=f"{_CLUSTER}ndparams: {{ssh_port: 22\n",
    good=f"{_CLUSTER}ndparams: {{ssh_port: 22}}\n",
)
DUPLICATE_KEY: Final = RuleInfo(
    code="GP003",
    name="duplicate-key",
    severity=Severity.ERROR,
    summary="A key stands twice in one mapping.",
    rationale="YAML readers silently take the last; the reviewer sees the first.",
    source="YAML 1.2, 3.2.1.1: keys are unique",
    bad=f"{_CLUSTER}ndparams: {{ssh_port: 22, ssh_port: 2222}}\n",
    good=f"{_CLUSTER}ndparams: {{ssh_port: 2222}}\n",
)
ALIAS_BOMB: Final = RuleInfo(
    code="GP004",
    name="too-large",
    severity=Severity.ERROR,
    summary="The file is larger or deeper than any policy, aliases followed.",
    rationale="A few lines of nested aliases can stand for billions of values and take a reviewer's CI down.",
    source="gpolicy",
)
UNSUPPORTED_YAML: Final = RuleInfo(
    code="GP005",
    name="unsupported-yaml",
    severity=Severity.ERROR,
    summary="YAML that a policy does not use: tags, merge keys, keys that are not words, dangling aliases.",
    rationale="Readers disagree about these; a policy must mean the same to each of them.",
    source="YAML 1.2 core schema",
    bad=f"{_CLUSTER}ndparams: {{<<: {{ssh_port: 22}}}}\n",
    good=f"{_CLUSTER}ndparams: {{ssh_port: 22}}\n",
)
NOT_A_POLICY: Final = RuleInfo(
    code="GP010",
    name="not-a-policy",
    severity=Severity.ERROR,
    summary="A document that is not `gpolicy: v1` of a known kind.",
    rationale="gpolicy must not guess what a document is meant to be.",
    source="gpolicy",
    bad="gpolicy: v1\nkind: NodeGrup\nname: gold\n",
    good="gpolicy: v1\nkind: NodeGroup\nname: gold\n",
)
UNKNOWN_KEY: Final = RuleInfo(
    code="GP011",
    name="unknown-key",
    severity=Severity.ERROR,
    summary="A key that this place does not have.",
    rationale="A misspelt key would be ignored, and the cluster would not be what the policy seems to say.",
    source="the schemas",
    bad=f"{_CLUSTER}ndparams: {{spindel_count: 4}}\n",
    good=f"{_CLUSTER}ndparams: {{spindle_count: 4}}\n",
    fix="A key that is one slip away from a known one, and from no other, is written as that one.",
)
WRONG_VALUE: Final = RuleInfo(
    code="GP012",
    name="wrong-value",
    severity=Severity.ERROR,
    summary="A value of the wrong type, or outside what the parameter takes.",
    rationale="Ganeti would refuse it, or store something else than was meant.",
    source="the schemas; resource model and the parameters' own types",
    bad=f'{_CLUSTER}ndparams: {{spindle_count: "four"}}\n',
    good=f"{_CLUSTER}ndparams: {{spindle_count: 4}}\n",
    fix="A word that can only mean one thing is written right: a slip, `yes` for true, quotes too few or too many.",
)
MISSING_KEY: Final = RuleInfo(
    code="GP013",
    name="missing-key",
    severity=Severity.ERROR,
    summary="A key that must be there is not.",
    rationale="Ganeti takes a spec pair only with all six parameters in min and max, and an object needs its name.",
    source="the schemas; partitioned Ganeti, Constrained instance sizes",
    bad="gpolicy: v1\nkind: NodeGroup\nalloc_policy: preferred\n",
    good="gpolicy: v1\nkind: NodeGroup\nname: gold\nalloc_policy: preferred\n",
)
EMPTY_VALUE: Final = RuleInfo(
    code="GP014",
    name="empty-value",
    severity=Severity.ERROR,
    summary="A key with no value.",
    rationale="It could mean unmanaged, inherited or empty. Leave the key out, write `inherit`, or write the value.",
    source="gpolicy",
    bad="gpolicy: v1\nkind: NodeGroup\nname: gold\nipolicy:\n  vcpu-ratio:\n",
    good="gpolicy: v1\nkind: NodeGroup\nname: gold\nipolicy:\n  vcpu-ratio: inherit\n",
)
SIZE_ROUNDED: Final = RuleInfo(
    code="GP015",
    name="size-rounded",
    severity=Severity.WARNING,
    summary="A size that is no multiple of 4 MiB.",
    rationale="Ganeti's command line rounds sizes up to 4 MiB, RAPI does not. gpolicy rounds when it loads the policy,"
    " so that both ways store the same and a plan converges; the written number is not the one in force.",
    source="Ganeti's unit parser (run on 3.0.2)",
    bad=f"{_CLUSTER}beparams: {{maxmem: 130}}\n",
    good=f"{_CLUSTER}beparams: {{maxmem: 132}}\n",
    fix="The number that Ganeti stores is written.",
)
NOT_PLAIN_TEXT: Final = RuleInfo(
    code="GP016",
    name="not-plain-text",
    severity=Severity.ERROR,
    summary="A name or value with a character that is not printable ASCII.",
    rationale="Ganeti's configuration daemon stores an é, and from then on answers every read of the configuration with"
    " broken UTF-8: every job dies, also the one that would take the character out again. Control characters cannot be"
    " shown or passed on.",
    source="seen on a real Ganeti 3.0.2 cluster, for a group name and for a disk parameter",
    bad='gpolicy: v1\nkind: NodeGroup\nname: "caf\\u00e9"\n',
    good="gpolicy: v1\nkind: NodeGroup\nname: cafe\n",
)
DUPLICATE_OBJECT: Final = RuleInfo(
    code="GP020",
    name="duplicate-object",
    severity=Severity.ERROR,
    summary="Two documents describe the same object.",
    rationale="Which of the two holds would depend on the order of files.",
    source="gpolicy",
    bad="gpolicy: v1\nkind: NodeGroup\nname: gold\n---\ngpolicy: v1\nkind: NodeGroup\nname: gold\n",
    good="gpolicy: v1\nkind: NodeGroup\nname: gold\n---\ngpolicy: v1\nkind: NodeGroup\nname: silver\n",
)
EXTENDS_UNKNOWN: Final = RuleInfo(
    code="GP021",
    name="extends-unknown",
    severity=Severity.ERROR,
    summary="`extends` names a document that is not there.",
    rationale="The shared part would be missing without a word.",
    source="gpolicy",
    bad="gpolicy: v1\nkind: NodeGroup\nname: gold\nextends: base\n",
    good="gpolicy: v1\nkind: NodeGroup\nname: base\ntemplate: true\n---\n"
    "gpolicy: v1\nkind: NodeGroup\nname: gold\nextends: base\n",
)
EXTENDS_CYCLE: Final = RuleInfo(
    code="GP022",
    name="extends-cycle",
    severity=Severity.ERROR,
    summary="Documents extend one another in a circle, or in a chain of more than 32.",
    rationale="A circle has no base to begin with; and nobody can say what holds at the end of such a chain.",
    source="gpolicy",
    bad="gpolicy: v1\nkind: NodeGroup\nname: gold\nextends: silver\n---\n"
    "gpolicy: v1\nkind: NodeGroup\nname: silver\nextends: gold\n",
    good="gpolicy: v1\nkind: NodeGroup\nname: silver\n---\ngpolicy: v1\nkind: NodeGroup\nname: gold\nextends: silver\n",
)
EXTENDS_CONFLICT: Final = RuleInfo(
    code="GP023",
    name="extends-conflict",
    severity=Severity.WARNING,
    summary="Two bases of one document disagree about a value.",
    rationale="The later base wins, which is easy to miss; say in the document itself which value holds.",
    source="gpolicy",
    bad="gpolicy: v1\nkind: NodeGroup\nname: a\ntemplate: true\nndparams: {ssh_port: 22}\n---\n"
    "gpolicy: v1\nkind: NodeGroup\nname: b\ntemplate: true\nndparams: {ssh_port: 2222}\n---\n"
    "gpolicy: v1\nkind: NodeGroup\nname: gold\nextends: [a, b]\n",
    good="gpolicy: v1\nkind: NodeGroup\nname: a\ntemplate: true\nndparams: {ssh_port: 22}\n---\n"
    "gpolicy: v1\nkind: NodeGroup\nname: b\ntemplate: true\nndparams: {ssh_port: 2222}\n---\n"
    "gpolicy: v1\nkind: NodeGroup\nname: gold\nextends: [a, b]\nndparams: {ssh_port: 2222}\n",
)
SEVERAL_CLUSTERS: Final = RuleInfo(
    code="GP024",
    name="several-clusters",
    severity=Severity.ERROR,
    summary="More than one Cluster document in one policy.",
    rationale="A policy describes one cluster. Keep each cluster in a directory of its own; share with `extends`.",
    source="gpolicy",
    bad=f"{_CLUSTER}---\ngpolicy: v1\nkind: Cluster\nname: d.example.org\n",
    good=_CLUSTER,
)
_TEST = "gpolicy: v1\nkind: Test\ntests:\n  - name: two CPUs are legal\n"
UNKNOWN_SNAPSHOT: Final = RuleInfo(
    code="GP025",
    name="unknown-snapshot",
    severity=Severity.ERROR,
    summary="A test runs on a snapshot that is not there, or that lies outside of the policy's directory.",
    rationale="The test could not run. A policy must not be able to make gpolicy read any file there is, so a snapshot"
    " lies in the directory of the policy, and is no larger than 64 MiB.",
    source="gpolicy",
    bad=f'{_CLUSTER}---\n{_TEST}    "on": {{snapshot: missing.json}}\n'
    "    check_instance: {memory-size: 2G, cpu-count: 2, disks: [10G], disk-template: plain}\n"
    "    expect: {refused: false}\n",
    good=f"{_CLUSTER}---\n{_TEST}"
    "    check_instance: {memory-size: 2G, cpu-count: 2, disks: [10G], disk-template: plain}\n"
    "    expect: {refused: false}\n",
)
