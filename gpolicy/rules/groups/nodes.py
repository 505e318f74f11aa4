"""GP602, GP606, GP611 to GP613, GP619 and GP621: the nodes that groups and node sets name, and their patterns."""

import re
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from itertools import islice
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, When, error, hit, see, warning
from gpolicy.checking.tags import share_nodes, takes_in
from gpolicy.findings import AMBIGUOUS, Located, Related, Role, Span
from gpolicy.ganeti.vocabulary import Level
from gpolicy.guessing import LETTERS, MOST_ALIKE, MOST_GUESSES, is_one_slip, is_typing_slip, name_meant, node_meant
from gpolicy.policy import edits
from gpolicy.policy.model import WILDCARD, Declared, GroupPolicy, ends, is_glob, matches, unlikely, written_out
from gpolicy.printable import some
from gpolicy.resolve.desired import NO_NODE, glob_beginning
from gpolicy.rules import node_lists
from gpolicy.rules.node_lists import ALL_THAT_COME, digits_meant, list_meant, lists_of_nodes, unknown_in_sets
from gpolicy.rules.shared import grouped, repeated

_BRACKETS: Final = re.compile(r"\[[^][]*+\]")
MOST_LOOKED_AT: Final = 1_000_000
MOST_COMPARED: Final = 50_000
"""Pairs of patterns that are looked at, and that are compared: each with each of some 300 groups."""
MOST_NAMES: Final = 500_000
"""Names that patterns are written out to, to compare them."""
_LETTERS_BETWEEN: Final = re.compile(r"\[([0-9a-z])-([0-9a-z])\]")
_STEM: Final = re.compile("[a-z]{4,}(?=[^a-z])", re.IGNORECASE)
_DOMAIN: Final = re.compile(r"(?:\[[^][]*+\]|[^.\[\]])++\.(.+)")
_MOST_DOMAINS: Final = 20


@error("GP602", When.NO_STATE, stays=AMBIGUOUS, explains=0)
def node_named_twice(context: Context) -> Iterator[Hit]:
    named = [(group, node) for group in context.groups for node in group.nodes or () if not is_glob(node.value)]
    for (group, node), (other, place) in repeated(named, lambda item: item[1].value):
        if other is not group:
            message = f"{node.value} is to be in {group.name} and in {other.name}"
            yield hit(group, message, node.span, "leave it in one of the two", see(place.span, f"in {other.name} here"))


@warning("GP606", when=When.STATE)
def pattern_without_node(context: Context) -> Iterator[Hit]:
    known, wanted = context.observed.nodes, context.desired.nodes
    for declared, entries in lists_of_nodes(context):
        for entry in (entry for entry in entries if is_glob(entry.value)):
            if not any(matches(entry.value, name) for name in known):
                message = f"no node of the cluster matches {entry.value}"
                meant = _pattern_meant(context, declared, entry.value)
                hint = f"Did you mean `{meant}`?" if meant else "correct the pattern, or add the nodes first"
                yield hit(declared, message, entry.span, hint, missing="" if wanted else NO_NODE)
            elif not any(map(ALL_THAT_COME.search, _BRACKETS.findall(entry.value))):
                lacking = [name for name in written_out(entry.value) or () if name not in known]
                here = (wanted[name].group for name in known if name in wanted and matches(entry.value, name))
                homes = {home.value for home in here if home is not None}
                if declared.level is Level.GROUP and homes and declared.name not in homes:
                    message = f"all nodes that {entry.value} matches are named by group {some(sorted(homes))}"
                    yield hit(declared, message, entry.span, "remove the names there: a name wins over a pattern")
                elif lacking:
                    message = f"{entry.value} lists {some(lacking)}, which the cluster does not have"
                    yield hit(declared, message, entry.span, "narrow the pattern, or add the nodes first")


