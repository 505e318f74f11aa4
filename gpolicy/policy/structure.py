"""Rules about the shape of a policy, found by reading and by the schemas. They have no check of their own.

The catalogue (`gpolicy.checking.catalogue`) shows them beside the rules about meaning.
"""

from __future__ import annotations

from typing import Final

from gpolicy.findings import UNREADABLE, error_rule, warning_rule

_CLUSTER = "gpolicy: v1\nkind: Cluster\nname: c.example.org\n"

UNREADABLE_FILE: Final = error_rule("GP001", "unreadable-file", UNREADABLE)(
    summary="A file of the policy cannot be read.",
    rationale="If gpolicy planned the part that it could read, it would treat the rest as if it did not exist.",
)
YAML_SYNTAX: Final = error_rule("GP002", "yaml-syntax", UNREADABLE)(
    summary="The file is not valid YAML.",
    rationale="gpolicy cannot read what follows the error.",
    source="YAML 1.2",
    bad=f"{_CLUSTER}ndparams: {{ssh_port: 22\n",
    good=f"{_CLUSTER}ndparams: {{ssh_port: 22}}\n",
)
DUPLICATE_KEY: Final = error_rule("GP003", "duplicate-key", UNREADABLE)(
    summary="A mapping has the same key twice.",
    rationale="YAML readers silently take the last value, while a reviewer sees the first.",
    source="YAML 1.2, 3.2.1.1: keys are unique",
    bad=f"{_CLUSTER}ndparams: {{ssh_port: 22, ssh_port: 2222}}\n",
    good=f"{_CLUSTER}ndparams: {{ssh_port: 2222}}\n",
)
ALIAS_BOMB: Final = error_rule("GP004", "too-large", UNREADABLE)(
    summary="The file is too large or nested too deep, with aliases followed.",
    rationale="A few lines of nested aliases can stand for billions of values and bring a CI job down.",
)
UNSUPPORTED_YAML: Final = error_rule("GP005", "unsupported-yaml", UNREADABLE)(
    summary="The file uses YAML that policies do not have: tags, merge keys, keys that are not words, dangling"
    " aliases.",
    rationale="YAML readers disagree about these features, and a policy must mean the same to each of them.",
    source="YAML 1.2 core schema",
    bad=f"{_CLUSTER}ndparams: {{<<: {{ssh_port: 22}}}}\n",
    good=f"{_CLUSTER}ndparams: {{ssh_port: 22}}\n",
)
NOT_A_POLICY: Final = error_rule("GP010", "not-a-policy", UNREADABLE)(
    summary="A document is not `gpolicy: v1` of a known kind.",
    rationale="gpolicy does not guess what a document is meant to be.",
    bad="gpolicy: v1\nkind: NodeGrup\nname: gold\n",
    good="gpolicy: v1\nkind: NodeGroup\nname: gold\n",
)
UNKNOWN_KEY: Final = error_rule("GP011", "unknown-key", UNREADABLE)(
    summary="A key is unknown in this place.",
    rationale="If gpolicy ignored a misspelt key, the cluster would not get what the policy seems to say.",
    source="the schemas",
    bad=f"{_CLUSTER}ndparams: {{spindel_count: 4}}\n",
    good=f"{_CLUSTER}ndparams: {{spindle_count: 4}}\n",
    fix="Replaces a misspelt key, where it is close to one known key only.",
)
WRONG_VALUE: Final = error_rule("GP012", "wrong-value", UNREADABLE)(
    summary="A value has the wrong type, or is outside what the parameter allows.",
    rationale="Ganeti would refuse the value, or store something else.",
    source="the schemas; resource model and the parameters' own types",
    bad=f'{_CLUSTER}ndparams: {{spindle_count: "four"}}\n',
    good=f"{_CLUSTER}ndparams: {{spindle_count: 4}}\n",
    fix="Corrects a word that can mean one thing only: a misspelt word, `yes` for true, missing or superfluous quotes.",
)
MISSING_KEY: Final = error_rule("GP013", "missing-key", UNREADABLE)(
    summary="A required key is missing.",
    rationale="Ganeti requires all six parameters in min and max of a size, and an object needs a name.",
    source="the schemas; partitioned Ganeti, Constrained instance sizes",
    bad="gpolicy: v1\nkind: NodeGroup\nalloc_policy: preferred\n",
    good="gpolicy: v1\nkind: NodeGroup\nname: gold\nalloc_policy: preferred\n",
)
EMPTY_VALUE: Final = error_rule("GP014", "empty-value", UNREADABLE)(
    summary="A key has no value.",
    rationale="An empty value could mean unmanaged, inherited or empty. Leave the key out, write `inherit`, or write"
    " the value.",
    bad="gpolicy: v1\nkind: NodeGroup\nname: gold\nipolicy:\n  vcpu-ratio:\n",
    good="gpolicy: v1\nkind: NodeGroup\nname: gold\nipolicy:\n  vcpu-ratio: inherit\n",
)
SIZE_ROUNDED: Final = warning_rule("GP015", "size-rounded")(
    summary="A size is not a multiple of 4 MiB.",
    rationale="Ganeti's command line rounds sizes up to 4 MiB, RAPI does not. gpolicy rounds when it loads the policy,"
    " so that both store the same value and a plan converges. The effective value is then not the one that is written.",
    source="Ganeti's unit parser (run on 3.0.2)",
    bad=f"{_CLUSTER}beparams: {{maxmem: 130}}\n",
    good=f"{_CLUSTER}beparams: {{maxmem: 132}}\n",
    fix="Writes the number that Ganeti stores.",
)
NOT_PLAIN_TEXT: Final = error_rule("GP016", "not-plain-text", UNREADABLE)(
    summary="A name or value has a character that is not printable ASCII.",
    rationale="Ganeti's configuration daemon stores an é, but answers every later read of the configuration with"
    " broken UTF-8. Every job then fails, also one that would remove the character. Control characters cannot be shown"
    " or passed on.",
    source="seen on a real Ganeti 3.0.2 cluster, for a group name and for a disk parameter",
    bad='gpolicy: v1\nkind: NodeGroup\nname: "caf\\u00e9"\n',
    good="gpolicy: v1\nkind: NodeGroup\nname: cafe\n",
)
DUPLICATE_OBJECT: Final = error_rule("GP020", "duplicate-object", UNREADABLE)(
    summary="Two documents describe the same object.",
    rationale="The order of the files would decide which of the two documents holds.",
    bad="gpolicy: v1\nkind: NodeGroup\nname: gold\n---\ngpolicy: v1\nkind: NodeGroup\nname: gold\n",
    good="gpolicy: v1\nkind: NodeGroup\nname: gold\n---\ngpolicy: v1\nkind: NodeGroup\nname: silver\n",
)
EXTENDS_UNKNOWN: Final = error_rule("GP021", "extends-unknown", UNREADABLE)(
    summary="`extends` names a document that does not exist.",
    rationale="The shared values would silently be missing.",
    bad="gpolicy: v1\nkind: NodeGroup\nname: gold\nextends: base\n",
    good="gpolicy: v1\nkind: NodeGroup\nname: base\ntemplate: true\n---\n"
    "gpolicy: v1\nkind: NodeGroup\nname: gold\nextends: base\n",
)
EXTENDS_CYCLE: Final = error_rule("GP022", "extends-cycle", UNREADABLE)(
    summary="Documents extend one another in a cycle, or in a chain of more than 32.",
    rationale="A cycle has no first base, and nobody can follow such a long chain.",
    bad="gpolicy: v1\nkind: NodeGroup\nname: gold\nextends: silver\n---\n"
    "gpolicy: v1\nkind: NodeGroup\nname: silver\nextends: gold\n",
    good="gpolicy: v1\nkind: NodeGroup\nname: silver\n---\ngpolicy: v1\nkind: NodeGroup\nname: gold\nextends: silver\n",
)
EXTENDS_CONFLICT: Final = warning_rule("GP023", "extends-conflict")(
    summary="Two bases of one document disagree about a value.",
    rationale="The later base wins, which is easy to overlook. Write the value that holds into the document itself.",
    bad="gpolicy: v1\nkind: NodeGroup\nname: a\ntemplate: true\nndparams: {ssh_port: 22}\n---\n"
    "gpolicy: v1\nkind: NodeGroup\nname: b\ntemplate: true\nndparams: {ssh_port: 2222}\n---\n"
    "gpolicy: v1\nkind: NodeGroup\nname: gold\nextends: [a, b]\n",
    good="gpolicy: v1\nkind: NodeGroup\nname: a\ntemplate: true\nndparams: {ssh_port: 22}\n---\n"
    "gpolicy: v1\nkind: NodeGroup\nname: b\ntemplate: true\nndparams: {ssh_port: 2222}\n---\n"
    "gpolicy: v1\nkind: NodeGroup\nname: gold\nextends: [a, b]\nndparams: {ssh_port: 2222}\n",
)
SEVERAL_CLUSTERS: Final = error_rule("GP024", "several-clusters", UNREADABLE)(
    summary="A policy has more than one Cluster document.",
    rationale="A policy describes one cluster. Keep each cluster in its own directory, and share values with"
    " `extends`.",
    bad=f"{_CLUSTER}---\ngpolicy: v1\nkind: Cluster\nname: d.example.org\n",
    good=_CLUSTER,
)
_TEST = "gpolicy: v1\nkind: Test\ntests:\n  - name: two CPUs are legal\n"
UNKNOWN_SNAPSHOT: Final = error_rule("GP025", "unknown-snapshot", UNREADABLE)(
    summary="A test uses a snapshot that does not exist, or that lies outside the policy's directory.",
    rationale="The test cannot run. A policy must not make gpolicy read arbitrary files, so a snapshot must lie in the"
    " directory of the policy and be at most 64 MiB large.",
    bad=f'{_CLUSTER}---\n{_TEST}    "on": {{snapshot: missing.json}}\n'
    "    check_instance: {memory-size: 2G, cpu-count: 2, disks: [10G], disk-template: plain}\n"
    "    expect: {refused: false}\n",
    good=f"{_CLUSTER}---\n{_TEST}"
    "    check_instance: {memory-size: 2G, cpu-count: 2, disks: [10G], disk-template: plain}\n"
    "    expect: {refused: false}\n",
)
SETTINGS_MISTAKE: Final = error_rule(
    "GP028", "settings-mistake", "verbs that work on many clusters would stop, or act on the wrong one"
)(
    summary="The settings file says something of clusters or of a roll-out that cannot be right.",
    rationale="A policy that is not there, an address of two clusters, or a wave without a cluster is trouble for verbs"
    " that work on many clusters; `check --all`, `--fix` and `--diff` stop there. What the settings file says of"
    " `check` itself is no finding: check then cannot run.",
)
FILE_NOT_READ: Final = warning_rule("GP026", "file-not-read")(
    summary="A file in the policy's directory begins as a policy does, but its name has another ending than YAML's.",
    rationale="gpolicy reads files that end in .yaml or .yml, in small letters, and that do not begin with a dot: what"
    " this one declares does not hold. Copies beside their originals (cluster.yaml.bak) and what editors and patches"
    " leave (~, .orig, .rej) are skipped, as are files that are switched off (.disabled, .off) and templates.",
)
NOTHING_DECLARED: Final = warning_rule("GP027", "nothing-declared")(
    summary="The policy has no document.",
    rationale="Its files are empty, or hold comments only: nothing is checked, and a plan changes nothing. Most likely"
    " a file was cut off, or another one was meant.",
    bad="# nothing yet\n",
    good=_CLUSTER,
)
