"""GP750: instances that lie wrong by the tags of the policy, as `gpolicy plan` compares them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, Same
from gpolicy.findings import Span, warning_rule
from gpolicy.ganeti.parameter import Level
from gpolicy.printable import some
from gpolicy.rules.against_cluster.verdicts import PlanRule, prospect_of
from gpolicy.rules.examples import GROUP
from gpolicy.rules.tags.domains import LOCATION

if TYPE_CHECKING:
    from gpolicy.checking.tags import Tag
    from gpolicy.impact.location_change import LocationChange

_MOST_TAGS: Final = 3


def _in_racks(first: str, second: str) -> str:
    sets = "".join(
        f'---\ngpolicy: v1\nkind: NodeSet\nname: {name}\nnodes: [{name}.example.org]\ntags: ["rack:{rack}"]\n'
        for name, rack in (("node1", first), ("node2", second), ("node3", "c"))
    )
    return f"{GROUP}---\ngpolicy: v1\nkind: TagRules\nfailure_domains: [rack]\n{sets}"


class PlacedAgainstTags(PlanRule):
    info = warning_rule("GP750", "placed-against-tags")(
        summary="The policy's tags make the place of an instance wrong: both of its nodes in one failure domain, two"
        " instances with one exclusion tag together, or nowhere to go.",
        rationale="Tags move no instance. Until somebody does, a failure of the domain takes both copies of the disks,"
        " instances that are to be apart fail together, or Ganeti's tools find no node for one. `gpolicy plan` shows"
        " each of them, and the moves that cure it.",
        source=LOCATION,
        bad=_in_racks("a", "a"),
        good=_in_racks("a", "b"),
    )

    better = ((Same.PLACE, ("GP507", "GP518", "GP519")),)  # they say the same of all instances

    def check(self, context: Context) -> Iterator[Hit]:
        if not context.tags and not context.policy.owned:
            return
        prospect = context.once(prospect_of)
        known = prospect.impact("location").location if prospect else None
        found: dict[tuple[str, Span | None], dict[str, list[_Wrong]]] = defaultdict(lambda: defaultdict(list))
        rules = [tag for tag in context.tags if tag.level is Level.CLUSTER and tag.family and tag.suffix]
        for wrong in _newly_wrong(known) if known else ():
            found[_place(context, rules, wrong)][wrong.words].append(wrong)
        for (label, span), kinds in found.items():
            message = "; ".join(_sentence(words, items) for words, items in kinds.items())
            hint = "correct the tags; if they are right, gpolicy plan shows the moves that cure it"
            yield self.hit(label, message, span, hint=hint)


@dataclass(frozen=True, slots=True)
class _Wrong:
    """What is newly wrong with the place of instances: a sentence about them, the tags, and nodes with these tags.

    `domain`: the failure domain whose values are too few.
    """

    words: str
    instances: tuple[str, ...]
    tags: tuple[str, ...]
    nodes: tuple[str, ...] = ()
    domain: str | None = None


def _newly_wrong(change: LocationChange) -> Iterator[_Wrong]:
    for shared in change.shared_domains.new:
        words = "both nodes of {names} would be in one failure domain ({tags})"
        yield _Wrong(words, (shared.instance,), shared.tags, (shared.primary_node, shared.secondary_node))
    for on_node in change.exclusion_conflicts.new:
        words = "{names} would each be on a node with another of its exclusion tag ({tags})"
        yield _Wrong(words, on_node.instances, (on_node.tag,))
    for conflict in change.domain_conflicts.new:
        if len(conflict.nodes) > 1:  # else they are on one node
            words = "{names} would each be in a failure domain with another of its exclusion tag ({tags})"
            yield _Wrong(words, conflict.instances, (conflict.domain, conflict.tag), conflict.nodes)
    for excess in change.unsatisfiable.new:
        places = "nodes" if excess.domain_kind is None else f"values of {excess.domain_kind}"
        words = f"group {excess.group} would have too few {places} to keep all with {{tags}} apart ({{names}})"
        yield _Wrong(words, excess.instances, (excess.tag,), domain=excess.domain_kind)
    for stranded in change.stranded.new:
        lacking = sorted({tag for _, tags in stranded.targets for tag in tags})
        words = "no other node would take {names} (for want of {tags})"
        yield _Wrong(words, (stranded.instance,), tuple(lacking), (stranded.primary_node,))
    for missing in change.desired_missing.new:
        words = f"no node of group {missing.group} would be where {{names}} should be ({{tags}})"
        yield _Wrong(words, (missing.instance,), (missing.tag,))


def _sentence(words: str, items: list[_Wrong]) -> str:
    names = some(sorted({name for item in items for name in item.instances}))
    tags = some(sorted({tag for item in items for tag in item.tags}), _MOST_TAGS)
    return words.replace("{names}", names).replace("{tags}", tags)


def _place(context: Context, rules: Sequence[Tag], wrong: _Wrong) -> tuple[str, Span | None]:
    """Return the object and the place of the tag that makes it wrong: a new one of the cluster, else of a node."""
    old = context.state.cluster.tags if context.state else frozenset()
    tags = (*wrong.tags, *([f"{wrong.domain}:"] if wrong.domain else []))
    about = [rule for rule in rules if any(tag.startswith(rule.suffix) for tag in tags)]
    about.sort(key=lambda rule: rule.text in old)
    if about and about[0].text not in old:
        return about[0].label, about[0].span
    had = context.state.nodes if context.state else {}
    for node in (node for nodes in context.tagged_nodes.values() for node in nodes if node.name in wrong.nodes):
        for tag in wrong.tags:
            place = node.tags.get(tag)
            if place is not None and tag not in had[node.name].tags:
                return place
    return (about[0].label, about[0].span) if about else ("cluster", None)
