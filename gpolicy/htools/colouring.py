"""How hroller colours the graph of nodes: nodes of one colour may be rebooted together.

The vertices are the numbers from `first` on; each has the list of its neighbours. A neighbour that is listed more than
once counts as often, and a vertex may be its own neighbour.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Graph = Mapping[int, Sequence[int]]
    Colours = Mapping[int, int]
    Found = list[tuple[str, list[list[int]]]]


def colour_nodes(graph: Graph) -> Found:
    """Return the names of the three algorithms and the vertices of each colour, ascending; fewer colours come first."""
    found = [(name, _by_colour(colour(graph))) for name, colour in _ALGORITHMS.items()]
    return sorted(found, key=lambda result: len(result[1]))


def fewest_colours(found: Found) -> list[list[int]]:
    """Return what counts for hroller: of the algorithms with as few colours as the first one, the last one's."""
    return [colours for _, colours in found if len(colours) == len(found[0][1])][-1]


def _by_colour(colours: Colours) -> list[list[int]]:
    classes: list[list[int]] = [[] for _ in range(max(colours.values()) + 1)]
    for vertex in sorted(colours):
        classes[colours[vertex]].append(vertex)
    return classes


def _least_free(graph: Graph, colours: Colours, vertex: int) -> int:
    used = {colours[other] for other in graph[vertex] if other in colours}
    return next(colour for colour in range(len(used) + 1) if colour not in used)


def _largest_first(graph: Graph) -> Colours:
    """Colour the vertices in the order of their degrees, of equal ones the later first."""
    colours: dict[int, int] = {}
    for vertex in sorted(graph, key=lambda vertex: (len(graph[vertex]), vertex), reverse=True):
        colours[vertex] = _least_free(graph, colours, vertex)
    return colours


def _dynamic(graph: Graph, *, distinct: bool) -> Colours:
    """Colour the vertex with the most coloured neighbours next (with `distinct` those of most colours).

    Of equal ones the one with the greater degree is next, then the later one.
    """
    first, unit = min(graph), 1 + max(map(len, graph.values()))
    # coloured neighbours, degree and number of each vertex as one number; -1 if it has its colour
    ranks = [len(graph[vertex]) * len(graph) + vertex - first for vertex in sorted(graph)]
    colours: dict[int, int] = {}
    seen: list[set[int]] = [set() for _ in ranks]
    for _ in ranks:
        vertex = first + max(ranks) % len(graph)
        colour = colours[vertex] = _least_free(graph, colours, vertex)
        ranks[vertex - first] = -1
        for other in graph[vertex]:
            place = other - first
            if other not in colours and not (distinct and colour in seen[place]):
                seen[place].add(colour)
                ranks[place] += unit * len(graph)
    return colours


_ALGORITHMS: Mapping[str, Callable[[Graph], Colours]] = {
    "Dcolor": lambda graph: _dynamic(graph, distinct=False),
    "Dsatur": lambda graph: _dynamic(graph, distinct=True),
    "LF": _largest_first,
}
