"""Why check does not report some seeded mistakes, or only as an info."""

from __future__ import annotations

from typing import Final

REASONS: Final = {
    "a disk template that the group does not allow": "These policies do not say which templates are enabled, and"
    " `check` does not assume Ganeti's default. `gpolicy test` finds it.",
    "numbers for a controller that is off": "GP122 ignores Ganeti's default numbers, which every cluster has.",
    "a static rate beside the dynamic controller": "GP122 ignores Ganeti's default rate, which every cluster has.",
    "CPUs of a dedicated group shared": "GP406 reports it as an info: exclusive disks with shared CPUs are possible.",
    "a parameter pasted from the neighbouring pair": "GP218 reports it as an info: sizes for databases beside sizes for"
    " archives look the same.",
    "a smaller pair that reaches into the larger": "GP229 reports it as an info: the two share one bound only.",
    "all nodes in one failure domain": "The policy declares no groups, so `check` does not know whether these are all"
    " nodes. GP519 finds it with `--state`.",
    "a node without its place in a domain": "Nothing else in the policy names the node. GP520 finds it with `--state`.",
    "an owned prefix misspelt": "The prefix has two letters: almost any short name is close to it.",
    "a test that holds whatever fits": "`check` looks at the form of expectations, not at whether they can fail.",
    "the only home of its sizes closed": "A group with sizes of its own is often closed on purpose, such as for a"
    " repair; the plan shows the capacity that is lost.",
    "an edit of what is not there": "`gpolicy test` says so; instances are not looked up before.",
    "more failures survived than there are nodes": "`check` does not count the nodes of a test.",
    "an edit that changes nothing": "`check` does not run the edits of a test.",
    "the default memory of instances in the next greater unit": "Where a group promises no hardware, 4T is possible.",
    "the memory of the hypervisor in the next greater unit": "Without promised hardware nothing contradicts it.",
    "the memory of nodes without its unit": "Where a group promises no hardware, only sizes far too small are found.",
    "memory sold less than once": "It keeps memory free, and may be meant.",
    "a container that may administer the system": "The list is text for LXC; only its form is known.",
    "a device of the node as a CD-ROM": "A drive of the node is a device, too.",
    "capabilities with blanks between them": "The list is text for LXC; only its form is known.",
    "interfaces of a switch that no node has": "A switch can be set up without Ganeti.",
    "an option that hail does not have": "Options of the allocator are not in the table of parameters.",
    "a template for adopted disks as the default": "Where the policy has a single pair, nothing contradicts it.",
    "a reserved volume of a group that is misspelt": "A reserved volume may be in any volume group of the node.",
}
