"""Why check does not report some seeded mistakes, or only as an info."""

from __future__ import annotations

from typing import Final

REASONS: Final = {
    "a disk template that the group does not allow": "These policies do not say which templates are enabled, and"
    " `check` does not assume Ganeti's default. `gpolicy test` finds it.",
    "numbers for a controller that is off": "GP122 reports it as an info, and ignores Ganeti's default numbers, which"
    " every cluster has.",
    "a static rate beside the dynamic controller": "GP122 reports it as an info, and ignores Ganeti's default rate.",
    "CPUs of a dedicated group shared": "GP406 reports it as an info: exclusive disks with shared CPUs are possible.",
    "a switch without Open vSwitch": "GP143 reports it as an info: the values are stored and have no effect.",
    "a parameter pasted from the neighbouring pair": "GP218 reports it as an info: sizes for databases beside sizes for"
    " archives look the same.",
    "all nodes in one failure domain": "The policy declares no groups, so `check` does not know whether these are all"
    " nodes. GP519 finds it with `--state`.",
    "a node in two racks": "GP521 reports it as an info: a node with two power feeds rightly has two tags.",
    "a node without its place in a domain": "Nothing else in the policy names the node. GP520 finds it with `--state`.",
    "an owned prefix misspelt": "The prefix has two letters: almost any short name is close to it.",
}
