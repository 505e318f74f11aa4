"""The answer to a request for a placement: the instance, every candidate, the groups, and what would fit in its place.

Other values of the request are tried with the allocator, each in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gpolicy.allocator.cluster_data import Disk, Instance, InstancePolicy, Spec, SpecPair
from gpolicy.allocator.ghc_numbers import fixed
from gpolicy.allocator.policy_check import check_policy
from gpolicy.analysis.allocator_input import charged_space
from gpolicy.analysis.basis import StateReport
from gpolicy.analysis.binding import Cause
from gpolicy.analysis.refusals import pair_distance
from gpolicy.ganeti.units import exact_size


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node, or a primary and secondary, and the result of trying it.

    `reason` is why it is refused (the key of `gpolicy.analysis.binding.Cause`), `detail` gives the numbers,
    `htools_reason` is hail's name of it; all None if `ok`. `score` is the cluster score after the placement (None on
    dedicated nodes), `lost_allocations` the numbers of instances of each size that would no longer fit, the size with
    the biggest disk first (None on ordinary nodes). `disk_left` (MiB) is the sum that its nodes have left. Refused
    candidates have a score if it was computed.
    """

    group: str
    nodes: tuple[str, ...]
    ok: bool
    reason: str | None = None
    explanation: str | None = None
    detail: str | None = None
    htools_reason: str | None = None
    score: float | None = None
    lost_allocations: tuple[int, ...] | None = None
    disk_left: int | None = None

    def refused(self, cause: Cause, detail: str) -> Candidate:
        """Return the candidate refused for a reason that hail does not know."""
        return replace(self, ok=False, reason=cause.key, explanation=cause.sentence, detail=detail)

    @property
    def shown_score(self) -> str:
        """The score as htools prints it, or a dash."""
        return "-" if self.score is None else fixed(self.score, 8)


@dataclass(frozen=True, slots=True)
class GroupTrial:
    """The result for one group: hail's own sentence, or why the group was not tried."""

    group: str
    alloc_policy: str
    tried: bool
    message: str


