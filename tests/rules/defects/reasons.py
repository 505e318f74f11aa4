"""Why check does not report some seeded mistakes, or only as an info."""

from __future__ import annotations

from typing import Final

REASONS: Final = {
    "a disk template that the group does not allow": "These policies do not say which templates are enabled or allowed,"
    " and Ganeti's default is never assumed. `gpolicy test` shows it.",
    "numbers for a controller that is off": "Told as an info (GP122), and not at all for Ganeti's default numbers:"
    " every cluster has those, whether the controller is on or not.",
    "a static rate beside the dynamic controller": "Told as an info (GP122), and not at all for Ganeti's default rate.",
    "a switch without Open vSwitch": "Told as an info (GP143): the values are kept and do nothing.",
    "a parameter pasted from the neighbouring pair": "Told as an info (GP218): a spec with more memory beside one with"
    " more disk is also what sizes for databases beside sizes for archives look like.",
    "the unit of a least size forgotten": "Only the least disk size is lower than meant, and no other spec is in its"
    " way: disks of 100 MiB are not impossible.",
    "all nodes in one failure domain": "The policy declares no groups, so whether these are all nodes is not known."
    " With a cluster's state GP519 finds it.",
    "a node in two racks": "Told as an info (GP521) where the nodes of a group are known: a node with two power feeds"
    " rightly has two tags, and nobody can tell a rack from a feed.",
    "a node without its place in a domain": "Nothing else in the policy names the node. With a cluster's state GP520"
    " finds it.",
    "an owned prefix misspelt": "The name has two letters: almost any short name would pass for a slip of it.",
    "a ratio with two digits too many": "Told as an info (GP115): some switch the limit off that way, since Ganeti has"
    " no other.",
}
