"""GP741 to GP743: what `gpolicy plan` goes by, and the guards it has anyway, asked before there is a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import NO_PLAN, error_rule, warning_rule
from gpolicy.ganeti.releases import release_of, unknown_release
from gpolicy.policy.guard import BUILT_IN
from gpolicy.rules.examples import CLUSTER, GROUP

if TYPE_CHECKING:
    from gpolicy.plan.change import Objection

_SILVER: Final = "gpolicy: v1\nkind: NodeGroup\nname: silver\n"


class _GuardRule(Rule):
    """A rule about what the built-in guards have against the plan."""

    needs_state = True
    needs_whole_policy = True
    said_by_plan = True
    better = (
        ("expressible", ("GP101", "GP102")),
        ("templates-enabled", ("GP301", "GP308")),
        ("templates-in-use", ("GP309",)),
        ("std-in-bounds", ("GP205",)),
        ("groups-empty", ("GP721", "GP722")),
        ("storage-set-up", ("GP304", "GP305", "GP311")),
        ("exclusive-storage", ("GP412", "GP417", "GP418")),
    )
    overridable: ClassVar[bool]
    hint: ClassVar[str]

    def check(self, context: Context) -> Iterator[Hit]:
        if context.desired is None or context.desired.findings:
            return  # what the plan would be is not known before these are mended
        for name, raised in context.once(_objections).items():
            for objection in raised if BUILT_IN[name].overridable is self.overridable else ():
                yield self.hit("", f"{name}: {objection.text}", objection.span, hint=self.hint.format(name), guard=name)


def _objections(context: Context) -> Mapping[str, Sequence[Objection]]:
    """Return what the built-in guards have against the plan for the observed cluster."""
    return context.forecast.objections(context.policy, context.state) if context.state else {}


class PlanImpossible(_GuardRule):
    info = error_rule("GP741", "plan-impossible", NO_PLAN)(
        summary="Ganeti would refuse a part of the plan that the policy leads to.",
        rationale="The guards of `gpolicy plan` object to it, and nothing can override them: the plan could not be"
        " carried out to its end. Guards that other rules know more about (GP301, GP309, GP722) are reported by these.",
        source="gpolicy plan, built-in guards",
        bad=f"{GROUP}nodes: [node1.example.org]\n---\n{_SILVER}nodes: [node2.example.org]\n",
        good=f"{GROUP}nodes: [node1.example.org, node2.example.org]\n---\n{_SILVER}",
    )
    overridable = False
    hint = "change what the policy says, or the cluster, first"


class PlanUnsafe(_GuardRule):
    info = warning_rule("GP742", "plan-unsafe")(
        summary="A built-in guard would stop the plan that the policy leads to.",
        rationale="Ganeti would do without a question what may cut off the master, or redirect disks. `gpolicy plan`"
        " stops there, unless `--allow` overrides the guard.",
        source="gpolicy plan, built-in guards",
        bad=f"{CLUSTER}master_netdev: eth1\n",
        good=f"{CLUSTER}master_netdev: eth0\n",
    )
    overridable = True
    hint = "correct the policy; if it is meant, override the guard with gpolicy plan --allow {}"


class OtherRelease(Rule):
    info = warning_rule("GP743", "other-release")(
        summary="The cluster has another release of Ganeti than the policy says, or one that gpolicy does not know.",
        rationale="Plans go by the cluster's release, and so does `check --state`. `check` alone and editors go by"
        " `ganeti_version`: they judge which parameters and values exist by a release that the cluster does not have.",
        source="gpolicy",
        bad=f'{CLUSTER}ganeti_version: "2.16"\n',
        good=f'{CLUSTER}ganeti_version: "3.0"\n',
    )
    needs_state = True

    def check(self, context: Context) -> Iterator[Hit]:
        declared, state = context.policy.cluster, context.state
        if state is None:
            return
        if unknown := unknown_release(state.software_version):
            yield self.hit(declared or "cluster", unknown, declared.span if declared else None)
        said = declared.ganeti_version if declared else None
        release = release_of(state.software_version)
        if declared is None or said is None or release in (release_of(said), None):
            return
        message = f"the cluster has Ganeti {state.software_version}, the policy is for {said}"
        span = declared.document.value_span(("ganeti_version",))
        yield self.hit(declared, message, span, hint=f'write ganeti_version: "{release}"')