@dataclass(frozen=True, slots=True)
class Instead:
    """What fits in place of what was asked for: the words to change in the request, and where it then goes."""

    words: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlaceReport(StateReport):
    """Where the `instance` goes (`ok`, `group`, `nodes`), hail's own words for it (`info`), and the candidates.

    `candidates` are the possible ones, the best first, then the refused ones; of very many pairs only those that are
    likely the best. `metric` is "score" or "lost-allocations"; with the latter `sizes` names the sizes that
    `lost_allocations` counts. `reason` is a sentence that tells why no candidate takes it. `objections` tell
    why Ganeti would refuse what hail accepts. `instead` is what would fit, if that was asked for and the instance goes
    nowhere; None if it was not. `what_if` says what the answer leaves out of account on request.
    """

    instance: Instance
    ok: bool
    info: str
    metric: str
    sizes: tuple[str, ...]
    group: str | None = None
    nodes: tuple[str, ...] = ()
    reason: str | None = None
    groups: tuple[GroupTrial, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    objections: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    instead: tuple[Instead, ...] | None = None

    @property
    def accepted(self) -> bool:
        """Whether both hail and Ganeti take it."""
        return self.ok and not self.objections

    @property
    def chosen(self) -> Candidate | None:
        """The chosen candidate."""
        return next((item for item in self.candidates if self.ok and item.nodes == self.nodes), None)


Takes = Callable[[Instance], tuple[str, ...]]
"""Where the allocator places an instance: the names of its nodes, none if nowhere."""

_MOST_SPINDLES: Final = 64
_STEP: Final = 4
"""Sizes are whole multiples of 4 MiB: Ganeti's command line rounds all others up."""


@dataclass(frozen=True, slots=True)
class _Value:
    """One value of the request: how to change it, what it is, the least that the policy allows, and its unit."""

    change: Callable[[Instance, int], Instance]
    wanted: int
    least: int
    step: int = 1


def other_sizes(
    instance: Instance, policies: Sequence[tuple[InstancePolicy, bool]], takes: Takes, *, spindles_given: bool
) -> tuple[Instead, ...]:
    """Return other sizes of a refused instance that fit, within the nearest spec pair of which some size fits.

    If the pair does not allow the instance: the nearest size that it allows. If there is no room for that: for each
    value the greatest that fits while the others stay. If no value is enough alone: the greatest memory while the
    others are at the minimum, then the greatest CPUs, and so on. `policies` are those of the groups in question, each
    with whether the group has exclusive storage. `spindles_given`: the request itself says those of the disks.
    """
    for pair, exclusive in _pairs(instance, policies):
        nearest = _allowed(instance, pair, exclusive=exclusive, takes=takes)
        values = _values(nearest, pair, exclusive=exclusive)
        if takes(nearest):
            found = [nearest]
        else:
            found = [item for value in values if (item := _greatest(nearest, value, takes)) is not None]
            found = found or list(_greatest_of_all(nearest, values, takes))
        if found:
            return tuple(Instead(_words(instance, item, spindles_given=spindles_given), takes(item)) for item in found)
    return ()


def nearest_allowed(instance: Instance, policy: InstancePolicy, *, exclusive: bool) -> tuple[Instance, str] | None:
    """Return an existing instance in the nearest size that the policy allows, and what changes; None if a disk is too
    large, which Ganeti does not shrink, or if its disks do not go with the policy."""
    for pair, _ in _pairs(instance, [(policy, exclusive)]):
        found = _allowed(instance, pair, exclusive=False, takes=lambda _changed: ("",))
        grown = [new.size >= old.size for new, old in zip(found.disks, instance.disks, strict=False)]
        if len(found.disks) == len(instance.disks) and all(grown):
            found = replace(found, disks=instance.disks, disk=instance.disk) if not _grows(found, instance) else found
            if check_policy(policy, found, exclusive=exclusive) is None:
                return found, _words(instance, found, spindles_given=False)
    return None


def _grows(new: Instance, old: Instance) -> bool:
    return any(one.size > other.size for one, other in zip(new.disks, old.disks, strict=True))


def _pairs(instance: Instance, policies: Sequence[tuple[InstancePolicy, bool]]) -> list[tuple[SpecPair, bool]]:
    """Return the spec pairs, the nearest first."""
    if instance.ignores_policy:
        size, count = max((disk.size for disk in instance.disks), default=1), len(instance.disks)
        most = Spec(instance.memory, instance.vcpus, size, count, 0, instance.spindle_use)
        return [(SpecPair(Spec(1, 1, 1, count, 0, 0), most), False)]
    found = dict.fromkeys((pair, exclusive) for policy, exclusive in policies for pair in policy.minmax)
    return sorted(found, key=lambda item: pair_distance(item[0], instance, exclusive=item[1]))


def _allowed(instance: Instance, pair: SpecPair, *, exclusive: bool, takes: Takes) -> Instance:
    """Return the instance with each value that the pair does not allow at the nearest that it allows.

    Under exclusive storage with the fewest spindles on which it fits, if there are some.
    """
    low, high = pair.min, pair.max
    disks = instance.disks[: high.disk_count] + instance.disks[-1:] * (low.disk_count - len(instance.disks))
    found = replace(
        _with_disks(
            instance, [replace(disk, size=_within(disk.size, low.disk_size, high.disk_size, _STEP)) for disk in disks]
        ),
        memory=_within(instance.memory, low.memory, high.memory, _STEP),
        vcpus=_within(instance.vcpus, low.cpus, high.cpus),
    )
    if not exclusive or not disks:
        found = _with_disks(found, [replace(disk, spindles=None) for disk in found.disks])
        return replace(found, spindle_use=_within(instance.spindle_use, low.spindle_use, high.spindle_use))
    numbers = range(max(low.spindle_use, len(disks)), min(high.spindle_use, _MOST_SPINDLES) + 1)
    tried = (_on_spindles(found, number) for number in numbers)
    return found if takes(found) else next((item for item in tried if takes(item)), found)


def _values(instance: Instance, pair: SpecPair, *, exclusive: bool) -> list[_Value]:
    low = pair.min
    values = [
        _Value(lambda item, number: replace(item, memory=number), instance.memory, low.memory, _STEP),
        _Value(lambda item, number: replace(item, vcpus=number), instance.vcpus, low.cpus),
    ]
    if exclusive and instance.disks:
        values.append(_Value(_on_spindles, instance.total_spindles or low.spindle_use, low.spindle_use))
    if instance.disks:
        values.append(_Value(_at_most(instance), max(disk.size for disk in instance.disks), low.disk_size, _STEP))
    return values


def _greatest(instance: Instance, value: _Value, takes: Takes) -> Instance | None:
    """Return the instance with the greatest number, below the wanted one, with which it fits; None if there is none."""
    fits, not_fits = -(-value.least // value.step), -(-value.wanted // value.step)

    def changed(number: int) -> Instance:
        return value.change(instance, number * value.step)

    if fits >= not_fits or not takes(changed(fits)):
        return None
    while not_fits - fits > 1:
        middle = (fits + not_fits) // 2
        if takes(changed(middle)):
            fits = middle
        else:
            not_fits = middle
    return changed(fits)


def _greatest_of_all(instance: Instance, values: Sequence[_Value], takes: Takes) -> Iterator[Instance]:
    for value in values:
        instance = value.change(instance, -(-value.least // value.step) * value.step)
    if takes(instance):
        for value in values:
            wanted = value.change(instance, value.wanted)
            instance = wanted if takes(wanted) else _greatest(instance, value, takes) or instance
        yield instance


def _at_most(instance: Instance) -> Callable[[Instance, int], Instance]:
    """Return a change that makes the disks of `instance` no larger than a size."""

    def change(item: Instance, size: int) -> Instance:
        pairs = zip(item.disks, instance.disks, strict=True)
        return _with_disks(item, [replace(disk, size=min(wanted.size, size)) for disk, wanted in pairs])

    return change


def _on_spindles(instance: Instance, number: int) -> Instance:
    each, rest = divmod(number, len(instance.disks))
    disks = enumerate(instance.disks)
    return _with_disks(instance, [replace(disk, spindles=each + (place < rest)) for place, disk in disks])


def _with_disks(instance: Instance, disks: Sequence[Disk]) -> Instance:
    space = charged_space(instance.template, [disk.size for disk in disks])
    return replace(instance, disks=tuple(disks), disk=space)


def _within(number: int, low: int, high: int, step: int = 1) -> int:
    """Return `number` if it is from `low` to `high`, else the nearest multiple of `step` that is."""
    return -(-low // step) * step if number < low else high // step * step if number > high else number


def _words(asked: Instance, found: Instance, *, spindles_given: bool) -> str:
    """Return how to ask for `found`: what differs from the instance that was asked for."""
    words = []
    if found.memory != asked.memory:
        words.append(f"memory={exact_size(found.memory)}")
    if found.vcpus != asked.vcpus:
        words.append(f"vcpus={found.vcpus}")
    without_spindles = not spindles_given and all(disk.spindles is None for disk in found.disks)
    same = [disk.size for disk in found.disks] == [disk.size for disk in asked.disks]
    if found.disks != asked.disks and not (same and without_spindles):
        spindles = ("" if disk.spindles is None else f":{disk.spindles}" for disk in found.disks)
        words += [f"disk={exact_size(disk.size)}{more}" for disk, more in zip(found.disks, spindles, strict=True)]
    if found.spindle_use != asked.spindle_use:
        words.append(f"spindle-use={found.spindle_use}")
    return " ".join(words)
