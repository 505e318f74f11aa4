"""The files of a first policy: small, correct, and explained by comments."""

from __future__ import annotations

from typing import Final

from gpolicy.errors import UsageError
from gpolicy.writing.documents import FIRST_GUARDS, GUARDS_FILE, SCHEMA_FILE, guards_document, modelines, schema_text
from gpolicy.writing.written import name_complaint
from gpolicy.writing.yaml_text import scalar

_CLUSTER: Final = """\
# What the cluster itself should be. `gpolicy check` finds mistakes, `gpolicy plan --state …` shows what would change.
#
# Each value has one of three states:
#   not written       gpolicy does not manage it and never touches it
#   a value           the object is to have this value of its own
#   inherit           (groups and nodes) the object is to have no value of its own, and follows the level above
#
# A policy for a cluster that is there already is best begun with `gpolicy adopt --state … -o DIR`.
gpolicy: v1
kind: Cluster
name: NAME
ganeti_version: "3.0"                        # quoted: it is a name, not a number

enabled_disk_templates: [drbd, plain]        # the first is the default of new instances

# Which instances are legal: one that fits entirely inside at least one pair of bounds. Sizes are MiB, or have a unit.
ipolicy:
  minmax:                                    # biggest first; bounds are inclusive, so pairs must not even touch
    - name: large                            # names are for guards, tests and reports; Ganeti does not store them
      min: {memory-size: 16G, cpu-count: 4, disk-size: 100G, disk-count: 1, nic-count: 1, spindle-use: 1}
      max: {memory-size: 64G, cpu-count: 16, disk-size: 1T, disk-count: 8, nic-count: 8, spindle-use: 8}
    - name: small
      min: {memory-size: 1G, cpu-count: 1, disk-size: 10G, disk-count: 1, nic-count: 1, spindle-use: 1}
      max: {memory-size: 12G, cpu-count: 3, disk-size: 90G, disk-count: 4, nic-count: 4, spindle-use: 2}
  std: {memory-size: 4G, cpu-count: 2, disk-size: 40G, disk-count: 1, nic-count: 1, spindle-use: 1}
  disk-templates: [drbd, plain]              # each must be enabled above
  vcpu-ratio: 4                              # virtual CPUs per CPU thread of a node; htools and hail heed it
  spindle-ratio: 32
"""

_GROUP: Final = """\
# A node group. Ganeti's own name for the first group of a cluster is `default`.
gpolicy: v1
kind: NodeGroup
name: default
alloc_policy: preferred                      # not inherited: preferred, last_resort or unallocable

# nodes: [node1.example.org, node2.example.org]   # names or globs; without it, membership is not managed

# A group's value wins over the cluster's, also when both are the same. To follow the cluster, and go on doing so:
ipolicy:
  vcpu-ratio: inherit
  spindle-ratio: inherit
"""


def starter_files(name: str) -> dict[str, str]:
    """Return the policy of a cluster called `name`: text by relative path. Raise UsageError for an invalid name."""
    reason = name_complaint(name, pattern=False)
    if reason:
        raise UsageError(f"{name!r} cannot be the name of a cluster: {reason}")
    return {
        "cluster.yaml": _file(_CLUSTER.replace("name: NAME\n", f"name: {scalar(name)}\n"), SCHEMA_FILE),
        "groups/default.yaml": _file(_GROUP, f"../{SCHEMA_FILE}"),
        GUARDS_FILE: guards_document(FIRST_GUARDS),
        SCHEMA_FILE: schema_text(),
    }


def _file(text: str, schema: str) -> str:
    return "\n".join([*modelines(schema), text])