def _pattern_meant(context: Context, declared: Declared, pattern: str) -> str:
    """Return the only pattern one slip away, or in another domain, that matches nodes which no group names.

    Of a node set, any nodes.
    """
    begin, wanted = ends(pattern)[0], context.desired.nodes
    claimed = {name for name, node in wanted.items() if node.group} if declared.level is Level.GROUP else set[str]()
    free = context.observed.nodes.keys() - claimed
    stems = {re.split("[0-9.]", name)[0] for name in free} if not re.search("[0-9.]", begin) else set[str]()
    near = (stem for stem in stems if is_one_slip(begin, stem)) if len(stems) <= MOST_ALIKE else ()
    guesses = [f"{stem}{pattern[len(begin) :]}" for stem in near]
    own = _DOMAIN.fullmatch(pattern)
    domains = {name.partition(".")[2] for name in free} - {own[1] if own else ""}
    guesses += [f"{pattern[: own.start(1)]}{domain}" for domain in domains if own and len(domains) <= _MOST_DOMAINS]
    guesses.append(digits_meant(context, pattern))
    fitting = [guess for guess in guesses if any(matches(guess, name) for name in free)]
    return fitting[0] if len(fitting) == 1 else ""


@warning("GP619", When.STATE | When.WHOLE, explains=0)
def pattern_stops_short(context: Context) -> Iterator[Hit]:
    claimed = {entry.value for group in context.groups for entry in group.nodes or ()}
    globs = [entry for entry in claimed if is_glob(entry)]
    homes = {node.name: context.desired.name_after(node.group) for node in context.observed.nodes.values()}
    for group in context.groups:
        for entry, names in _just_missed(context, group, claimed, globs).items():
            verb, what = ("is", "it") if len(names) == 1 else ("are", "them")
            lacks, cure = f"its list lacks {what}", f"add {what}"
            if is_glob(entry.value):
                lacks, cure = f"{entry.value} does not match {what}", "widen the pattern"
            message = f"{some(names)} {verb} in {group.name}, but {lacks}, and no other group names {what}"
            hint = f"{cure}, or name {what} in another group"
            moved = [item for item in group.nodes or () if homes.get(item.value, group.name) != group.name]
            span = group.document.value_span(("nodes",)) if entry in moved else entry.span
            if len(moved) == len(names) == 1 < len(group.nodes or ()):
                span, hint = moved[0].span, f"is {names[0]} meant? Else {hint}"
            yield hit(group, message, span, hint)


def _just_missed(
    context: Context, group: GroupPolicy, claimed: set[str], globs: list[str]
) -> dict[Located[str], list[str]]:
    """Return the nodes in a group that nobody claims, by the pattern or the name of the group that almost does."""
    entries, wanted = group.nodes or (), context.desired.nodes
    nodes = sorted(node.name for node in context.members.nodes_in(group)) if entries else []
    left = [name for name in nodes if name not in claimed and not any(matches(glob, name) for glob in globs)]
    listed = [entry for entry in entries if not is_glob(entry.value)]
    homes = [home.group for entry in listed if (home := wanted.get(entry.value)) and home.group]
    is_whole = 2 * len(left) <= len(nodes) and [home.value for home in homes] == [group.name] * len(listed)
    by_number = {node_lists.nodes_like(entry.value): entry for entry in listed if is_whole}
    ranges = [entry for entry in entries if "[" in entry.value]
    near: dict[Located[str], list[str]] = {}
    for name in left:
        wide = (entry for entry in ranges if matches(_BRACKETS.sub("*", entry.value), name))
        if (entry := next(wide, by_number.get(node_lists.nodes_like(name)))) is not None:
            near.setdefault(entry, []).append(name)
    return near


@warning("GP611", When.NO_STATE, role=Role.COPIED_NODES)
def patterns_overlap(context: Context) -> Iterator[Hit]:
    entries = [(group, entry) for group in context.groups for entry in group.nodes or ()]
    yield from _overlaps(context, entries, only_different=False)
    yield from _named_elsewhere(context, entries)
    sets = [(nodes, entry) for nodes in context.policy.node_sets if nodes.leaves for entry in nodes.nodes]
    yield from _overlaps(context, sets, only_different=True)


