"""The outcome of a test: every expectation with its result, or why it could not run; and the instances of a test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from gpolicy.allocator.cluster_data import DiskTemplate
from gpolicy.analysis.allocator_input import policy_of
from gpolicy.analysis.node_resources import smallest_volume
from gpolicy.analysis.size_words import find_pair
from gpolicy.analysis.wanted_instance import allowed_templates, enabled_templates, spec_disks
from gpolicy.cluster.state import ClusterState, LiveDisk, LiveInstance, LiveNode, Resources
from gpolicy.cluster.terms import SpindleFault, spindle_refusal
from gpolicy.errors import GpolicyError
from gpolicy.findings import Located, Span
from gpolicy.policy.kinds import Policy
from gpolicy.policy.scenario import Action, Existing, Expectation, Sizes
from gpolicy.resolve.desired import pair_names
from gpolicy.what_if.load import with_all


class CannotRunError(GpolicyError):
    """A test cannot run: its cluster cannot be made, or its question makes no sense there. `span` is its place."""

    def __init__(self, message: str, span: Span | None = None, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.span = span


@contextmanager
def errors_at(span: Span) -> Iterator[None]:
    """Turn errors inside the block into CannotRunError, at `span` if they have no place of their own."""
    try:
        yield
    except CannotRunError:
        raise
    except GpolicyError as error:
        raise CannotRunError(error.message, span, hint=error.marked_hint) from None


def known_name(named: Located[str], objects: Mapping[str, object], what: str) -> str:
    """Return the name if it is one of `objects`. Raise CannotRunError otherwise."""
    if named.value not in objects:
        names = ", ".join(list(objects)[:8])
        hint = f"the {what}s are {names}" if names else None
        raise CannotRunError(f"the cluster has no {what} {named.value!r}", named.span, hint=hint)
    return named.value


@dataclass(frozen=True, slots=True)
class Check:
    """One expectation: the expected and the found value, in words. `detail` tells more about the found one."""

    title: str
    ok: bool
    expected: str
    found: str
    span: Span
    detail: str = ""

    @property
    def sentence(self) -> str:
        """The expected and the found value in one sentence."""
        return f"{self.title}: expected {self.expected}, found {self.found}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of one test. `error` tells why it could not run, `place` where the cause is written."""

    name: str
    action: Action
    span: Span
    checks: tuple[Check, ...] = ()
    error: str | None = None
    hint: str | None = None
    place: Span | None = None

    @property
    def ok(self) -> bool:
        """Whether the test ran and all expectations hold."""
        return self.error is None and all(check.ok for check in self.checks)

    @property
    def failures(self) -> tuple[Check, ...]:
        """The expectations that do not hold."""
        return tuple(check for check in self.checks if not check.ok)


@dataclass(frozen=True, slots=True)
class Tally:
    """How many tests there are, how many failed, and how many could not run."""

    tests: int
    failed: int
    errors: int


def tally(outcomes: Sequence[Outcome]) -> Tally:
    """Return the counts of outcomes."""
    errors = sum(outcome.error is not None for outcome in outcomes)
    return Tally(len(outcomes), sum(not outcome.ok for outcome in outcomes) - errors, errors)


def checked(expectation: Expectation, found: object, *, detail: str = "") -> Check:
    """Return the check of an expectation against the found value (a flag, a word, a number, or words in order)."""
    wanted = expectation.wanted
    ok = found in wanted if isinstance(found, int) and not isinstance(wanted, bool | str | tuple) else found == wanted
    return Check(expectation.title, ok, in_words(wanted), in_words(found), expectation.span, detail)


def in_words(value: object) -> str:
    """Return a value as reports show it."""
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case ():
            return "none"
        case tuple():
            return ", ".join(f"{item[0]} ({item[1]})" if isinstance(item, tuple) else str(item) for item in value)
    return str(value)


