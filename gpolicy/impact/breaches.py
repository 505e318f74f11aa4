"""What instances break of their policy: by how much, which pair is nearest, and what a change does to that."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """One parameter that lies outside a spec pair, or a disk template that the policy does not list.

    `parameter` is Ganeti's name: one of the spec parameters with `value`, `minimum` and `maximum` (MiB or counts, and
    for `disk-size` the number of the `disk`); `disk-templates` with the template as `value` and what is `allowed`;
    or `spindles`, without any number, for disks that have no spindle count recorded under exclusive storage.
    """

    parameter: str
    value: int | str | None = None
    minimum: int | None = None
    maximum: int | None = None
    disk: int | None = None
    allowed: tuple[str, ...] = ()

    @property
    def beyond(self) -> int | None:
        """How far it lies outside: above the maximum if positive, below the minimum if negative; None if no number."""
        if not isinstance(self.value, int) or self.minimum is None or self.maximum is None:
            return None
        return self.value - self.maximum if self.value > self.maximum else self.value - self.minimum


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyViolation:
    """What of an instance the policy of a group does not allow.

    `pair` is the number of the nearest spec pair, from 1, `pair_name` its name in the policy. `exclusive_storage`
    tells whether the spindles of its disks were compared instead of its `spindle_use`.
    """

    group: str
    pair: int
    pair_name: str | None = None
    breaches: tuple[Breach, ...]
    exclusive_storage: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether an instance conforms: `violation` is None if nothing speaks against it.

    `unknown` are parameters of the instance that the source of the state does not show, and that could still make it
    violate the policy (or violate it in another way).
    """

    violation: PolicyViolation | None = None
    unknown: tuple[str, ...] = ()

    @property
    def conforms(self) -> bool | None:
        """Whether the instance conforms; None where that is not known."""
        return False if self.violation else None if self.unknown else True


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceViolation:
    """One instance with what it violates before and after; None where it conforms (or where it is not known)."""

    instance: str
    primary_node: str
    before: PolicyViolation | None
    after: PolicyViolation | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownViolation:
    """An instance of which nobody can say whether it violates the policy before or after; `parameters` say why."""

    instance: str
    primary_node: str
    parameters: tuple[str, ...]
    before: Verdict
    after: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class ViolationChange:
    """All instances whose verdict matters, by name.

    `newly`, `still` and `no_longer` are what Ganeti calls violating (`gnt-cluster verify`, the warning of a modify).
    The three of `minmem` are instances that Ganeti does not call so, but whose minmem lies outside of the policy: it
    refuses every `gnt-instance modify` of them that is made without `--ignore-ipolicy`.
    """

    newly: tuple[InstanceViolation, ...] = ()
    still: tuple[InstanceViolation, ...] = ()
    no_longer: tuple[InstanceViolation, ...] = ()
    unknown: tuple[UnknownViolation, ...] = ()
    minmem_newly: tuple[InstanceViolation, ...] = ()
    minmem_still: tuple[InstanceViolation, ...] = ()
    minmem_no_longer: tuple[InstanceViolation, ...] = ()