def _overlaps(
    context: Context, entries: Sequence[tuple[Declared, Located[str]]], *, only_different: bool
) -> Iterator[Hit]:
    """Yield what overlaps, or only where the two set different values."""
    patterns = [(declared, entry) for declared, entry in entries if is_glob(entry.value)]
    overlaps: dict[tuple[str, str], tuple[int, int, str]] = {}
    uses = Counter[int]()
    pairs, are_all = _could_meet([entry.value for _, entry in patterns], [item.name for item, _ in patterns])
    if not are_all:
        yield _too_many(patterns)
    names = 0
    for first, second in pairs:
        (one, entry), (other, place) = patterns[first], patterns[second]
        pair = (one.name, other.name)
        about = _different(context, one, other) if only_different else ""
        if pair in overlaps or about is None:
            continue
        names += sum(len(written_out(item.value) or ()) for item in (entry, place))
        if names > MOST_NAMES:
            yield _too_many(patterns)
            break
        if share_nodes(entry.value, place.value):
            overlaps[pair] = (first, second, about)
            uses.update((first, second))
    for first, second, about in overlaps.values():
        values = [patterns[at][1].value for at in (first, second)]
        owners = [patterns[at][0].name for at in (first, second)]
        at_copied, copied = _copied(context, owners, values) if not only_different else (0, "")
        if copied:
            wide = (first, second)[at_copied]
        elif uses[first] == uses[second]:
            wide = first if values[0] != values[1] and takes_in(*values) else second
        else:
            wide = max(first, second, key=uses.__getitem__)
        (one, entry), (other, place) = patterns[first + second - wide], patterns[wide]
        both = f"{place.value} and {entry.value} of {one.title} match the same nodes"
        if place.value == entry.value:
            both = f"{place.value} is also a pattern of {one.title}"
        widest = place.value if uses[wide] > 1 else min(entry.value, place.value, key=len)
        missing = node_lists.nodes_like(copied) or f"within {widest}"
        asked = f"is {copied} meant? Node sets name such nodes, and no group does. Else " if copied else ""
        hint = f"{asked}{_cure_of_overlap(other.name, place.value, entry.value, uses[wide])}"
        yield hit(other, f"{both}{about}", place.span, hint, see(entry.span, f"{one.name} is here"), missing=missing)


def _cure_of_overlap(owner: str, pattern: str, other: str, met: int) -> str:
    """Return what to do about a pattern that shares nodes with another one, of so many that it meets."""
    if pattern == other:
        return "leave it out of one of the two: was it copied?"
    narrow = f"narrow {pattern}: it meets {met} others" if met > 1 else "narrow one of them"
    meant = glob_beginning(owner, pattern)
    parts_them = ends(pattern)[0] and takes_in(pattern, meant) and not share_nodes(meant, other)
    return f"is {meant} meant? Else {narrow}" if parts_them else narrow


def _copied(context: Context, groups: list[str], patterns: list[str]) -> tuple[int, str]:
    """Return which of the patterns of two groups, 0 or 1, was copied from the other, and what is meant; or nothing.

    With other letters at its beginning it matches all nodes with such letters that node sets name and no group does.
    """
    for letters, names in context.once(_without_group).items():
        guesses = [f"{letters}{LETTERS.sub('', pattern, count=1)}" for pattern in patterns]
        fitting = [at for at in (0, 1) if all(matches(guesses[at], name) for name in names)]
        word = re.split("[^a-z]+", letters.rstrip("-"))[-1]
        called = [at for at in fitting if word and groups[at].startswith(word)]
        exact = [at for at in fitting if {*(written_out(guesses[at]) or ())} == names]
        is_same = patterns[0] == patterns[1]
        narrow = [at for at in fitting if not is_same and takes_in(patterns[1 - at], patterns[at])]
        best = next((each for each in (called, exact, fitting, narrow, fitting[1:] * is_same) if len(each) == 1), None)
        if best is not None:
            return best[0], guesses[best[0]]
    return 0, ""


def _without_group(context: Context) -> dict[str, set[str]]:
    """Return the names in node sets that no group has, by the letters that they begin with."""
    entries = (entry.value for _, unknown in unknown_in_sets(context) for entry in unknown)
    names = (name for entry in entries for name in written_out(entry) or ())
    return {begin: {*alike} for begin, alike in grouped((LETTERS.findall(name)[0], name) for name in names).items()}


