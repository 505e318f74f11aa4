"""GP110, GP127, GP137: volume groups; GP12x: the disk parameters of drbd; GP134 to GP136 and others: its free strings
disk-custom and net-custom.
"""

import re
import shlex
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, When, error, hit, information, warning
from gpolicy.cluster.terms import VOLUME_GROUP
from gpolicy.findings import Related, Role, Severity, Span
from gpolicy.ganeti.amounts import rate_text
from gpolicy.ganeti.vocabulary import Path, drbd_options
from gpolicy.guessing import name_meant, rarer_slips, surely_meant
from gpolicy.policy import edits
from gpolicy.policy.model import Declared, Leaf
from gpolicy.printable import listed
from gpolicy.resolve.desired import volume_terms
from gpolicy.rules.node_limits import METAVG, pools_in
from gpolicy.rules.shared import RANGES, InForce, conflict, default_of, grouped, in_force, of_cluster, together

_VOLUME_GROUP: Final = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9_+.][A-Za-z0-9_+.-]*")
_BUILT_IN: Final = "xenvg"
_RESERVED: Final[Path] = ("reserved_lvs",)
BARRIER_SETS: Final = ("n", "b", "d", "f", "bd", "bf", "df", "bdf")
"""What disk-barriers can be, letters in any order: barriers, drain, flushes; n disables nothing."""
_CUSTOM: Final[tuple[Path, ...]] = (("diskparams", "drbd", "disk-custom"), ("diskparams", "drbd", "net-custom"))
_OF_GANETI: Final = {
    **{f"{no}disk-{what}": "disk-barriers" for no in ("", "no-") for what in ("barrier", "flushes", "drain")},
    **dict.fromkeys(("md-flushes", "no-md-flushes"), "meta-barriers"),
    "rate": "resync-rate",
    **{name: name for name in (*RANGES, "protocol")},
    **dict.fromkeys(("size", "allow-two-primaries", "cram-hmac-alg", "shared-secret"), ""),
}
"""Options of drbdsetup that Ganeti itself writes, and the parameter that it takes them from (if there is one)."""
_DYNAMIC: Final = ("c-plan-ahead", "c-fill-target", "c-delay-target", "c-min-rate", "c-max-rate")


@dataclass(frozen=True, slots=True)
class _Use:
    """A place that names a volume group, beside the cluster's own name of one."""

    declared: Declared
    leaf: Leaf
    name: str
    span: Span


