"""Whether a plan file can be trusted: its changes fit the objects that it observed, and somebody has signed it.

A plan file says much twice, for people and other programs: words beside values, commands beside changes. gpolicy takes
only the changes and the observed objects from it, and makes all else again with the code that made it first.
Signatures are detached, and verified by OpenSSH's `ssh-keygen -Y`, which every master has.
"""

import json
import pathlib
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Final

from gpolicy.cluster.json_input import decode_text
from gpolicy.cluster.process import Output, run
from gpolicy.errors import InputError, RequestError, UnreachableError
from gpolicy.ganeti.parameters import INHERITED_FAMILIES, parameter_at
from gpolicy.ganeti.vocabulary import Level, Path, Value, is_access
from gpolicy.plan import changes
from gpolicy.plan.changes import Change, ChangeAction
from gpolicy.plan.effects import is_own_value, shown_by, tags_of, touched
from gpolicy.plan.steps import StepBasis, rename_order

_LONGEST_SHOWN = 300
_ABSENT = object()


def contradictions(planned: Sequence[Change], basis: StepBasis) -> Iterator[str]:
    """Yield why no plan has these changes for the observed objects; nothing for the changes of a real plan."""
    times = Counter((change.object, change.path) for change in planned)
    yield from (f"{name} {'.'.join(path)} is changed twice" for (name, path), count in times.items() if count > 1)
    names, needed = _Names(planned), touched(planned).keys()
    yield from names.contradictions(basis)
    unseen = needed - basis.objects.keys() - {f"group/{name}" for name in names.new}
    yield from (f"{name} is changed, but `observed` does not have it" for name in sorted(unseen))
    unchanged = sorted(basis.objects.keys() - needed)
    yield from (f"`observed` has {name}, which nothing changes" for name in unchanged)
    yield from _misshapen(basis)
    moving = {change.object_name for change in planned if change.path == changes.MEMBERSHIP}
    yield from (f"node {name} stays, but does not move" for name in sorted(basis.one_way) if name not in moving)
    if unseen:
        return
    for change in planned:
        if reason := _contradiction(change, names, basis):
            yield f"{change.object} {'.'.join(change.path)}: {reason}"


def _misshapen(basis: StepBasis) -> Iterator[str]:
    """Yield the observed objects that are not what their name says."""
    for name, values in basis.objects.items():
        level, _, rest = name.partition("/")
        own_name = values.get(changes.NAME) if level == "group" else None if level == "cluster" else rest
        if (changes.NAME in values and level != "group") or (level == "group" and own_name != rest):
            yield f"`observed` has {name} with another name"
        if isinstance(values.get(changes.MEMBERSHIP), str) != (level == "node"):
            yield f"`observed` has {name} with{'out' if level == 'node' else ''} a group"
        if any(path[:1] == changes.TAGS and (len(path) != 2 or value is not True) for path, value in values.items()):
            yield f"`observed` has {name} with an invalid tag"
        hidden = [path for path in values if not shown_by(basis.gaps, name, path)]
        yield from (f"`observed` has {name} {'.'.join(path)}, which the source cannot show" for path in hidden)


class _Names:
    def __init__(self, planned: Sequence[Change]) -> None:
        mine = [change for change in planned if change.path == changes.NAME]
        self.created = {change.object_name for change in mine if change.action is ChangeAction.CREATE}
        self.removed = {change.object_name for change in mine if change.action is ChangeAction.REMOVE}
        self.old = {change.object_name: str(change.before) for change in mine if change.action is ChangeAction.RENAME}

    @property
    def new(self) -> set[str | None]:
        """Names that no group has before, or another one."""
        return {*self.created, *self.old}

    def now(self, name: str | None) -> str | None:
        """Return the name that a group has before; None for one that no change may name."""
        if name in self.old:
            return self.old[name]
        return None if name in self.removed or name in self.old.values() else name

    def contradictions(self, basis: StepBasis) -> Iterator[str]:
        """Yield the names that two groups would have, and those that change in a circle."""
        leaving = list(self.old.values())
        if len(set(leaving)) != len(leaving) or self.removed & set(leaving):
            yield "a group is renamed or removed twice"
        for name in sorted(str(name) for name in self.new):
            if f"group/{name}" in basis.objects and name not in leaving:
                yield f"group {name} exists already"
        try:
            rename_order({old: str(new) for new, old in self.old.items()})
        except RequestError as error:
            yield error.message


