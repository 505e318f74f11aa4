"""GP117 to GP119: TCP ports and user IDs that others have on a node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, cast

from gpolicy.checking.context import Context, number
from gpolicy.checking.in_force import in_force, places
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import warning_rule
from gpolicy.ganeti.parameter import Path
from gpolicy.ganeti.parameters import PARAMETERS
from gpolicy.ganeti.vocabulary import GANETI_PORTS, INSTANCE_PORTS, SERVICE_PORTS
from gpolicy.policy.misspelt import is_typing_slip
from gpolicy.printable import count as in_words
from gpolicy.rules.examples import CLUSTER
from gpolicy.rules.shapes import MoreWithState, WholePolicyRule

_SSH: Final[Path] = ("ndparams", "ssh_port")
_GLUSTER: Final[Path] = ("diskparams", "gluster", "port")
_MIGRATION: Final[tuple[Path, ...]] = tuple(
    ("hvparams", hypervisor, "migration_port") for hypervisor in ("kvm", "xen-hvm", "xen-pvm")
)
_USUAL_PORTS: Final = {
    parameter.path: parameter.default for parameter in PARAMETERS if parameter.path in (_GLUSTER, *_MIGRATION)
}
_USUAL_SSH: Final = 22
_UIDS: Final[Path] = ("uid_pool",)
_NOBODY: Final = 65534
_TWO_IDS: Final = 8  # digits: two IDs without the dash between them


class PortTaken(MoreWithState):
    info = warning_rule("GP117", "port-taken")(
        summary="A TCP port of the nodes, or of storage, is one that something else uses there, or the usual one with a"
        " slip.",
        rationale="Ganeti's daemons listen on 1811 (noded), 1814 (confd), 1815 (mond) and 5080 (RAPI). It gives the"
        " ports 11000 to 14999 to DRBD disks and consoles as they come, so a migration on such a port fails when it is"
        " given away. Other services have ports by custom, and those of the system all below 1024. Ganeti checks none"
        " of this.",
        source="Ganeti 3.0, its constants; gnt-instance(8); the register of IANA",
        bad=f"{CLUSTER}hvparams:\n  kvm: {{migration_port: 11000}}\n",
        good=f"{CLUSTER}hvparams:\n  kvm: {{migration_port: 8102}}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, leaf in context.explicit_at(_SSH, _GLUSTER, *_MIGRATION):
            port = number(leaf)
            ssh = in_force(context, declared, _SSH) if leaf.path != _SSH else None
            user = GANETI_PORTS.get(int(port), "")
            if INSTANCE_PORTS[0] <= port <= INSTANCE_PORTS[1]:
                user = "DRBD disks and consoles of instances"
            elif (leaf.path, port) not in {(_GLUSTER, 24007), (_GLUSTER, 24008)} and port in SERVICE_PORTS:
                user = SERVICE_PORTS[int(port)]
            elif leaf.path != _SSH and 0 < port < 1024 and port != _USUAL_SSH:
                user = "services of the system, as all below 1024"
            elif leaf.path == _SSH and 0 < port < _USUAL_SSH:
                user = "services of the system that are older than ssh"
            elif leaf.path != _SSH and (port == ssh.number if ssh is not None else port == _USUAL_SSH):
                user = "ssh"
            usual = str(_USUAL_PORTS.get(leaf.path, ""))
            if user:
                message = f"{leaf.dotted} is {leaf.value}, a port of {user}"
                yield self.hit(declared, message, leaf.span, hint="write a port that nothing else on the nodes uses")
            elif usual and is_typing_slip(str(leaf.value), usual):
                message = f"{leaf.dotted} is {leaf.value}, which is almost the usual port"
                yield self.hit(declared, message, leaf.span, hint=f"Did you mean `{usual}`?")


class UidPoolOfOthers(Rule):
    info = warning_rule("GP118", "uid-pool-of-others")(
        summary="uid_pool has user IDs of the system or of people, or the same ID twice.",
        rationale="Instances run with IDs of the pool, so that one that breaks out can do nothing. With 0 it is root,"
        " with an ID below 1000 a service of the system; people get the IDs from 1000 on, and 65534 is nobody, whom"
        " others use as well.",
        source="Ganeti 3.0 takes any ID from 0; Debian policy, 9.2.2",
        bad=f'{CLUSTER}uid_pool: ["100-199"]\n',
        good=f'{CLUSTER}uid_pool: ["20000-20099"]\n',
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, leaf in context.explicit_at(_UIDS):
            ranges = sorted((int(low), int(high)) for low, high in cast(list[Any], leaf.value))
            before = -1
            for low, high in ranges:
                reason = ""
                digits = str(low)
                half = len(digits) // 2
                if low == high and len(digits) >= _TWO_IDS and digits[:half] < digits[half:] and not len(digits) % 2:
                    reason = f"has the single ID {low}: a range is written {digits[:half]}-{digits[half:]}"
                elif low == 0:
                    reason = "has 0, which is root"
                elif low < 1000:
                    reason = f"has {low}, an ID of the system"
                elif low < 2000:
                    reason = f"has {low}, an ID that systems give to people"
                elif low <= _NOBODY <= high:
                    reason = f"has {_NOBODY}, which is nobody"
                elif low <= before:
                    reason = f"has {low} twice"
                before = max(before, high)
                if reason:
                    hint = "write IDs that nobody else has, such as 20000-20099"
                    yield self.hit(declared, f"uid_pool {reason}", leaf.span, hint=hint)


class UidPoolTooSmall(MoreWithState, WholePolicyRule):
    info = warning_rule("GP119", "uid-pool-too-small")(
        summary="security_model is pool, but uid_pool has fewer user IDs than a node has instances.",
        rationale="Each running instance of a node needs an ID of its own from the pool. Without a free one Ganeti does"
        " not start it. gpolicy counts the running instances of the cluster's nodes, and how many of the largest"
        " allowed size fit the promised memory; nodes hold four at least.",
        source="Ganeti 3.0.2, how it starts instances; gnt-instance(8)",
        bad=f"{CLUSTER}hvparams:\n  kvm: {{security_model: pool}}\nuid_pool: []\n",
        good=f'{CLUSTER}hvparams:\n  kvm: {{security_model: pool}}\nuid_pool: ["20000-20099"]\n',
    )

    def check(self, context: Context) -> Iterator[Hit]:
        cluster = context.policy.cluster
        model = in_force(context, cluster, ("hvparams", "kvm", "security_model")) if cluster is not None else None
        if cluster is None or model is None or model.value != "pool":
            return
        leaf = context.cluster_leaf(_UIDS)
        observed = context.state.cluster.own.get(_UIDS, []) if context.state else []
        ranges = leaf.value if leaf is not None else observed
        own = [item for item in (leaf, model.leaf) if item is not None]
        if not own or not isinstance(ranges, list) or not all(isinstance(item, list) for item in ranges):
            return
        count = sum(int(str(high)) - int(str(low)) + 1 for low, high in cast(list[Any], ranges))
        needed = _instances_of_a_node(context)
        if count < needed:
            place, related, _ = places(context, cluster, model)
            has = in_words(count, "user ID") if count else "no user IDs"
            where = (
                "uid_pool has" if leaf is not None or context.state else "the policy declares no uid_pool, which has"
            )
            message = (
                f"security_model pool needs a user ID for each instance of a node, {needed} or more, but {where} {has}"
            )
            hint = "write as many IDs as a node has instances: uid_pool: [20000-20099]"
            yield self.hit(cluster, message, own[0].span if place is None else place, hint=hint, related=related)


def _instances_of_a_node(context: Context) -> int:
    """Return how many instances a node runs or can hold at least: what the cluster has, and what surely fits."""
    found = [4]  # on any node but one of a laboratory
    if context.state is not None:
        running = (item.primary_node for item in context.state.instances.values() if item.admin_state == "up")
        found += Counter(running).values()
    for group in context.groups:
        sizes = [pair.maximum["memory-size"] for pair in context.pairs(group)]
        if group.hardware is not None and group.hardware.memory is not None and sizes and max(sizes) > 0:
            found.append(group.hardware.memory.value // max(sizes))
    return max(found)
