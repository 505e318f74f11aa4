"""GP834 and GP835: what the clusters of a fleet say beside their base, and what of it holds nowhere."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, Final

from gpolicy.checking.fleet import Fleet, FleetHit, FleetRule, place_of
from gpolicy.findings import Related, Severity, info_rule, warning_rule
from gpolicy.ganeti.parameter import Path
from gpolicy.policy.model import INHERIT, Declared, Leaf, Policy
from gpolicy.policy.source_file import YamlDocument
from gpolicy.rules.fleet.examples import BASE, files, member

_POLICY_FAMILIES: Final = frozenset(
    {"ipolicy", "diskparams", "ndparams", "hv_state", "disk_state", "beparams", "hvparams", "enabled_disk_templates"}
)
"""What a fleet has in common, where a cluster does not say otherwise; devices, directories and the like it has not."""


class FleetDrift(FleetRule):
    info = info_rule("GP834", "fleet-drift")(
        summary="Clusters with the same base have different values that the base does not set.",
        rationale="Values that only the clusters' own documents set drift apart unseen. Put the common value into the"
        " base, and override it where a cluster must differ: gpolicy does not report an override of a base.",
        bad=files(
            BASE, *(member(town, f"ipolicy: {{vcpu-ratio: {n}}}\n") for town, n in (("amsterdam", 4), ("berlin", 8)))
        ),
        good=files(
            BASE + "ipolicy: {vcpu-ratio: 4}\n", member("amsterdam"), member("berlin", "ipolicy: {vcpu-ratio: 8}\n")
        ),
    )

    def check(self, fleet: Fleet) -> Iterator[FleetHit]:
        for members in fleet.with_one_base:
            said: dict[Path, list[tuple[int, Leaf]]] = defaultdict(list)
            for number in members:
                cluster = fleet.policies[number].cluster
                for path, leaf in cluster.leaves.items() if cluster else ():
                    if path[0] in _POLICY_FAMILIES and leaf.value is not INHERIT:
                        said[path].append((number, leaf))
            for path, entries in said.items():
                is_of_base = any(
                    leaf.overridden or not _is_own(fleet.policies[number], leaf) for number, leaf in entries
                )
                counts = Counter(repr(leaf.value) for _, leaf in entries)
                if is_of_base or len(counts) < 2:
                    continue
                usual = counts.most_common(1)[0][0]
                other, example = next((number, leaf) for number, leaf in entries if repr(leaf.value) == usual)
                for number, leaf in entries:
                    if repr(leaf.value) != usual:
                        message = f"{'.'.join(path)} differs from {fleet.name(other)}, which has the same base"
                        related = (Related(example.span, f"the value of {fleet.name(other)}"),)
                        hint = "put the common value into the base, and override it where a cluster must differ"
                        yield self.hit(number, "cluster", message, leaf.span, hint, related)


class BaseHoldsNowhere(FleetRule):
    info = warning_rule("GP835", "base-holds-nowhere")(
        summary="Every cluster overrides a value of their common base.",
        rationale="A reader of the base believes that the value holds, but it holds in none of the checked clusters.",
        bad=files(
            BASE,
            *(member(town, "diskparams:\n  drbd: {c-max-rate: 200M}\n") for town in ("amsterdam", "berlin")),
        ),
        good=files(BASE, member("amsterdam"), member("berlin", "diskparams:\n  drbd: {c-max-rate: 200M}\n")),
    )

    def check(self, fleet: Fleet) -> Iterator[FleetHit]:
        if any(finding.severity is Severity.ERROR for policy in fleet.policies for finding in policy.findings):
            return  # it may hold in what could not be read
        holding: set[tuple[Any, ...]] = set()
        overridden: dict[tuple[Any, ...], list[tuple[int, Declared, Leaf]]] = defaultdict(list)
        for number, policy in enumerate(fleet.policies):
            for declared in policy.objects:
                for leaf in declared.leaves.values():
                    holding.add(place_of(leaf.span))
                    for below in leaf.overridden:
                        overridden[place_of(below.span)].append((number, declared, below))
        for place, uses in overridden.items():
            clusters = {number for number, _, _ in uses}
            if place in holding or len(clusters) < 2:
                continue
            number, declared, leaf = uses[0]
            users = list(dict.fromkeys(fleet.name(user) for user, _, _ in uses))
            shown = f"{' and '.join(users[:2])}{f' and {len(users) - 2} more' if len(users) > 2 else ''}"
            verb = "overrides" if len(users) == 1 else "override"
            message = f"{leaf.dotted} of this base holds in no cluster: {shown} {verb} it"
            hint = "write the value that most clusters need into the base"
            yield self.hit(number, declared.label, message, leaf.span, hint)


def _is_own(policy: Policy, leaf: Leaf) -> bool:
    own: tuple[YamlDocument, ...] = policy.documents
    return any(leaf.document.file == document.file for document in own)