def _contradiction(change: Change, names: _Names, basis: StepBasis) -> str:
    name = change.object_name
    if change.path == changes.NAME:
        if change.level is not Level.GROUP:
            return f"a plan cannot rename a {change.level}"
        wanted = change.before if change.action is ChangeAction.REMOVE else change.after
        right = wanted == name and change.before != change.after and isinstance(change.before, str | None)
        text = "the names before and after belong neither to a new group, nor to one that is renamed or removed"
        return "" if right else text
    is_new = change.level is Level.GROUP and name in names.created
    if change.level is Level.GROUP and not is_new and (name := names.now(name)) is None:
        return "the group is removed or renamed by then"
    if change.path == changes.MEMBERSHIP:
        home = basis.objects[f"node/{name}"].get(changes.MEMBERSHIP) if change.level is Level.NODE else None
        if home is None or change.before != home:
            return f"was {as_text(home)} when it was seen, not {as_text(change.before)}"
        target = change.after if isinstance(change.after, str) else None
        now = target if target is None or target in names.created else names.now(target)
        return "no group to move to" if now in (None, home) else ""
    label = changes.label_of(change.level, name)
    seen = changes.NEW_GROUP if is_new else basis.objects[label]
    before: Value = list(tags_of(seen)) if change.path == changes.TAGS else seen.get(change.path)
    if as_text(change.before) != as_text(before):
        return f"was {as_text(before)} when it was seen, not {as_text(change.before)}"
    if before == change.after:
        return "does not change"
    if change.path == changes.TAGS:
        after = change.after if isinstance(change.after, list) else []
        in_order = all(isinstance(tag, str) for tag in after) and after == sorted(set(changes.words(after)))
        return "" if in_order and isinstance(change.after, list) else "tags are a sorted list of texts"
    parameter = parameter_at(change.path)
    if parameter is None or change.level not in parameter.levels:
        return f"there is no such parameter of a {change.level}"
    if not is_new and not shown_by(basis.gaps, label, change.path):
        return "the source cannot show it, so whether it differs is unknown"
    return ""


def rebuild(planned: Sequence[Change], basis: StepBasis) -> tuple[Change, ...]:
    """Return the changes with all that follows from them: effective values and risk.

    What follows from the rest of the cluster is kept as it is: an inherited value where `basis` does not have what it
    is inherited from, how many instances have disks that move, which objects inherit.
    """
    created = {change.object for change in planned if change.action is ChangeAction.CREATE}
    cluster = {change.path: change.after for change in planned if change.level is Level.CLUSTER}

    def above(path: Path) -> tuple[Value, Value] | None:
        seen = basis.objects.get("cluster")
        if seen is None or not shown_by(basis.gaps, "cluster", path):
            return None
        return seen.get(path), cluster.get(path, seen.get(path))

    found = []
    for claimed in planned:
        is_new = claimed.object in created
        before, after = _effective(claimed, is_new, above(claimed.path))
        change = replace(claimed, effective_before=before, effective_after=after)
        inherited = change.level is not Level.NODE and change.path[0] in INHERITED_FAMILIES and before != after
        risk, reason = _risk(change, is_new)
        found.append(replace(change, risk=risk, reason=reason, affects=change.affects if inherited else ()))
    return tuple(found)


def _effective(change: Change, is_new: bool, above: tuple[Value, Value] | None) -> tuple[Value, Value]:  # noqa: FBT001
    """Return the effective value: the own one, else the inherited one if it is known.

    `above` is what the cluster has before and after; None if it was not seen.
    """
    if change.level is Level.CLUSTER or not is_own_value(change.path):
        return change.before, change.after
    if is_new:
        return None, change.after
    before, after = change.effective_before, change.effective_after
    if change.path[0] not in INHERITED_FAMILIES:
        before = after = None
    elif change.level is Level.GROUP and above is not None:
        before, after = above
    elif change.level is Level.GROUP and change.before is None and change.after is None:
        after = before
    return (before if change.before is None else change.before, after if change.after is None else change.after)


def _risk(change: Change, is_new: bool) -> tuple[changes.Risk, str]:  # noqa: FBT001
    if not is_own_value(change.path):
        told = change.action is ChangeAction.MOVE and change.reason.startswith(changes.MOVE_CHANGES)
        unchecked = changes.MOVE_UNCHECKED if change.action is ChangeAction.MOVE else ""
        return changes.RISK_OF_ACTION.get(change.action, changes.Risk.LOW), change.reason if told else unchecked
    if is_new:
        return changes.risk_when_new(change.path)
    count = change.reason.partition(" ")[0]
    is_number = count.isascii() and count.isdigit() and len(count) < 9
    users = int(count) if is_number and changes.redirects_disks(change.path) else 0
    risk, reason = changes.risk_with(change.path, change.effective_before, change.effective_after, users)
    replaces_access = is_access(change.path) and change.action is ChangeAction.SET
    return risk, changes.STANDS_IN if replaces_access and change.reason == changes.STANDS_IN else reason


