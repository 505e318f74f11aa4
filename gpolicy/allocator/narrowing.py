"""The compiled engine finds the best moves of an evacuation; the law then makes them."""

from __future__ import annotations

from gpolicy.allocator.engines import engine_cluster
from gpolicy.allocator.evacuation import EvacuationMode
from gpolicy.allocator.native.library import Leaving, Unlisted
from gpolicy.allocator.native.streams import UnfitError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpolicy.allocator.cluster_data import Instance
    from gpolicy.allocator.evacuation import Departure
    from gpolicy.allocator.placement import Nodes


class Narrowing:
    """Finds the best move of each instance in turn with the compiled engine, so that the law tries few candidates.

    Without an engine, or if it cannot answer, the law tries all candidates.
    """

    def __init__(self, nodes: Nodes, instances: Mapping[int, Instance]) -> None:
        """Begin with the state before the first move."""
        self._engine = engine_cluster(nodes, instances)

    def narrow(self, asked: Departure) -> Sequence[int]:
        """Return the candidates of the best move or, if there is none, those that the error message names."""
        instance, candidates = asked.instance, asked.candidates
        if self._engine is None:
            return candidates
        leaving, unlisted = _LEAVING[asked.mode], _unlisted(asked.nodes, instance)
        try:
            found = self._engine.move(instance, leaving, unlisted, candidates, force=asked.force)
        except UnfitError:
            self._engine = None
            return candidates
        if found:
            return [node for node in candidates if node in found]
        # the message names the last pair that failed, or each single node
        return candidates[-2:] if asked.by_pairs else candidates


def _unlisted(nodes: Nodes, instance: Instance) -> Unlisted:
    """Return the nodes of a record that do not list it: an instance named twice moves again by its old record."""
    primary, secondary = nodes[instance.primary], nodes.get(instance.secondary)
    result = Unlisted(0)
    if instance.index not in primary.primaries:
        result |= Unlisted.PRIMARY
    if secondary is not None and instance.index not in secondary.secondaries:
        result |= Unlisted.SECONDARY
    return result


_LEAVING = {
    EvacuationMode.PRIMARY: Leaving.PRIMARY,
    EvacuationMode.SECONDARY: Leaving.SECONDARY,
    EvacuationMode.ALL: Leaving.BOTH,
}
