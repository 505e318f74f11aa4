"""GP822 and GP823: waivers that never end, and waivers of drift that can accept nothing."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import warning_rule
from gpolicy.ganeti.parameter import Level
from gpolicy.guessing import did_you_mean, did_you_mean_one_of
from gpolicy.policy.model import Waiver
from gpolicy.rules.examples import GROUP

_LAST_YEAR: Final = 2100
_SOON: Final = 10  # years
_GROUP: Final = f"{GROUP}ndparams: {{ssh_port: 2222}}\n---\ngpolicy: v1\nkind: Waiver\nwaivers:\n"
_ANY_NODE: Final = "node/*"
_GLOB: Final = frozenset("*?[")


def _drift(where: str, until: str = "2031-12-31") -> str:
    return f'{_GROUP}  - {{rule: drift, where: "{where}", reason: being tried, until: "{until}"}}\n'


class WaiverEndless(Rule):
    info = warning_rule("GP822", "waiver-endless")(
        summary="A waiver has no real end: its last day is in another century, or in the year that two exchanged digits"
        " make.",
        rationale="A waiver is for a time, so that somebody looks at it again. What is accepted for good belongs in"
        " gpolicy.toml, or in a comment beside the value.",
        source="gpolicy",
        bad=_drift("group/gold", "2999-12-31"),
        good=_drift("group/gold"),
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for waiver in context.policy.waivers:
            year = waiver.until.partition("-")[0]
            if year.isdigit() and int(year) >= _LAST_YEAR:
                message = f"the waiver of {waiver.rule} lasts until {waiver.until}"
                hint = "write a day on which somebody should look again; ignore the rule in gpolicy.toml for good"
                yield self.hit("", message, waiver.span, hint=hint)
            elif year.isdigit() and (meant := _year_meant(year, context.today.year)):
                message = f"the waiver of {waiver.rule} lasts until {waiver.until}"
                hint = f"Did you mean `{meant}{waiver.until[len(year) :]}`?"
                yield self.hit("", message, waiver.span, hint=hint)


def _year_meant(year: str, now: int) -> str:
    """Return the year that two exchanged digits moved far away, or nothing: 2027 of 2072."""
    meant = f"{year[:-2]}{year[-1]}{year[-2:-1]}"
    return meant if int(year) > now + _SOON and now <= int(meant) <= now + _SOON else ""


class DriftWaiverIdle(Rule):
    info = warning_rule("GP823", "drift-waiver-idle")(
        summary="A waiver of drift names what the policy does not declare, or what another one names.",
        rationale="Only what the policy declares can drift. `where` is cluster, group/NAME, node/NAME or a file, or one"
        " value as OBJECT:PATH (group/gold:ipolicy.vcpu-ratio).",
        source="gpolicy drift",
        bad=_drift("group/gold:ndparams.ssh_prot"),
        good=_drift("group/gold:ndparams.ssh_port"),
    )
    finds_more_with_state = needs_whole_policy = True

    def check(self, context: Context) -> Iterator[Hit]:
        first: dict[str, Waiver] = {}
        for waiver in context.policy.waivers:
            if waiver.rule not in ("drift", "GP821"):
                continue
            wrong = _mistake(context, waiver)
            if wrong is None and first.setdefault(waiver.where, waiver) is not waiver:
                wrong = f"another waiver accepts drift at {waiver.where!r} as well", "keep the one that is right"
            if wrong is not None:
                yield self.hit("", wrong[0], waiver.span, hint=wrong[1])


def _mistake(context: Context, waiver: Waiver) -> tuple[str, str] | None:
    """Return what is wrong with the `where` of a waiver of drift, and a hint; None if it can accept something."""
    name, colon, path = waiver.where.partition(":")
    if not colon and any(fnmatchcase(file, f"*{waiver.where}") for file in context.policy.paths):
        return None
    objects = _objects(context)
    named = [label for label in objects if fnmatchcase(label, name)]
    if name.startswith("node/") and not named and _may_be_declared(context, name.removeprefix("node/"), path):
        named = [_ANY_NODE]
    if not named:
        known = sorted(label for label in objects if label != _ANY_NODE)
        return f"the policy declares nothing of {name!r}", did_you_mean_one_of(name, "objects", known)
    paths = {path for label in named for path in objects[label]}
    if colon and not any(fnmatchcase(declared, path) for declared in paths):
        hint = did_you_mean(path, paths, "name a value that it declares")
        return f"the policy does not declare {path} of {name}", hint
    return None


def _objects(context: Context) -> dict[str, set[str]]:
    """Return what can drift, as `where` names it, with the paths of its declared values."""
    of_nodes = {leaf.dotted for item in context.policy.node_sets for leaf in context.leaves(item).values()}
    of_nodes |= {"tags", "group"}
    found = {"cluster": {"tags"}, _ANY_NODE: of_nodes}
    for item in (context.policy.cluster, *context.policy.groups.values()):
        if item is not None:
            paths = {leaf.dotted for leaf in context.leaves(item).values()}
            found.setdefault(item.label, set()).update(paths, ("tags", "name", "removed"))
    found |= {f"node/{node}": of_nodes for node in (context.state.nodes if context.state else ())}
    return found


def _may_be_declared(context: Context, node: str, path: str) -> bool:
    """Return whether the policy may say something of a node (a name or a glob), as far as one knows without state."""
    if context.state is not None:
        return False
    groups, sets = context.policy.groups.values(), context.policy.node_sets
    owned = any(Level.NODE in prefix.value.levels for rules in context.policy.tag_rules for prefix in rules.owns)
    is_open = (owned and path == "tags") or any(group.nodes is None for group in groups)
    names = [name.value for group in groups for name in group.nodes or ()]
    names += [name.value for item in sets for name in item.nodes or ()]
    return is_open or bool(_GLOB & set(node)) or any(fnmatchcase(node, name) for name in names)