def _named_elsewhere(context: Context, entries: Sequence[tuple[Declared, Located[str]]]) -> Iterator[Hit]:
    """Yield the names of one group that a pattern of another lists one by one, as node[1-4] does."""
    named = {entry.value: (group, entry) for group, entry in entries if not is_glob(entry.value)}
    left = MOST_NAMES
    for group, entry in entries if named else ():
        names = written_out(entry.value) or () if is_glob(entry.value) and left > 0 else ()
        left -= len(names)
        twice = next((name for name in names if name in named and named[name][0] is not group), None)
        if twice is None:
            continue
        other, place = named[twice]
        message = f"{twice} is in {other.title}, and {entry.value} of {group.title} takes it in as well"
        stems = {LETTERS.findall(item.value)[0] for owner, item in entries if owner is other}
        lost = [name for each in stems for name in context.once(_without_group).get(each, ())]
        is_other_name = len(lost) == 1  # only node sets know it
        beside = context.once(node_lists.patterns_beside)[1].get(twice, ())
        shorter = next((meant for _, span, meant in beside if span == entry.span), "")
        meant = lost[0] if is_other_name else shorter
        missing = node_lists.nodes_like(meant) if is_other_name else f"within {entry.value}"
        wrong, right = (other, place), (group, entry)
        if shorter and not is_other_name:
            wrong, right = right, wrong
        hint = f"{f'is {meant} meant? Else ' if meant else ''}leave it out of one of the two"
        related = see(right[1].span, f"{right[0].name} is here")
        yield hit(wrong[0], message, wrong[1].span, hint, related, missing=missing)


def _too_many(patterns: Sequence[tuple[Declared, Located[str]]]) -> Hit:
    declared, entry = patterns[-1]
    message = f"the policy has {len(patterns)} patterns of nodes: too many to compare each with each"
    return hit(declared, message, entry.span, "start more patterns with letters, or name the nodes")


def _different(context: Context, one: Declared, other: Declared) -> str | None:
    """Return what two node sets disagree about, for a message; None if they do not."""
    first = context.leaves(one)
    paths = (path for path, leaf in context.leaves(other).items() if first.get(path, leaf).value != leaf.value)
    path = next(paths, None)
    return None if path is None else f", but have different values of {path[-1]}"


def _could_meet(patterns: list[str], groups: list[str]) -> tuple[list[tuple[int, int]], bool]:
    """Return the pairs, by place, of patterns of two groups that begin and end alike as far as letters go.

    No others share nodes. False with them: there are more than are looked at.
    """
    letters = [WILDCARD.split(pattern) for pattern in patterns]
    ends = ["" if "[" in pattern else parts[-1] for pattern, parts in zip(patterns, letters, strict=True)]
    begins = sorted((parts[0], place) for place, parts in enumerate(letters))
    pairs: list[tuple[int, int]] = []
    looked_at = 0
    for number, (begin, place) in enumerate(begins):
        for following in range(number + 1, len(begins)):
            longer, other = begins[following]
            if not longer.startswith(begin):
                break  # sorted: whatever begins so stands together
            looked_at += 1
            if looked_at > MOST_LOOKED_AT or len(pairs) > MOST_COMPARED:
                return sorted(pairs), False
            alike = ends[place].endswith(ends[other]) or ends[other].endswith(ends[place])
            if alike and groups[place] != groups[other]:
                pairs.append((min(place, other), max(place, other)))
    return sorted(pairs), True


@warning("GP612", explains=0)
def pattern_unlikely(context: Context) -> Iterator[Hit]:
    left = MOST_LOOKED_AT
    for declared, entries in lists_of_nodes(context):
        patterns = [entry.value for entry in entries if is_glob(entry.value) and not unlikely(entry.value)]
        for entry in entries:
            reason, wider = unlikely(entry.value), ""
            if is_glob(entry.value):
                wider = "*" if "*" in patterns and entry.value != "*" and not reason else ""
            elif not reason and left > 0:
                left -= len(patterns)
                wider = next((item for item in patterns if matches(item, entry.value)), "")
            if wider:
                message = f"{entry.value} adds nothing: {wider} in the same list matches it"
                yield hit(declared, message, entry.span, "remove it, or correct the pattern")
            if reason:
                turned = _LETTERS_BETWEEN.sub(lambda match: f"[{'-'.join(sorted(match.groups()))}]", entry.value)
                can_fix = turned != entry.value and not unlikely(turned)
                fix = edits.replace_word(context.policy.files, entry.span, entry.value, turned) if can_fix else None
                hint = _likely_instead(context, entry.value)
                yield hit(declared, f"{entry.value}: {reason}", entry.span, hint, fix=fix)


