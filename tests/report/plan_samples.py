"""A plan with every kind of change, guard, finding and gap, made by hand; `named` may turn names into hostile ones."""

from __future__ import annotations

from gpolicy.findings import Finding, Severity, Span
from gpolicy.ganeti.commands import RapiCall
from gpolicy.ganeti.vocabulary import Level, Value
from gpolicy.plan.built_in_guards import GuardResult
from gpolicy.plan.changes import MEMBERSHIP, NAME, TAGS, Change, NotCompared, Risk
from gpolicy.plan.plan import Plan
from gpolicy.plan.step import Inverse, PlannedCommand, Step, StepWave
from tests.report.impact_samples import Named, plain

HOSTILE = (
    "a|b",
    "`tick`` ```",
    "<script>alert(1)</script>",
    "line\nbreak\r\n\n# heading",
    "@octocat",
    "#12 !34 $5",
    "[x](http://evil.example) <http://evil.example>",
    "*bold* __strong__ ~~gone~~",
    "back\\slash \\| \\",
    "\u202eright to left\x1b[2J",
    "</details></summary>-->",
    "&amp; &#64;you",
    " ",
    "1. one",
    "- item",
    "![img](https://evil.example/x.png)",
    "x" * 900,
    "::error::x ##[error]y",
)


def hostile(name: str) -> str:
    """Return one of the hostile names, always the same for one name."""
    return f"{name}{HOSTILE[sum(map(ord, name)) % len(HOSTILE)]}"


def pair(low: int, high: int) -> Value:
    def spec(memory: int) -> dict[str, Value]:
        return {
            "memory-size": memory,
            "cpu-count": 1,
            "disk-size": 1024,
            "disk-count": 1,
            "nic-count": 1,
            "spindle-use": 1,
        }

    return {"min": spec(low), "max": spec(high)}


def full_plan(named: Named = plain, *, safe: bool = False, many: int = 1) -> Plan:
    group, node = named("shared"), named("node8")
    span = Span(named("policies/groups.yaml"), 7, 3, 7, 20)

    def change(level: Level, name: str | None, path: tuple[str, ...], old: Value, new: Value) -> Change:
        return Change(
            level=level,
            object_name=name,
            path=path,
            before=old,
            after=new,
            effective_before=old if old is not None else 1,
            effective_after=new,
            risk=Risk.MEDIUM,
            reason=f"existing instances of {named('owner')} may violate the new policy",
            affects=(f"group/{named('spare')}",),
            span=span,
        )

    changes = (
        change(Level.CLUSTER, None, ("ipolicy", "minmax"), [pair(128, 32768)], [pair(1024, 65536)]),
        change(Level.CLUSTER, None, TAGS, [named("old")], [named("new")]),
        *(change(Level.GROUP, f"{group}{n}", ("alloc_policy",), None, "last_resort") for n in range(many)),
        change(Level.GROUP, group, NAME, named("default"), group),
        change(Level.GROUP, named("fresh"), NAME, None, named("fresh")),
        change(Level.GROUP, group, ("ipolicy", "vcpu-ratio"), 2.0, None),
        change(Level.NODE, node, MEMBERSHIP, named("spare"), group),
    )
    step = Step(
        wave=StepWave.GROUPS,
        object=f"group/{group}",
        title=f"modify group {group}: alloc_policy",
        command=PlannedCommand(("gnt-group", "modify", "--alloc-policy=last_resort", group)),
        inverse=Inverse((), (f"{named('hv')} stays",)),
    )
    rapi = Step(
        wave=StepWave.POOL,
        object="cluster",
        title="modify the cluster",
        command=PlannedCommand(None, RapiCall("PUT", "/2/modify", {})),
        inverse=Inverse(),
    )
    guards = (
        GuardResult(named("no-shrink"), safe, f"size {named('large')} of {group}: 8 → 3, more than 10 %"),
        GuardResult("disks-stay", ok=True, message=f"disks of {named('web')} are redirected", allowed=True),
        GuardResult(named("survive"), ok=True, message="1 of 1"),
    )
    finding = Finding("GP608", "name-taken", Severity.WARNING, f"{named('gold')} is taken", span, f"rename {node}")
    return Plan(
        cluster=named("ganeti.example.org"),
        source=named("config:/x"),
        version="3.0",
        policy_digest="sha256:" + "a" * 64,
        state_digest="sha256:" + "b" * 64,
        changes=changes,
        steps=(*(step for _ in range(many)), rapi),
        guards=guards,
        not_compared=(NotCompared(f"group/{group}", ("hv_state", "kvm", "mem_node"), 6144, span),),
        findings=(finding,),
        notes=(f"{named('note')}: no run-time state",),
    )


def empty_plan(named: Named = plain) -> Plan:
    return Plan(
        cluster=named("ganeti.example.org"),
        source="rapi://x",
        version="3.0",
        policy_digest="sha256:" + "a" * 64,
        state_digest="sha256:" + "b" * 64,
    )
