"""Read a plan file. It is not trusted: gpolicy makes the plan again from its changes, and it must be the same."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Final, TypeVar

from gpolicy import __version__
from gpolicy.cluster.assembly import read_part
from gpolicy.cluster.json_input import parse_json, read_bytes
from gpolicy.cluster.record import LARGEST_NUMBER, Record, shown
from gpolicy.cluster.state import Identity, Snapshot, Unreadable
from gpolicy.cluster.state_files import read_time
from gpolicy.cluster.terms import VOLUME_GROUP, GroupTerms, Terms
from gpolicy.errors import InputError
from gpolicy.findings import Finding, Located, Severity, Span
from gpolicy.ganeti.amounts import GREATEST_OVERSUBSCRIPTION, MOST_NODE_FAILURES
from gpolicy.ganeti.htools_reading import ALLOCATOR_PARAMETERS
from gpolicy.ganeti.parameters import canonical
from gpolicy.ganeti.releases import VERSIONS, is_release
from gpolicy.ganeti.vocabulary import ENABLED_HYPERVISORS, Level, Path, Value, Values
from gpolicy.json_values import json_text
from gpolicy.plan import changes
from gpolicy.plan.built_in_guards import JUDGED_WITHOUT_CLUSTER, OVERRIDABLE, GuardResult, judge_without_cluster
from gpolicy.plan.changes import Change, ChangeAction, NotCompared, Objection
from gpolicy.plan.effects import Effect, Observed, level_of
from gpolicy.plan.part import LeftOut, Part, contradictions_of_part
from gpolicy.plan.plan import Plan
from gpolicy.plan.plan_json import ANSWER, PLAN_FILE, plan_as_json
from gpolicy.plan.step import Procedure
from gpolicy.plan.steps import StepBasis, make_steps
from gpolicy.plan.trust import Signers, contradictions, first_difference, rebuilt, signer_of
from gpolicy.policy.kinds import BUILT_IN, Guard
from gpolicy.printable import one_line
from gpolicy.provenance import Provenance

_REMAKE: Final = "make a new plan with this gpolicy"
_HINT: Final = "make a plan with `gpolicy plan --save FILE`"
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
_COMMIT: Final = re.compile(r"[0-9a-f]{40,64}", re.ASCII)
_LONGEST_MESSAGE: Final = 1200
_NUMBER: Final = re.compile(r"[0-9]{1,9}", re.ASCII)

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
        read = make(Record.of(parse_json(data, str(path)), str(path)))
        return replace(read, digest=digest, signer=signer)
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
    version = written.text("ganeti_version")
    if version not in VERSIONS:
        raise InputError(f"{written.where}: there is no Ganeti release {shown(version)!r}")
    observed = {checked_object(name, item.where): read_observed(item) for name, item in written.records("observed")}
    gaps = tuple(read_part(Unreadable, gap) for gap in written.objects("not_shown"))
    one_way = written.texts("staying")
    objects = {name: item.values for name, item in observed.items()}
    basis = StepBasis(objects=objects, gaps=gaps, one_way=frozenset(one_way))
    claimed = tuple(map(_change, written.objects("changes")))
    findings = tuple(map(_finding, written.objects("findings")))
    errors = any(finding.severity is Severity.ERROR for finding in findings)
    _refuse(written, () if errors else contradictions(claimed, basis))
    made = rebuilt(claimed, basis)
    steps, impossible = make_steps([] if errors else made, basis, version)
    guards = tuple(map(_guard, written.objects("guards")))
    declared = tuple(map(_declared, written.objects("declared_guards")))
    if [guard.name for guard in guards if guard.name not in BUILT_IN] != [guard.name.value for guard in declared]:
        _refuse(written, ["the guards that are declared are not those that have a verdict"])
    _check_guards(guards, claimed, basis, impossible, written.where)
    part = read_part(Part, written.record("part"))
    items = written.objects("left_out")
    left = tuple(LeftOut(_object(item), _keys(item), item.choice("action", ChangeAction)) for item in items)
    _refuse(written, contradictions_of_part(part, claimed, left))
    return Plan(
        cluster=check_text(written, "cluster"),
        cluster_uuid=written.text_or_none("cluster_uuid"),
        source=check_text(written, "source"),
        snapshot=read_snapshot(written),
        provenance=_provenance(written),
        version=version,
        policy_digest=_digest(written, "policy_digest"),
        state_digest=_digest(written, "state_digest"),
        state_digest_rapi=_digest(written, "state_digest_rapi") if written.fields.get("state_digest_rapi") else None,
        observed=observed,
        gaps=gaps,
        one_way=tuple(sorted(set(one_way))),
        changes=made,
        steps=tuple(steps),
        guards=guards,
        declared_guards=declared,
        pair_names={name: _names(written.record("pair_names"), name) for name in written.record("pair_names").fields},
        terms=read_terms(written.record("terms")),
        not_compared=tuple(_not_compared(item, gaps) for item in written.objects("unreadable")),
        part=part,
        left_out=left,
        findings=findings,
        notes=written.texts("notes"),
    )


def _change(written: Record) -> Change:
    level, slash, name = _object(written).partition("/")
    path = _keys(written)
    return Change(
        level=Level(level),
        object_name=name if slash else None,
        path=path,
        before=_value(written, path, "before"),
        after=_value(written, path, "after"),
        effective_before=_value(written, path, "effective_before"),
        effective_after=_value(written, path, "effective_after"),
        risk=changes.Risk.LOW,  # found out again from the values
        reason=written.text("reason"),
        affects=tuple(checked_object(name, written.where) for name in written.texts("affects")),
        span=_origin(written),
    )


def read_observed(written: Record) -> Observed:
    """Return an object as it was read."""
    values = written.objects("values")
    identity = Identity(uuid=written.text_or_none("uuid"), serial_no=written.whole_or_none("serial_no"))
    return Observed(identity, {path: _value(item, path, "value") for item in values for path in (_keys(item),)})


def read_effect(written: Record) -> Effect:
    """Return what a command does to one leaf."""
    path = _keys(written)
    return Effect(_object(written), path, _value(written, path, "before"), _value(written, path, "after"))


def _guard(written: Record) -> GuardResult:
    allowed = written.flag("allowed")
    return GuardResult(check_text(written, "name"), written.flag("ok"), check_text(written, "message"), allowed=allowed)


def _declared(written: Record) -> Guard:
    limit = written.fields.get("limit")
    if not isinstance(limit, int | float) or isinstance(limit, bool) or not 0 <= limit < LARGEST_NUMBER:
        written.refuse("limit", "a number from 0")
    here = Span(written.where, 1, 1, 1, 1)
    group, spec = written.text_or_none("group"), written.text_or_none("spec")
    return read_part(
        Guard,
        written,
        name=Located(check_text(written, "name"), here),
        limit=limit,
        span=here,
        group=None if group is None else Located(group, here),
        spec=None if spec is None else Located(spec, here),
    )


def _names(written: Record, name: str) -> tuple[str | None, ...]:
    names = written.items(name)
    if any(not isinstance(item, str | None) for item in names):
        written.refuse(name, "a list of names")
    return tuple(item if isinstance(item, str) else None for item in names)


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


def _not_compared(written: Record, gaps: tuple[Unreadable, ...]) -> NotCompared:
    name, path = _object(written), tuple(check_text(written, "path").split("."))
    if not any(gap.covers(level_of(name), path) for gap in gaps):
        raise InputError(f"{written.where}: {name} {'.'.join(path)} was not compared, though the source shows it")
    return NotCompared(name, path, written.fields.get("wanted"))


def read_snapshot(written: Record) -> Snapshot | None:
    """Return the snapshot that the state was read from."""
    if written.fields.get("snapshot") is None:
        return None
    snapshot = written.record("snapshot")
    return Snapshot(snapshot.text("file"), read_time(snapshot, "taken_at"))


def _provenance(written: Record) -> Provenance:
    made_at, commit = read_time(written, "made_at"), written.text_or_none("policy_commit")
    if commit is not None and not _COMMIT.fullmatch(commit):
        raise InputError(f"{written.where}: policy_commit should be a commit of git, but is {shown(commit)}")
    return Provenance(made_at, commit, written.flag_or_none("policy_dirty"))


def _finding(written: Record) -> Finding:
    file = written.text_or_none("file")
    return Finding(
        code=written.text("code"),
        name=written.text("name"),
        severity=written.choice("severity", Severity),
        message=check_text(written, "message"),
        hint=written.text("hint"),
        span=None if file is None else _place(file, written.whole("line"), written.whole("column")),
    )


def _origin(written: Record) -> Span | None:
    """Return the place that `origin` names; None for a text that names none, which is then no origin of a plan."""
    file, *numbers = (written.text_or_none("origin") or "").rsplit(":", 2)
    if len(numbers) != 2 or not all(_NUMBER.fullmatch(number) for number in numbers):
        return None
    return _place(file, int(numbers[0]), int(numbers[1]))


def _place(file: str, line: int, column: int) -> Span:
    return Span(file, line, column, line, column)


def _object(written: Record) -> str:
    return checked_object(check_text(written, "object"), written.where)


def checked_object(name: str, where: str) -> str:
    """Return the name of an object. Raise InputError if it is none."""
    level, slash, rest = name.partition("/")
    if (name != "cluster") and (level not in ("group", "node") or not slash or not rest):
        raise InputError(f"{where}: {name[:40]!r} is not an object: cluster, group/NAME or node/NAME")
    return name


def _keys(record: Record) -> Path:
    keys = record.texts("keys")
    if not keys:
        raise InputError(f"{record.where}: keys should be the path of a value")
    return keys


def _value(record: Record, path: Path, key: str) -> Value:
    value = record.fields.get(key)
    _check_numbers(value, f"{record.where}: {key}")
    return None if value is None else canonical(path, value)


def _check_numbers(value: Value, where: str) -> None:
    if isinstance(value, int) and abs(value) >= LARGEST_NUMBER:
        raise InputError(f"{where} holds too large a number")
    for below in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_numbers(below, where)


def _digest(record: Record, key: str) -> str:
    text = record.text(key)
    if not _DIGEST.fullmatch(text):
        raise InputError(f"{record.where}: {key} is not a digest: sha256: and 64 hexadecimal digits")
    return text


def check_text(record: Record, key: str) -> str:
    """Return a field of text that a command can carry."""
    text = record.text(key)
    if "\0" in text:
        raise InputError(f"{record.where}: holds a null character, which no command can carry")
    return text


def read_terms(written: Record) -> Terms:
    """Return what `terms_data` wrote. Raise InputError for a value that no policy can have."""
    release = written.text_or_none("release")
    if release is not None and not is_release(release):
        written.refuse("release", "a release of Ganeti that gpolicy knows")
    return Terms(
        groups={name: _group_terms(item) for name, item in written.records("groups")},
        others=_group_terms(written.record("others")),
        values={label: _term_values(written.record("values"), label) for label in written.record("values").fields},
        release=release,
    )


def _group_terms(written: Record) -> GroupTerms:
    limits, volumes = written.record("limits"), written.record("volumes")
    failures, ratio = limits.whole_or_none("max_node_failures"), limits.number_or_none("oversubscription")
    if not 0 <= (failures or 0) <= MOST_NODE_FAILURES:
        limits.refuse("max_node_failures", f"a number from 0 to {MOST_NODE_FAILURES}")
    if ratio is not None and not 0 < ratio <= GREATEST_OVERSUBSCRIPTION:
        limits.refuse("oversubscription", f"a ratio above 0 and up to {GREATEST_OVERSUBSCRIPTION}")
    terms = read_part(GroupTerms, written)
    for key in ("margin", "reserve"):
        share = volumes.number_or_none(key)
        if share is None or not 0 <= share < 1:
            volumes.refuse(key, "a share below 1")
    return terms


def _term_values(written: Record, label: str) -> Values:
    values: Values = {}
    for record in written.objects(label):
        keys = record.texts("keys")
        if keys == ALLOCATOR_PARAMETERS:
            values[keys] = record.record("value").fields
        elif keys == ENABLED_HYPERVISORS:
            values[keys] = [*record.texts("value")]
        elif keys == VOLUME_GROUP:
            values[keys] = record.text("value")
        elif not keys or record.whole("value") < 0:
            raise InputError(f"{record.where}: a declared value needs its keys, and is 0 or more")
        else:
            values[keys] = record.whole("value")
    return values