def _likely_instead(context: Context, entry: str) -> str:
    """Return what to write for an unlikely pattern."""
    if right := digits_meant(context, entry):
        return f"is {right} meant?"
    for meant in (re.split(r"[,; ]+", entry), node_lists.expanded(entry)):
        if meant and not any(map(unlikely, meant)):
            return f"write {'each as an entry of its own: ' if len(meant) > 1 else ''}{', '.join(meant)}"
    return "* is for any letters, [1-4] for one of a set, [1-9] and 1[0-2] for 1 to 12"


@warning("GP621", when=When.NO_STATE)
def node_domain_mistyped(context: Context) -> Iterator[Hit]:
    entries = [(declared, entry) for declared, listed in lists_of_nodes(context) for entry in listed]
    names = [entry.value for _, entry in entries]
    meant = _domains_meant(context, names)
    for declared, entry in entries if meant else ():
        if entry.value in meant and not unlikely(entry.value):
            domain, right = meant[entry.value]
            message = f"{entry.value} is in another domain than other nodes, {domain}"
            missing = node_lists.nodes_like(right if declared.level is Level.GROUP else entry.value)
            yield hit(declared, message, entry.span, f"Did you mean `{right}`?", missing=missing)
    yield from _cluster_name(context, names)
    yield from _first_letters(context)
    yield from _fitting_no_set(context, meant)


def _cluster_name(context: Context, entries: list[str]) -> Iterator[Hit]:
    """Yield the cluster's name if its domain is almost that of all nodes."""
    cluster = context.policy.cluster
    found = {match[1] for entry in entries if (match := _DOMAIN.fullmatch(entry))}
    if cluster is None or len(found) != 1 or len(entries) < 2:
        return
    (domain,) = found
    for own in (cluster.name, cluster.name.partition(".")[2]):
        is_plural = own.replace("s.", ".") == domain.replace("s.", ".")
        if "." in domain and name_meant(own, [domain]) and not is_plural:
            right = cluster.name.removesuffix(own) + domain
            message = f"the cluster is called {cluster.name}, but all nodes are in {domain}"
            yield hit("cluster", message, cluster.document.value_span(("name",)), f"Did you mean `{right}`?")
            return


def _first_letters(context: Context) -> Iterator[Hit]:
    """Yield nodes whose first letters occur once and are almost those of others, or a word of the group's name.

    A plural is no slip.
    """
    entries = [(group, entry) for group in context.groups for entry in group.nodes or () if not unlikely(entry.value)]
    stems = {entry.value: match[0] for _, entry in entries if (match := _STEM.match(entry.value))}
    uses = Counter(stems.values())
    usual = {stem for stem, count in uses.most_common(_MOST_DOMAINS) if count > 1}
    rare = ((group, entry, stem) for group, entry in entries if uses[stem := stems.get(entry.value, "")] == 1)
    for group, entry, stem in islice(rare, MOST_GUESSES):
        of_group = set(re.findall("[a-z]+", group.name.lower()))
        others = (of_group | usual) - {stem, f"{stem}s", stem.removesuffix("s")}
        known = [word for word in others if is_typing_slip(stem, word)]
        if len(known) == 1 and stem not in of_group and group.name.lower() not in entry.value:
            right = entry.value.replace(stem, known[0], 1)
            message = f"the name of {entry.value} is almost that of its group or of other nodes"
            yield hit(group, message, entry.span, f"Did you mean `{right}`?", missing=node_lists.nodes_like(right))


def _fitting_no_set(context: Context, found: Container[str]) -> Iterator[Hit]:
    """Yield what groups name and no node set does, where other letters or another domain make it nodes in no group."""
    unknown = {entry.value for _, names in unknown_in_sets(context) for entry in names if not is_glob(entry.value)}
    named = {entry.value for nodes in context.policy.node_sets for entry in nodes.nodes}
    entries = [(group, entry) for group in context.groups for entry in group.nodes or () if entry.value not in found]
    for group, entry in entries if len(unknown) > 1 and len(entries) * len(named) <= MOST_LOOKED_AT else ():
        meant = {name: node_meant(entry.value, name) for name in sorted(unknown)}
        right = next((glob for name, glob in meant.items() if glob and matches(glob, name)), "")
        alike = [name for name in unknown if node_lists.nodes_like(name) == node_lists.nodes_like(right)]
        if len(alike) > 1 and not any(matches(entry.value, name) for name in named):
            message = f"{entry.value} fits none of {some(sorted(alike), 2)}, which are in no group"
            yield hit(group, message, entry.span, f"is {right} meant?", missing=node_lists.nodes_like(right))