def first_difference(found: Value, expected: Value, place: str = "") -> str | None:
    """Return where two JSON values differ, and both values; None if they are equal. 1, 1.0 and true are not equal."""
    if isinstance(found, dict) and isinstance(expected, dict):
        keys = dict.fromkeys((*expected, *found))
        return _difference_at((_at(place, key), found.get(key, _ABSENT), expected.get(key, _ABSENT)) for key in keys)
    if isinstance(found, list) and isinstance(expected, list):
        pairs = zip_longest(found, expected, fillvalue=_ABSENT)
        return _difference_at((f"{place}[{number}]", *pair) for number, pair in enumerate(pairs))
    if as_text(found) == as_text(expected):
        return None
    return f"{place} is {_value_shown(found)} in the file, and should be {_value_shown(expected)}"


def _difference_at(places: Iterable[tuple[str, object, object]]) -> str | None:
    for place, found, expected in places:
        if found is _ABSENT or expected is _ABSENT:
            return f"{place} is {_value_shown(found)} in the file, and should be {_value_shown(expected)}"
        if (difference := first_difference(found, expected, place)) is not None:  # type: ignore[arg-type]
            return difference
    return None


def _at(place: str, key: str) -> str:
    name = key if key.isidentifier() else json.dumps(key)
    return f"{place}.{name}" if place else name


def as_text(value: object) -> str:
    """Return a value as JSON: different values give different texts."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _value_shown(value: object) -> str:
    if value is _ABSENT:
        return "missing"
    text = as_text(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}… ({len(text)} characters)"


NAMESPACE: Final = "gpolicy-plan"
"""The namespace of the signature: one that was made for another purpose does not count."""

_KEY: Final = re.compile(r" with (\S+) key (SHA256:[A-Za-z0-9+/]{43})\s*\Z")  # the end of what verify says
_VERIFY_SECONDS: Final = 30.0
_LARGEST_ANSWER: Final = 1024**2
_LARGEST_SIGNATURE: Final = 64 * 1024  # bytes; ssh-keygen takes minutes over a large file
_LONGEST_COMPLAINT: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Signers:
    """Whose signature is wanted: a file in the form of ssh's ALLOWED SIGNERS, and the signature itself.

    `search_path` is where ssh-keygen is looked for (PATH); nothing else of the environment reaches it.
    """

    allowed: pathlib.Path
    signature: pathlib.Path
    search_path: str


def signer_of(data: bytes, signers: Signers) -> str:
    """Return who of the allowed signers has signed `data`, with the key. Raise InputError if nobody can tell.

    A name is a pattern in the file of allowed signers, so it may fit anybody; the fingerprint is that of one key.
    """
    for file, what in ((signers.allowed, "allowed signers"), (signers.signature, "signature")):
        if not file.is_file():
            hint = f"sign the plan: ssh-keygen -Y sign -n {NAMESPACE} -f KEY PLAN.JSON" if what == "signature" else None
            raise InputError(f"{file}: there is no file with the {what}", hint=hint)
    if (size := signers.signature.stat().st_size) > _LARGEST_SIGNATURE:
        raise InputError(f"{signers.signature}: {size:,} bytes are no signature")
    signature, allowed = str(signers.signature.absolute()), str(signers.allowed.absolute())
    found = _ask(signers, b"", "find-principals", "-s", signature, "-f", allowed)
    principals = decode_text(found.stdout, "ssh-keygen -Y find-principals").splitlines() if found.code == 0 else []
    if not principals:
        why = _complaint(found)
        raise InputError(f"{signers.signature}: no signer in {signers.allowed} made this signature{why}")
    for principal in principals:
        verified = _ask(signers, data, "verify", "-n", NAMESPACE, "-f", allowed, "-I", principal, "-s", signature)
        key = _KEY.search(decode_text(verified.stdout, "ssh-keygen -Y verify"))
        if verified.code == 0 and key is not None:
            return f"{principal} ({key[1]} {key[2]})"
    hint = f"write each key on one line of {signers.allowed}: ssh-keygen tries only the first line that has the key"
    raise InputError(f"{signers.signature}: is not a valid signature of this plan{_complaint(verified)}", hint=hint)


def _ask(signers: Signers, data: bytes, what: str, *options: str) -> Output:
    environ: Mapping[str, str] = {"PATH": signers.search_path, "LC_ALL": "C"}
    with tempfile.TemporaryFile() as file:  # ssh-keygen reads it from standard input
        file.write(data)
        file.flush()
        file.seek(0)
        argv = ["ssh-keygen", "-Y", what, *options]
        try:
            return run(argv, environ=environ, seconds=_VERIFY_SECONDS, limit=_LARGEST_ANSWER, stdin=file.fileno())
        except UnreachableError as error:
            hint = "ssh-keygen verifies signatures: it comes with OpenSSH 8.2 and later"
            raise InputError(f"the signature cannot be verified: {error.message}", hint=hint) from None


def _complaint(output: Output) -> str:
    return f": {output.complaint[:_LONGEST_COMPLAINT]}" if output.complaint else ""