@error("GP110")
def volume_group_name(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(VOLUME_GROUP, METAVG):
        name = str(leaf.value)
        if (name or leaf.path != VOLUME_GROUP) and not _VOLUME_GROUP.fullmatch(name):
            message = f"{leaf.dotted}: LVM has no volume group called {name!r}"
            yield hit(declared, message, leaf.span, "write letters, digits and + _ . -, but no - at the start")


@warning("GP137", When.MORE_WITH_STATE, explains=30, role=Role.ALSO_RELATED)
def volume_group_look_alike(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(METAVG):
        if re.fullmatch("[A-Za-z]|[0-9.]+[KMGT]?", str(leaf.value)):
            message = f"{leaf.dotted}: hardly any volume group is called {leaf.value}"
            yield hit(declared, message, leaf.span, "write the name that `vgs` shows")
    paths = [path for path in context.declared_at if path in (METAVG, _RESERVED) or path[0] == "disk_state"]
    leaves = [item for path in paths for item in context.declared_at[path]]
    own = of_cluster(context, VOLUME_GROUP) if leaves else None
    wanted = str(own.value) if own is not None else ""
    if own is None or not _VOLUME_GROUP.fullmatch(wanted):
        return  # GP110
    places = ((declared, leaf, *place) for declared, leaf in leaves for place in _volume_groups_of(leaf))
    others = grouped((name, _Use(declared, leaf, name, span)) for declared, leaf, name, span in places)
    uses = [use for named in others.values() for use in named]
    if own.leaf is not None and (forgotten := _forgotten(own.leaf, uses)):
        yield forgotten
        return
    yield from _among_others(context, uses, wanted)
    assigned = {name for item in context.cluster_and_groups for name in volume_terms(None, item).volume_groups}
    for name, named in others.items():
        yield from _unlike(name, named, wanted, is_assigned=name in assigned) if name != wanted else ()


def _forgotten(own: Leaf, uses: list[_Use]) -> Hit | None:
    """Return the cluster's own volume group if all else agrees on another one."""
    names, families = {use.name for use in uses}, {use.leaf.path[0] for use in uses}
    if len(names) != 1 or len(families) < 2 or str(own.value) in names:
        return None
    (name,) = names
    message = f"{own.dotted} is {own.value}, but all that names a volume group names {name}"
    related = tuple(Related(use.span, f"{use.leaf.path[-1]} is here") for use in uses)
    return hit("cluster", message, own.span, f"Did you mean `{name}`?", related)


def _unlike(name: str, named: list[_Use], wanted: str, *, is_assigned: bool) -> Iterator[Hit]:
    """Yield what is wrong with places that name another volume group than the cluster's."""
    first, is_slip = named[0], name_meant(name, [wanted]) is not None
    if {use.leaf.path[0] for use in named} == {"disk_state"} and not is_assigned:
        message = f"{first.leaf.dotted} describes the volume group {name}, which nothing else names"
        hint = f"Did you mean `{wanted}`?" if is_slip else f"the cluster's is {wanted}"
        yield hit(first.declared, message, first.span, hint)
    elif name == _BUILT_IN and all(use.leaf.path == METAVG for use in named):
        message = f"{first.leaf.dotted} names {name}, Ganeti's built-in volume group, but the cluster's is {wanted}"
        hint = f"write {wanted}, or accept this if the nodes have a volume group {name} as well"
        yield hit(first.declared, message, first.span, hint)
    elif is_slip or _looks_as(name) == _looks_as(wanted):
        for use in named:
            message = f"{use.leaf.dotted} names the volume group {name}, but the cluster's is {wanted}"
            yield hit(use.declared, message, use.span, f"Did you mean `{wanted}`?")


def _among_others(context: Context, uses: list[_Use], wanted: str) -> Iterator[Hit]:
    """Yield names, beside the cluster's own, that are almost another one which is written more often."""
    written = [(use.name, use.declared.label, use.span) for use in uses]
    for declared in context.cluster_and_groups:
        if place := declared.physical_volumes.get("volume_groups"):
            written += [(name, declared.label, place.span) for name in place.value]
    meant = rarer_slips(Counter(name for name, _, _ in written if name != wanted))
    for name, label, span in written:
        if near := meant.get(name):
            message = f"a volume group is called {name} here, but {near} elsewhere"
            yield hit(label, message, span, f"Did you mean `{near}`?")


def _volume_groups_of(leaf: Leaf) -> Iterator[tuple[str, Span]]:
    """Yield the volume groups that a leaf names, beside the cluster's own, with their places."""
    if leaf.path == METAVG:
        yield str(leaf.value), leaf.span
    elif leaf.path == _RESERVED:
        yield from ((text.partition("/")[0], leaf.at(index)) for index, text in enumerate(leaf.texts))
    else:  # of disk_state
        yield leaf.path[2], leaf.document.key_span(leaf.pointer[:3])


def _looks_as(name: str) -> str:
    """Return what a name has in common with those that people take for it, with or without `vg`: data and vgdata."""
    plain = name.lower().translate(str.maketrans("oil", "011"))
    return re.sub(r"^vg[-_.]?|[-_.]?vg$", "", plain) or plain


@information("GP127", When.MORE_WITH_STATE)
def metavg_not_counted(context: Context) -> Iterator[Hit]:
    group = of_cluster(context, VOLUME_GROUP)
    for declared in context.cluster_and_groups:
        meta = in_force(context, declared, METAVG)
        is_own = any(context.own(declared, path) for path in (METAVG, VOLUME_GROUP))
        if is_own and meta and group and meta.value and group.value and meta.value != group.value:
            message = f"metadata goes to {meta.value}, but capacity counts {group.value} only"
            found = conflict(context, declared, message, "", meta, group)
            now = context.observed.groups.get(declared.name, context.observed.cluster).own.get(METAVG, meta.value)
            nodes = ((each, node) for each in context.groups for node in context.members.hosts_in(each))
            known = (pools_in(context, each, node) for each, node in nodes)
            if now != meta.value and not any(pools and str(meta.value) in pools.others for pools in known):
                finding = replace(found.finding, hint=f"is {now} meant, as it is now?")
                found = metavg_not_counted.named(replace(found, finding=finding), Severity.WARNING)
            yield found


def _path(name: str) -> Path:
    return ("diskparams", "drbd", name)


@error("GP120", When.MORE_WITH_STATE)
def dynamic_resync_without_plan(context: Context) -> Iterator[Hit]:
    for declared, (dynamic, plan) in together(context, _path("dynamic-resync"), _path("c-plan-ahead")):
        if dynamic.value is True and plan.value == 0:
            message = "c-plan-ahead 0 turns off the controller that dynamic-resync turns on"
            hint = "write 20 (tenths of a second), or write dynamic-resync: false, and leave c-plan-ahead out"
            yield conflict(context, declared, message, hint, plan, dynamic)


@error("GP121", When.MORE_WITH_STATE, explains=13)
def resync_rates_reversed(context: Context) -> Iterator[Hit]:
    for declared, (low, high) in together(context, _path("c-min-rate"), _path("c-max-rate")):
        if low.number > high.number:  # a resync never needs a GiB a second
            message = f"c-min-rate {low.value} KiB/s is above c-max-rate {high.value} KiB/s"
            hint, values = "correct one of the two; swap them only if they are exchanged", (low, high)
            if high.number < RANGES["c-max-rate"][0]:  # GP125 follows from it
                hint, values = f"write c-max-rate with its unit: is {high.number:g}M meant?", (high, low)
            hint = f"Did you mean `{low.number / (1 << 20):g}M`?" if low.number >= 1 << 20 else hint
            yield conflict(context, declared, message, hint, *values)


@warning("GP122", When.MORE_WITH_STATE)
def resync_parameter_ignored(context: Context) -> Iterator[Hit]:
    is_known = context.policy.cluster is not None and context.whole and not context.declares(_path("dynamic-resync"))
    is_lost = is_known and all(leaf.value for _, leaf in context.explicit_at(_path("c-plan-ahead")))  # 0 is off
    for declared in context.cluster_and_groups:
        dynamic, static = (in_force(context, declared, _path(name)) for name in ("dynamic-resync", "resync-rate"))
        if dynamic is not None and dynamic.value is True:
            yield from _ignored(context, declared, ("resync-rate",), dynamic, "dynamic-resync is true")
            target = in_force(context, declared, _path("c-fill-target"))
            if target is not None and target.number > 0:
                reason = f"c-fill-target is {target.value}; the delay counts only if it is 0"
                yield from _ignored(context, declared, ("c-delay-target",), target, reason)
        elif dynamic is not None:
            yield from _ignored(context, declared, _DYNAMIC, dynamic, "dynamic-resync is false")
        elif static is not None and static.leaf is not None and context.own(declared, static.path) is static.leaf:
            reason = "resync-rate is for the other mode, and nothing says which"
            yield from _ignored(context, declared, _DYNAMIC, static, reason)
        elif is_lost:
            yield from _ignored(context, declared, _DYNAMIC, None, "nothing turns dynamic-resync on")


def _ignored(
    context: Context, declared: Declared, names: tuple[str, ...], cause: InForce | None, reason: str
) -> Iterator[Hit]:
    """Yield one hit for those of the values that an object sets, beside its cause, to other than Ganeti's defaults."""
    here = declared.document if cause and cause.leaf and cause.leaf.document is declared.document else None
    own = [leaf for name in names if (leaf := context.own(declared, _path(name))) and here in (None, leaf.document)]
    leaves = sorted((leaf for leaf in own if leaf.value != default_of(context, leaf.path)), key=lambda leaf: leaf.span)
    if not leaves or (cause is None and len(leaves) == 1):
        return  # a single value may be managed beside a switch elsewhere
    related = (Related(cause.leaf.span, f"{cause.path[-1]} is here"),) if cause and cause.leaf else ()
    hint = "" if cause else "add `dynamic-resync: true`, or remove them"
    rates = {"resync-rate": "c-max-rate", "c-max-rate": "resync-rate"}
    if cause and len(leaves) == 1 and (sibling := rates.get(leaves[0].path[-1])):
        written, counts = rate_text(int(leaves[0].number))[:-2], in_force(context, declared, _path(sibling))
        instead = f"write {sibling}: {written} instead, and remove {leaves[0].path[-1]}"
        hint = f"remove it: {sibling} counts" if counts else instead
        if counts and counts.number != leaves[0].number:
            hint = f"is {sibling}: {written} meant? It is {rate_text(int(counts.number))[:-2]}. Else {hint}"
    verb = "is" if len(leaves) == 1 else "are"
    message = f"{listed(leaf.path[-1] for leaf in leaves)} {verb} not used: {reason}"
    yield hit(declared, message, leaves[0].span, hint, related)


@error("GP123")
def drbd_barriers(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(_path("disk-barriers")):
        if "".join(sorted(set(str(leaf.value)))) not in BARRIER_SETS:
            message = f"disk-barriers cannot be {leaf.value!r}"
            hint = "write n (disable nothing), or some of b (barriers), f (flushes) and d (drain)"
            lower = str(leaf.value).lower()
            is_case = "".join(sorted(set(lower))) in BARRIER_SETS
            fix = edits.replace_word(context.policy.files, leaf.span, str(leaf.value), lower) if is_case else None
            yield hit(declared, message, leaf.span, hint, fix=fix)


@error("GP124")
def drbd_protocol(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(_path("protocol")):
        if leaf.value not in ("A", "B", "C"):
            meant = str(leaf.value).upper()
            is_case = meant in ("A", "B", "C")
            hint = f"Did you mean `{meant}`?" if is_case else "write C or B"
            fix = edits.replace_word(context.policy.files, leaf.span, str(leaf.value), meant) if is_case else None
            yield hit(declared, f"DRBD has no protocol {leaf.value!r}", leaf.span, hint, fix=fix)


@error("GP125")
def drbd_range(context: Context) -> Iterator[Hit]:
    for name, (low, high, unit) in RANGES.items():
        for declared, leaf in context.explicit_at(_path(name)):
            if not low <= leaf.number <= high:
                message = f"{name} is {leaf.value}: DRBD takes {low} to {high} ({unit})"
                yield hit(declared, message, leaf.span, f"write one of them, such as {default_of(context, leaf.path)}")


@warning("GP132")
def drbd_no_write_order(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(_path("disk-barriers")):
        if "".join(sorted(set(str(leaf.value)))) == "bdf":
            message = "with barriers, flushes and drain disabled DRBD does not keep writes in order"
            yield hit(declared, message, leaf.span, "write bf, which leaves drain on")


@warning("GP133")
def drbd_protocol_a(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(_path("protocol")):
        if leaf.value == "A":
            message = "with protocol A a failover loses the writes that the other node does not have yet"
            yield hit(declared, message, leaf.span, "write C or B, unless this is what you want")


@dataclass(frozen=True, slots=True)
class _Custom:
    """A free string: its words, None where the quotes do not match; and its options, by the names of drbdsetup."""

    declared: Declared
    leaf: Leaf
    words: tuple[str, ...] | None

    @property
    def options(self) -> tuple[str, ...]:
        return tuple(word.lstrip("-").partition("=")[0] for word in self.words or () if word.startswith("--"))

    @property
    def values(self) -> Iterator[tuple[str, str | None]]:
        """The options in order, each with its value, None without one; a word that belongs to none has no option."""
        name = ""
        for word in (*(self.words or ()), "--"):
            is_option = word.startswith("-") and not word[1:].isdecimal()
            if name or not is_option:
                yield name, None if is_option else word
            name, is_one, value = word.lstrip("-").partition("=") if is_option else ("", "", "")
            if is_one:
                yield name, value
                name = ""


def _strings(context: Context) -> Iterator[_Custom]:
    for declared, leaf in context.explicit_at(*_CUSTOM):
        if len(str(leaf.value)) > 4096:
            continue  # no options that anybody wrote
        words = None
        with suppress(ValueError):
            words = tuple(shlex.split(str(leaf.value)))
        yield _Custom(declared, leaf, words)


@warning("GP134")
def drbd_custom_form(context: Context) -> Iterator[Hit]:
    for custom in _strings(context):
        name = custom.leaf.path[-1]
        if custom.words is None:
            yield hit(custom.declared, f"{name} has an open quote", custom.leaf.span, "close the quote")
        elif single := next((word for word in custom.words if re.match("-[a-z][a-z0-9]*-?[a-z]", word)), ""):
            message = f"{name} has {single!r}: an option of more than one letter begins with two dashes"
            yield hit(custom.declared, message, custom.leaf.span, f"Did you mean `-{single}`?")
        elif custom.words and not custom.words[0].startswith("-"):
            message = f"{name} starts with {custom.words[0]!r}, which is not an option"
            yield hit(custom.declared, message, custom.leaf.span, f"Did you mean `--{custom.words[0]}`?")


@warning("GP135", When.MORE_WITH_STATE)
def drbd_custom_contradicts(context: Context) -> Iterator[Hit]:
    for custom in _strings(context):
        dynamic, given = in_force(context, custom.declared, _path("dynamic-resync")), dict(custom.values)
        for option in (option for option in dict.fromkeys(custom.options) if option in _OF_GANETI):
            own = _OF_GANETI[option]
            is_dynamic = dynamic is not None and dynamic.value is True  # Ganeti's default is false
            if own in RANGES and is_dynamic is not (own in _DYNAMIC):
                continue  # with DRBD 8.4, --c-plan-ahead=0 is how dynamic-resync: false gets its fixed rate
            leaf = context.effective(custom.declared, ("diskparams", "drbd", own))
            related = (Related(leaf.span, f"{own} is here"),) if leaf else ()
            whence = f" from {own}" if own else ""
            message = f"{custom.leaf.path[-1]} sets --{option}, which Ganeti sets itself{whence}"
            better = f"write {own}: {given.get(option)}" if own in (*RANGES, "protocol") else f"set {own}"
            hint = f"{better} instead, and remove --{option}" if own else f"remove --{option}"
            yield hit(custom.declared, message, custom.leaf.span, hint, related)


@warning("GP156")
def drbd_custom_unknown(context: Context) -> Iterator[Hit]:
    for custom in _strings(context):
        for option in dict.fromkeys(custom.options):
            near = None if option in drbd_options() else surely_meant(option, drbd_options())
            if near is not None:
                message = f"{custom.leaf.path[-1]} holds --{option}, which drbdsetup does not know"
                yield hit(custom.declared, message, custom.leaf.span, f"Did you mean `--{near}`?")


@warning("GP136")
def drbd_custom_section(context: Context) -> Iterator[Hit]:
    for custom in _strings(context):
        name = custom.leaf.path[-1]
        for option in dict.fromkeys(custom.options):
            holders = drbd_options()[option].holders if option in drbd_options() and option not in _OF_GANETI else ()
            if holders and name not in holders:
                message = f"{name} holds --{option}, which belongs to {holders[0]}"
                yield hit(custom.declared, message, custom.leaf.span, f"move it to {holders[0]}")


@warning("GP158")
def drbd_custom_value(context: Context) -> Iterator[Hit]:
    for custom in _strings(context):
        given: dict[str, str | None] = {}
        starts_with_word = bool(custom.words) and not (custom.words or ("",))[0].startswith("-")  # GP134
        for option, value in custom.values:
            message, hint = _wrong(option, value)
            if option in given and option not in _OF_GANETI:
                message, hint = f"sets --{option} twice", "leave one of them"
            if message and not (starts_with_word and not option):
                message = f"{custom.leaf.path[-1]} {message}"
                yield hit(custom.declared, message, custom.leaf.span, hint, missing=f"options {custom.leaf.span}")
            given[option] = value
        late = _too_late(given)
        if late:
            message = f"{custom.leaf.path[-1]} has a timeout of {given['timeout']} tenths of a second, but {late}"
            yield hit(custom.declared, message, custom.leaf.span, "write a shorter timeout")


def _wrong(option: str, value: str | None) -> tuple[str, str]:
    """Return what is wrong with the value of an option, and what to write; nothing if it is right, or not known."""
    if not option:
        return f"has the word {value!r}, which belongs to no option", "write options only, each with --"
    known = drbd_options().get(option)
    if known is None or option in _OF_GANETI:
        return "", ""  # GP156 and GP135
    if value is None:
        needs = not (option.startswith("no-") or known.is_switch) and (known.words or known.numbers)
        return (f"gives --{option} no value", f"write {known.refuses('')}") if needs else ("", "")
    wanted = known.refuses(value)
    return (f"gives --{option} the value {value!r}, which it does not take", f"write {wanted}") if wanted else ("", "")


def _too_late(given: dict[str, str | None]) -> str:
    """Return which interval a timeout is not below; nothing where it is, or the option is not there."""
    timeout = given.get("timeout") or ""
    for name in ("ping-int", "connect-int"):
        interval = given.get(name) or ""
        if timeout.isdecimal() and interval.isdecimal() and int(timeout) >= int(interval) * 10:
            return f"{name} is {interval} s"
    return ""