def _domains_meant(context: Context, entries: list[str]) -> dict[str, tuple[str, str]]:
    """Return names and patterns of nodes with a mistyped domain, each with the domain and the whole name meant."""
    found = {entry: match[1] if (match := _DOMAIN.fullmatch(entry)) else "" for entry in dict.fromkeys(entries)}
    uses = Counter(found.values())
    usual = [domain for domain, count in uses.most_common(_MOST_DOMAINS) if domain and count > 1]
    if context.policy.cluster is not None:
        usual += [name := context.policy.cluster.name, name.partition(".")[2]]
    known = {domain for domain in usual if "." in domain}
    result = {}
    for entry, domain in found.items() if known else ():
        glob = entry.replace(".*", "*")  # `.*` is a regular expression's word for what `*` is here
        of_glob = match[1] if glob != entry and (match := _DOMAIN.fullmatch(glob)) else ""
        stem = re.match("[a-z-]*", entry, re.IGNORECASE)
        alike = (name for name, its in found.items() if its == of_glob and stem and name.startswith(stem[0]))
        if of_glob in known and uses[of_glob] > 1 and domain not in known and next(alike, None):
            result[entry] = (of_glob, glob)
            continue
        if uses[domain] != 1:
            continue
        if "*" in entry.rpartition("]")[2]:  # it stands for dots as well: only a whole domain is compared
            if "*" not in domain and (near := name_meant(domain, known)):
                result[entry] = (near, f"{entry.removesuffix(domain)}{near}")
            continue
        glued = next((name for name in known if re.search(rf"[^.]{re.escape(name)}$", entry)), None)
        if domain in known and (glued is None or uses[glued] < 2):
            continue  # the domain of the cluster
        lacks = usual[0] if not domain and not is_glob(entry) and uses[usual[0]] > 1 else None
        meant = glued or name_meant(domain, known) or lacks
        if meant is not None:
            host = entry.removesuffix(glued or domain).removesuffix(".")
            result[entry] = (meant, f"{host}.{meant}")
    return result


@warning("GP613", when=When.NO_STATE | When.WHOLE, role=Role.USES)
def node_in_no_group(context: Context) -> Iterator[Hit]:
    in_sets = {entry.value for nodes in context.policy.node_sets for entry in nodes.nodes}
    only_here = {
        entry.value: Related(entry.span, f"group {group.name} names {entry.value}, and no node set does")
        for group in context.groups
        for entry in group.nodes or ()
        if not is_glob(entry.value) and entry.value not in in_sets
    }
    reported = set[Span]()
    for number, (nodes, unknown) in enumerate(unknown_in_sets(context)):
        name, span = unknown[0].value, unknown[0].span
        slip = list_meant(context, name) if len(unknown) == 1 else None
        missing = node_lists.nodes_like(name)
        if slip is not None and slip.owner.level is Level.GROUP:
            message = f"{slip.owner.title} stops short of {name}, which {nodes.title} names, and no group does"
            if slip.span not in reported:
                yield hit(slip.owner, message, slip.span, slip.question, see(span, "it is named here"), missing=missing)
            reported.add(slip.span)
            continue
        about = f"{name}: {'what it matches is' if is_glob(name) else 'it is'}"
        if len(unknown) > 1:
            about = f"{name} and {len(unknown) - 1} more of this set: they are"
        near = name_meant(name, only_here) if number < MOST_GUESSES else None
        if near is not None:
            hint = f"Did you mean `{near}`? Or is it the group that misspells the name? Write the same in both"
        elif right := digits_meant(context, name):
            hint = f"is {right} meant?"
        else:
            hint = f"{f'{slip.question} Else' if slip else 'correct the name, or'} add the node to its group"
        related = (only_here[near],) if near else node_lists.almost_in_group(context, name)
        yield hit(nodes, f"{about} in no group of the policy", span, hint, related, missing=missing)
