"""Read a plan file. It is not trusted: whatever it would have done to a cluster is held against what plans hold."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path as FilePath

from gpolicy.cluster.json_input import Record, parse_json, read_bytes
from gpolicy.cluster.state import Identity, Unreadable
from gpolicy.errors import InputError
from gpolicy.findings import Span
from gpolicy.ganeti.parameter import Level, Path, Value
from gpolicy.ganeti.rapi_calls import RapiCall
from gpolicy.ganeti.values import canonical
from gpolicy.plan.change import Action, Change, Risk
from gpolicy.plan.contents import Observed
from gpolicy.plan.effects import Effect
from gpolicy.plan.plan_json import FORMAT_VERSION
from gpolicy.plan.trusted_commands import check_argv, check_rapi
from gpolicy.policy.guard import Guard, Measure
from gpolicy.policy.located import Located


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCommand:
    """One job for Ganeti, by either route, and what it does to which leaves; a route that cannot do it is None."""

    argv: tuple[str, ...] | None
    rapi: RapiCall | None = None
    effects: tuple[Effect, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    """A step of a plan file."""

    id: str
    wave: int
    title: str
    command: PlannedCommand
    inverse: tuple[PlannedCommand, ...] = ()
    not_restored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """What a plan file says, checked. `digest` is over the file itself, byte by byte.

    `format` is (major, minor). Plans of format 1.0 have no effects and no observed objects: they can be rendered only.
    `guards` are name, message and whether it passes because it was allowed; `failed_guards` those that stop the plan.
    `declared_guards` are those of the policy, with `pair_names` the names of spec pairs by object.
    `unreadable` are objects and dotted paths of declared values that the plan could not compare.
    """

    cluster: str
    cluster_uuid: str | None = None
    policy_digest: str
    state_digest: str
    steps: tuple[PlannedStep, ...]
    failed_guards: tuple[str, ...]
    digest: str = ""
    format: tuple[int, int] = (1, 0)
    source: str = ""
    state_digest_rapi: str | None = None
    changes: tuple[Change, ...] = ()
    observed: dict[str, Observed] = field(default_factory=dict)
    gaps: tuple[Unreadable, ...] = ()
    guards: tuple[tuple[str, str, bool], ...] = ()
    declared_guards: tuple[Guard, ...] = ()
    pair_names: dict[str, tuple[str | None, ...]] = field(default_factory=dict)
    unreadable: tuple[tuple[str, str], ...] = ()


def read_plan(path: FilePath) -> PlanFile:
    """Return the plan in a file. Raise InputError if it is not a plan that this gpolicy can carry out."""
    try:
        data = read_bytes(path)
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        return _plan_file(Record.of(parse_json(data, str(path)), str(path)), digest)
    except InputError as error:
        raise InputError(error.message, hint=error.hint or "make a plan with `gpolicy plan -o FILE`") from None


def _plan_file(written: Record, digest: str) -> PlanFile:
    version = _format(written)
    for key in ("steps", "guards"):
        if not isinstance(written.fields.get(key), list):
            written.refuse(key, "a list")
    guards = [Record.of(guard, f"{written.where}: guards") for guard in written.items("guards")]
    findings = [Record.of(finding, f"{written.where}: findings") for finding in written.items("findings")]
    missing = [Record.of(item, f"{written.where}: unreadable") for item in written.items("unreadable")]
    steps = tuple(_step(Record.of(step, f"{written.where}: steps")) for step in written.items("steps"))
    if len({step.id for step in steps}) != len(steps):
        raise InputError(f"{written.where}: two steps have the same id")
    changes = written.items("changes") if version >= (1, 1) else []
    return PlanFile(
        digest=digest,
        format=version,
        cluster=_text(written, "cluster"),
        cluster_uuid=written.text_or_none("cluster_uuid"),
        source=written.text_or_none("source") or "",
        policy_digest=_text(written, "policy_digest"),
        state_digest=_text(written, "state_digest"),
        state_digest_rapi=written.text_or_none("state_digest_rapi"),
        steps=steps,
        changes=tuple(_change(Record.of(change, f"{written.where}: changes")) for change in changes),
        observed={name: _observed(name, item) for name, item in written.records("observed")},
        gaps=tuple(_gap(Record.of(gap, f"{written.where}: not_shown")) for gap in written.items("not_shown")),
        guards=tuple(
            (_text(guard, "name"), _text(guard, "message"), guard.flag("allowed", default=False)) for guard in guards
        ),
        failed_guards=(
            *(f"{_text(guard, 'name')}: {_text(guard, 'message')}" for guard in guards if not guard.flag("ok")),
            *(_text(finding, "message") for finding in findings if finding.text("severity") == "error"),
        ),
        declared_guards=tuple(
            _declared(Record.of(item, f"{written.where}: declared_guards")) for item in written.items("declared_guards")
        ),
        pair_names={name: _names(written.record("pair_names"), name) for name in written.record("pair_names").fields},
        unreadable=tuple((_text(item, "object"), _text(item, "path")) for item in missing),
    )


def _declared(written: Record) -> Guard:
    measure, limit = written.text("measure"), written.number_or_none("limit")
    if measure not in set(Measure) or limit is None or limit < 0:
        raise InputError(f"{written.where}: there is no guard with the measure {measure[:20]!r} and this limit")
    here = Span(written.where, 1, 1, 1, 1)
    group, spec = written.text_or_none("group"), written.text_or_none("spec")
    return Guard(
        name=Located(_text(written, "name"), here),
        measure=Measure(measure),
        limit=int(limit) if limit.is_integer() else limit,
        span=here,
        percent=written.flag("percent"),
        group=None if group is None else Located(group, here),
        spec=None if spec is None else Located(spec, here),
    )


def _names(written: Record, name: str) -> tuple[str | None, ...]:
    names = written.items(name)
    if any(not isinstance(item, str | None) for item in names):
        written.refuse(name, "a list of names")
    return tuple(item if isinstance(item, str) else None for item in names)


def _format(written: Record) -> tuple[int, int]:
    version = written.text("format_version")
    major, _, minor = version.partition(".")
    if major != FORMAT_VERSION.partition(".")[0] or not (minor.isascii() and minor.isdigit() and len(minor) < 5):
        raise InputError(f"{written.where}: its format is {version[:20]!r}, this gpolicy reads {FORMAT_VERSION}")
    return int(major), int(minor)


def _step(step: Record) -> PlannedStep:
    inverse = step.record("inverse")
    commands = [inverse, *(Record.of(command, f"{step.where}: inverse") for command in inverse.items("more"))]
    undo = [command for command in commands if (command.fields.get("argv"), command.fields.get("rapi")) != (None, None)]
    return PlannedStep(
        id=_text(step, "id"),
        wave=step.whole("wave"),
        title=_text(step, "title"),
        command=_command(step),
        inverse=tuple(_command(command) for command in undo),
        not_restored=tuple(_no_null(reason, step.where) for reason in inverse.texts("not_restored")),
    )


def _command(command: Record) -> PlannedCommand:
    argv, rapi = command.fields.get("argv"), command.fields.get("rapi")
    effects = tuple(_effect(Record.of(item, f"{command.where}: effects")) for item in command.items("effects"))
    return PlannedCommand(
        argv=None if argv is None else check_argv(command.texts("argv"), command.where),
        rapi=None if rapi is None else check_rapi(command.record("rapi")),
        effects=effects,
    )


def _effect(written: Record) -> Effect:
    name, path = _object(_text(written, "object"), written.where), _keys(written)
    return Effect(name, path, _value(written, path, "before"), _value(written, path, "after"))


def _change(written: Record) -> Change:
    label = _object(_text(written, "object"), written.where)
    level, slash, name = label.partition("/")
    path = _keys(written)
    action, risk = written.text("action"), written.text("risk")
    if action not in set(Action) or risk not in set(Risk):
        raise InputError(f"{written.where}: there is no action {action[:20]!r} of risk {risk[:20]!r}")
    return Change(
        level=Level(level),
        object_name=name if slash else None,
        path=path,
        action=Action(action),
        before=_value(written, path, "before"),
        after=_value(written, path, "after"),
        effective_before=written.fields.get("effective_before"),
        effective_after=written.fields.get("effective_after"),
        takes_effect=_text(written, "takes_effect"),
        risk=Risk(risk),
        reason=written.text_or_none("reason") or "",
        affects=tuple(written.texts("affects")),
    )


def _observed(name: str, written: Record) -> Observed:
    _object(name, written.where)
    values = [Record.of(item, f"{written.where}: values") for item in written.items("values")]
    identity = Identity(uuid=written.text_or_none("uuid"), serial_no=written.whole_or_none("serial_no"))
    return Observed(identity, {path: _value(item, path, "value") for item in values for path in (_keys(item),)})


def _gap(written: Record) -> Unreadable:
    level = written.text("level")
    if level not in set(Level):
        raise InputError(f"{written.where}: level should be cluster, group or node, but is {level[:20]!r}")
    return Unreadable(level=Level(level), prefix=tuple(written.texts("prefix")))


def _object(name: str, where: str) -> str:
    level, slash, rest = name.partition("/")
    if (name != "cluster") and (level not in ("group", "node") or not slash or not rest):
        raise InputError(f"{where}: {name[:40]!r} is no object: cluster, group/NAME or node/NAME")
    return name


def _keys(record: Record) -> Path:
    keys = tuple(record.texts("keys"))
    if not keys:
        raise InputError(f"{record.where}: keys should be the path of a value")
    return keys


def _value(record: Record, path: Path, key: str) -> Value:
    value = record.fields.get(key)
    return None if value is None else canonical(path, value)


def _text(record: Record, key: str) -> str:
    return _no_null(record.text(key), record.where)


def _no_null(text: str, where: str) -> str:
    if "\0" in text:
        raise InputError(f"{where}: holds a null character, which no command can carry")
    return text
