"""Moving existing instances to other groups: change-group."""

from __future__ import annotations

from functools import partial

from gpolicy.allocator.engines import Narrowing
from gpolicy.allocator.enumerations import DiskTemplate
from gpolicy.allocator.evacuation import (
    Departure,
    Evacuated,
    EvacuationError,
    EvacuationMode,
    each_in_turn,
    evacuate,
)
from gpolicy.allocator.group_choice import Wanted, choose_group, search_ordinary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gpolicy.allocator.cluster_data import Group, Instance
    from gpolicy.allocator.evacuation import EvacuationResult, Observer
    from gpolicy.allocator.placement import Nodes
    from gpolicy.allocator.request_options import RequestOptions
    from gpolicy.stopping import Stop


def change_group(  # noqa: PLR0913 (what hail is asked)
    groups: Mapping[int, Group],
    nodes: Nodes,
    instances: Mapping[int, Instance],
    wanted: Sequence[int],
    targets: Sequence[int],
    options: RequestOptions,
    *,
    show_groups: Callable[[Sequence[Group]], str],
    observer: Observer | None = None,
    stop: Stop | None = None,
) -> EvacuationResult:
    """Move each of the instances `wanted` to one of the groups `targets` (empty: any other group); none after a `stop`.

    The group is chosen by placing a second copy of the instance, which is then dropped.
    """
    allowed = list(targets) if targets else list(groups)
    for number in dict.fromkeys(nodes[instances[index].primary].facts.group for index in wanted):
        if number in allowed:
            allowed.remove(number)

    engine = Narrowing(nodes, instances)

    def go(state: Nodes, table: Mapping[int, Instance], instance: Instance) -> Evacuated:
        populated = [group for group in groups.values() if any(n.facts.group == group.index for n in state.values())]
        if not any(group.index in allowed for group in populated):
            raise EvacuationError(
                "no groups for evacuation: allowed groups was Just"
                f" [{','.join(map(str, allowed))}], all groups: {show_groups(populated)}"
            )
        count = 2 if instance.template is DiskTemplate.DRBD else 1
        search = partial(search_ordinary, Wanted(instance, count), options)
        answer = choose_group(groups, state, table, instance, search, allowed=allowed)
        if answer.group is None:
            raise EvacuationError(", ".join(answer.messages))
        candidates = [
            index for index, node in state.items() if node.facts.group == answer.group and not node.facts.offline
        ]
        asked = Departure(state, instance, EvacuationMode.ALL, answer.group, candidates, force=False)
        return evacuate(asked, engine, observer)

    return each_in_turn(nodes, instances, wanted, go, stop)
