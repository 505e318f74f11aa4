"""Read a plan file. It is not trusted: gpolicy makes the plan again from its changes, and it must be the same."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Final, TypeVar

from gpolicy import __version__
from gpolicy.cluster.assembly import held, read
from gpolicy.cluster.json_input import parse_json, read_bytes
from gpolicy.cluster.record import Record, shown
from gpolicy.errors import InputError
from gpolicy.findings import Severity
from gpolicy.ganeti.releases import VERSIONS
from gpolicy.json_values import json_text
from gpolicy.plan.built_in_guards import JUDGED_WITHOUT_CLUSTER, OVERRIDABLE, GuardResult, judge_without_cluster
from gpolicy.plan.changes import Change, Objection
from gpolicy.plan.effects import level_of
from gpolicy.plan.part import contradictions_of_part
from gpolicy.plan.plan import Plan
from gpolicy.plan.plan_json import ANSWER, OBJECT_NAME, PLAN, PLAN_FILE, plan_as_json
from gpolicy.plan.step import Procedure
from gpolicy.plan.steps import StepBasis, make_steps
from gpolicy.plan.trust import Signers, contradictions, first_difference, rebuild, signer_of
from gpolicy.policy.kinds import BUILT_IN
from gpolicy.printable import one_line

_REMAKE: Final = "make a new plan with this gpolicy"
_HINT: Final = "make a plan with `gpolicy plan --save FILE`"
_LONGEST_MESSAGE: Final = 1200

_Read = TypeVar("_Read", bound=Procedure)


def read_plan(path: FilePath, signers: Signers | None = None) -> Plan:
    """Return the plan in a file. Raise InputError if it is not a plan that this gpolicy makes from its changes.

    With `signers`, one of them must have signed the file, byte by byte as it is read here.
    """
    return read_procedure_file(path, signers, plan_in)


def dump_plan(plan: Plan) -> bytes:
    """Return a plan as the content of a file, for `read_plan` and `gpolicy apply`."""
    return json_text(plan_as_json(plan)).encode()


def read_procedure_file(
    path: FilePath, signers: Signers | None, make: Callable[[Record], _Read], hint: str = _HINT
) -> _Read:
    """Return what `make` makes of the content of a file, with its digest and signer. Raise as `read_plan` does."""
    try:
        data = read_bytes(path)
        signer = signer_of(data, signers) if signers is not None else None
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        procedure = make(Record.of(parse_json(data, str(path)), str(path)))
        return replace(procedure, digest=digest, signer=signer)
    except InputError as error:
        raise InputError(one_line(error.message, _LONGEST_MESSAGE), hint=error.hint or hint) from None


def plan_in(written: Record) -> Plan:
    """Return the plan in the content of a file."""
    _check_format(written)
    impact = written.record("impact")
    if impact.fields.get("what_if"):
        supposed = shown(", ".join(impact.texts("what_if")))
        message = f"{written.where}: its guards were judged on a supposed cluster: {supposed}"
        raise InputError(message, hint="make the plan again, without options that suppose something")
    plan = rebuilt_plan(written)
    kept = {key: written.fields[key] for key in ("gpolicy", ANSWER) if key in written.fields}
    if difference := first_difference(written.fields, plan_as_json(plan, impact.fields) | kept):
        if place := re.match(r"steps\[(\d{1,9})\]", difference):  # the step as people know it
            number = int(place[1])
            title = f" ({plan.steps[number].title})" if number < len(plan.steps) else ""
            difference = f"step {number + 1}{title}: {difference}"
        raise InputError(f"{written.where}: {difference}", hint=_way_out(written))
    return plan


def _check_format(written: Record) -> None:
    if (kind := written.text_or_none("kind") or PLAN_FILE.kind) != PLAN_FILE.kind:
        hint = "`gpolicy apply FILE` carries moves out, `gpolicy render FILE` writes them as a script"
        message = f"{written.where}: this is not {PLAN_FILE.noun}: its kind is {shown(kind)}"
        raise InputError(message, hint=hint if kind == "gpolicy-remedy" else None)
    version, made_by = written.text("format_version"), written.text_or_none("gpolicy") or ""
    if not PLAN_FILE.reads(version) or not made_by:
        by = f" (gpolicy {shown(made_by)} made it, this is {__version__})" if made_by else ""
        message = f"{written.where}: its format is {version[:20]!r}{by}, this gpolicy reads {PLAN_FILE.version}"
        raise InputError(message, hint=_REMAKE)


def _way_out(written: Record) -> str:
    made_by = str(written.fields["gpolicy"])
    if made_by == __version__:
        return f"the file was changed after the plan was made: {_REMAKE}"
    return f"gpolicy {shown(made_by)} made the plan, this is {__version__}: {_REMAKE}"


def _refuse(written: Record, contradictions: Iterable[str]) -> None:
    for wrong in contradictions:
        raise InputError(f"{written.where}: {wrong}", hint=_way_out(written))


def rebuilt_plan(written: Record) -> Plan:
    """Return the plan that follows from what the file says of changes, objects and guards."""
    plan: Plan = read(PLAN, written, steps=())
    if plan.version not in VERSIONS:
        raise InputError(f"{written.where}: there is no Ganeti release {shown(plan.version)!r}")
    for name in plan.observed:
        held(name, OBJECT_NAME, written, "observed")
    objects = {name: item.values for name, item in plan.observed.items()}
    basis = StepBasis(objects=objects, gaps=plan.gaps, one_way=frozenset(plan.one_way))
    errors = any(finding.severity is Severity.ERROR for finding in plan.findings)
    _refuse(written, () if errors else contradictions(plan.changes, basis))
    made = rebuild(plan.changes, basis)
    steps, impossible = make_steps([] if errors else made, basis, plan.version)
    declared = [guard.name.value for guard in plan.declared_guards]
    if [guard.name for guard in plan.guards if guard.name not in BUILT_IN] != declared:
        _refuse(written, ["the guards that are declared are not those that have a verdict"])
    _check_guards(plan.guards, plan.changes, basis, impossible, written.where)
    _refuse(written, contradictions_of_part(plan.part, plan.changes, plan.left_out))
    for item in plan.not_compared:
        if not any(gap.covers(level_of(item.object), item.path) for gap in plan.gaps):
            value = f"{item.object} {'.'.join(item.path)}"
            raise InputError(f"{written.where}: unreadable: {value} was not compared, though the source shows it")
    return replace(plan, one_way=tuple(sorted(basis.one_way)), changes=made, steps=tuple(steps))


def _check_guards(
    guards: Sequence[GuardResult], changes: Sequence[Change], basis: StepBasis, impossible: list[Objection], where: str
) -> None:
    """Raise InputError for verdicts that no guard gives, or that are not those of guards that can be judged here."""
    if len({guard.name for guard in guards}) != len(guards):
        raise InputError(f"{where}: a guard has two verdicts")
    for guard in guards:
        built_in = guard.name in BUILT_IN
        if (guard.allowed and not guard.ok) or (built_in and guard.ok != guard.allowed):
            wrong = f"guard {shown(guard.name)} passes without being allowed, or is allowed and fails"
            raise InputError(f"{where}: {wrong}")
        if built_in and guard.allowed and guard.name not in OVERRIDABLE:
            raise InputError(f"{where}: guard {guard.name} cannot be allowed: Ganeti would refuse the step half-way")
    allowed = frozenset(guard.name for guard in guards if guard.allowed)
    expected = judge_without_cluster(changes, basis.objects.get("cluster", {}), impossible, allowed)
    told = {guard.name: guard for guard in guards if guard.name in JUDGED_WITHOUT_CLUSTER}
    for name in sorted(told.keys() | expected.keys()):
        if told.get(name) != expected.get(name):
            said, says = (guard.message if guard else "nothing" for guard in (told.get(name), expected.get(name)))
            raise InputError(f"{where}: guard {name} says {shown(said)!r} in the file, and should say {shown(says)!r}")