def instance_of(
    policy: Policy, state: ClusterState, sizes: Sizes, group: str, *, exclusive: bool, mirrored: bool | None = None
) -> LiveInstance:
    """Return the instance that `sizes` describes, for `group`, on no node yet.

    Missing values come from the named spec, else from `std`; the template is the first of the group's policy that is
    enabled (`mirrored`: DRBD or not, by the number of its nodes) and has disks where `sizes` has some. Under exclusive
    storage the disks of a named spec have its spindles. Raise CannotRunError for an unknown spec.
    """
    if sizes.spec is None:
        spec = policy_of(state.groups[group].effective, f"group {group}").std
    else:
        with errors_at(sizes.spec.span):
            pair, _ = find_pair(sizes.spec.value, pair_names(policy, state), state, group)
        spec = pair.min if sizes.bound == "min" else pair.max
    template = _template_of_sizes(sizes, state, group, mirrored=mirrored)
    wanted = spec_disks(spec, exclusive=exclusive) if sizes.disks is None else sizes.disks
    disks = tuple(LiveDisk(size=disk.size, template=template.value, spindles=disk.spindles) for disk in wanted)
    disks = () if template is DiskTemplate.DISKLESS else disks
    memory = spec.memory if sizes.memory is None else sizes.memory
    return LiveInstance(
        name="new",
        primary_node="",
        disk_template=template.value if disks else DiskTemplate.DISKLESS.value,
        disks=disks,
        minmem=memory if sizes.minmem is None else sizes.minmem,
        maxmem=memory,
        vcpus=spec.cpus if sizes.cpus is None else sizes.cpus,
        spindle_use=spec.spindle_use if sizes.spindle_use is None else sizes.spindle_use,
        nic_count=spec.nic_count if sizes.nic_count is None else sizes.nic_count,
        status="running",
        running=True,
        tags=frozenset(sizes.tags),
    )


def _template_of_sizes(sizes: Sizes, state: ClusterState, group: str, *, mirrored: bool | None = None) -> DiskTemplate:
    if sizes.template is not None:
        return DiskTemplate(sizes.template.value)
    if mirrored:
        return DiskTemplate.DRBD
    held = policy_of(state.groups[group].effective, f"group {group}")
    wrong = {DiskTemplate.DRBD: mirrored is False, DiskTemplate.DISKLESS: bool(sizes.disks)}
    held = replace(held, templates=tuple(item for item in held.templates if not wrong.get(item)))
    exclusive = state.is_exclusive(group)
    return next(iter(allowed_templates(enabled_templates(state), held, exclusive=exclusive)), DiskTemplate.PLAIN)


def with_instances(policy: Policy, state: ClusterState, existing: Existing) -> ClusterState:
    """Return `state` with the instances that a test adds. Raise CannotRunError if that is impossible."""
    nodes = [state.nodes[known_name(named, state.nodes, "node")] for named in existing.nodes]
    exclusive = any(state.has_exclusive_storage(node) for node in nodes)
    sizes, mirrored = existing.sizes, len(existing.nodes) > 1
    made = instance_of(policy, state, sizes, nodes[0].group, exclusive=exclusive, mirrored=mirrored)
    made = replace(
        made,
        primary_node=existing.nodes[0].value,
        secondary_nodes=tuple(node.value for node in existing.nodes[1:]),
        status="running" if existing.running else "ADMIN_offline" if existing.offline else "ADMIN_down",
        admin_state="up" if existing.running else "offline" if existing.offline else "down",
        running=existing.running,
    )
    _check_spindles(existing, made, state, nodes)
    taken = next((name for name in existing.names if name in state.instances), None)
    if taken is not None:
        raise CannotRunError(f"the cluster has an instance {taken!r} already", existing.name.span)
    more = with_all(state, [replace(made, name=name) for name in existing.names])
    for node in nodes:
        lacking = _overfull(more.nodes[node.name].resources)
        if lacking and not _overfull(node.resources):
            message = f"{existing.name.value} needs more {lacking} than node {node.name} has left"
            raise CannotRunError(message, existing.name.span, hint="make it smaller, or the node larger")
    return more


def _check_spindles(existing: Existing, made: LiveInstance, state: ClusterState, nodes: Sequence[LiveNode]) -> None:
    """Raise CannotRunError for disks that Ganeti would not have made. Disks without spindles may be older."""
    for node in nodes:
        exclusive, volume = state.has_exclusive_storage(node), smallest_volume(state, node)
        for disk in made.disks:
            refusal = spindle_refusal(disk.size, disk.spindles, exclusive=exclusive, volume=volume)
            if refusal is not None and refusal.fault is not SpindleFault.MISSING:
                hint = "leave the spindles out" if refusal.needed is None else f"write spindles: {refusal.needed}"
                message = f"{existing.name.value} on node {node.name}: {refusal}"
                raise CannotRunError(message, existing.name.span, hint=hint)


def _overfull(resources: Resources) -> str:
    left = {"memory": resources.memory_free, "disk": resources.disk_free, "physical volumes": resources.spindles_free}
    return next((name for name, amount in left.items() if amount is not None and amount < 0), "")
