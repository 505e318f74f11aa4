"""Make tests from documents that conform to their schema."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Final, cast

from gpolicy.findings import Located
from gpolicy.guessing import did_you_mean_one_of
from gpolicy.policy import scenario
from gpolicy.policy.building import DocumentReader, T, TellFinding
from gpolicy.policy.source_file import WRONG_VALUE, Pointer, YamlDocument

_SIZES: Final = frozenset({"memory", "memory_node", "disk", "memory-size", "minmem"})
_FIELDS: Final = {
    "memory-size": "memory",
    "cpu-count": "cpus",
    "disk-template": "template",
    "with": "more",
    "remove_instance": "removed_instance",
    "remove_node": "removed_node",
}
"""The fields of keys that have another name."""


def build_scenarios(document: YamlDocument, report: TellFinding) -> Iterator[scenario.Scenario]:
    """Yield the tests of a document; findings about values go to `report`."""
    builder = _ScenarioBuilder(document, report)
    yield from (builder.build(written, ("tests", index)) for index, written in enumerate(document.root["tests"]))


class _ScenarioBuilder(DocumentReader):
    def build(self, written: dict[str, Any], at: Pointer) -> scenario.Scenario:
        action = next(item for item in scenario.Action if item.value in written)
        question, place = written[action.value], (*at, action.value)
        instance = action in (scenario.Action.PLACE, scenario.Action.CHECK_INSTANCE)
        is_redundancy = action is scenario.Action.REDUNDANCY
        failing = self.at((*place, "failures") if is_redundancy and "failures" in question else place)
        redundancy = self._made(scenario.RedundancyQuestion, question, place, span=failing) if is_redundancy else None
        return scenario.Scenario(
            name=Located(written["name"], self.at((*at, "name"))),
            action=action,
            span=self.at((*at, "name")),
            stage=self._stage(written["on"], (*at, "on")) if "on" in written else scenario.Stage(),
            expectations=tuple(self._expectations(written["expect"], (*at, "expect"))),
            sizes=self._build_sizes(question, place) if instance else None,
            capacity=self._capacity(question, place) if action is scenario.Action.CAPACITY else None,
            redundancy=redundancy,
        )

    def _stage(self, written: dict[str, Any], at: Pointer) -> scenario.Stage:
        if "snapshot" in written and "simulate" in written:
            message = "a test runs on a snapshot or on simulated hardware, not on both"
            self.wrong(message, (*at, "simulate"), "leave one of them out; `edits` change either", of_key=True)
        parts = written.get("simulate", [])
        several = isinstance(parts, list)
        numbered = Counter[str]()
        groups = [
            self._simulated(part, (*at, "simulate", index) if several else (*at, "simulate"), numbered)
            for index, part in enumerate(parts if several else [parts])
        ]
        self._check_nodes(groups)
        edits = tuple(self._edit(item, (*at, "edits", n)) for n, item in enumerate(written.get("edits", ())))
        if "simulate" in written:
            self._check_instances(groups, edits)
        return self._made(scenario.Stage, written, at, simulated=tuple(groups), edits=edits)

    def _check_nodes(self, groups: list[scenario.SimulatedGroup]) -> None:
        seen: set[str] = set()
        for group in groups:
            for node in group.nodes:
                if node.name in seen:
                    hint = "give it another name; a number of nodes makes node-1, node-2 and so on"
                    message = f"a second node {node.name!r}"
                    self.report(WRONG_VALUE.finding(message, node.span, hint=hint, missing=f"names at {node.span}"))
                seen.add(node.name)
        if len(seen) > scenario.MOST_NODES:
            message = f"{len(seen)} simulated nodes; a test has at most {scenario.MOST_NODES}"
            self.report(WRONG_VALUE.finding(message, groups[0].span))

    def _check_instances(self, groups: list[scenario.SimulatedGroup], edits: tuple[scenario.StageEdit, ...]) -> None:
        known: set[str] = set()
        for existing in [item for group in groups for item in group.instances]:
            self._add_names(existing, known)
        for edit in edits:
            if edit.more is not None:
                return  # it makes names of its own
            if edit.add is not None:
                self._add_names(edit.add, known)
            for name in (edit.instance, edit.removed_instance):
                if name is not None and name.value not in known:
                    message = f"the cluster of this test has no instance {name.value!r}"
                    hint = did_you_mean_one_of(name.value, "instances", known) if known else "simulate the instance"
                    self.report(WRONG_VALUE.finding(message, name.span, hint=hint))
            if edit.removed_instance is not None:
                known.discard(edit.removed_instance.value)

    def _add_names(self, existing: scenario.Existing, known: set[str]) -> None:
        if taken := sorted(known.intersection(existing.names)):
            message = f"a second instance {taken[0]!r}"
            self.report(WRONG_VALUE.finding(message, existing.name.span, hint="give it another name"))
        known.update(existing.names)

    def _simulated(self, written: dict[str, Any], at: Pointer, numbered: Counter[str]) -> scenario.SimulatedGroup:
        instances = enumerate(written.get("instances", ()))
        return self._made(
            *(scenario.SimulatedGroup, written, at),
            span=self.at(at),
            machine=self._machine(written, at),
            nodes=tuple(self._simulated_nodes(written["nodes"], (*at, "nodes"), numbered)),
            instances=tuple(self._existing(item, (*at, "instances", index)) for index, item in instances),
        )

    def _simulated_nodes(self, written: Any, at: Pointer, numbered: Counter[str]) -> Iterator[scenario.SimulatedNode]:
        """Yield the nodes of a group. `numbered` are the names that the groups before it took."""
        if isinstance(written, list):
            for index, node in enumerate(written):
                place = (*at, index)
                yield self._made(
                    *(scenario.SimulatedNode, node, place),
                    name=node["name"],
                    span=self.at((*place, "name")),
                    machine=self._machine(node, place),
                    filled=scenario.FILLINGS[node.get("filled", "empty")],
                )
        elif isinstance(written, dict):
            for filling, count in written.items():
                span = self.at((*at, filling))
                for name in _next_names(filling, int(count), numbered, is_filling=True):
                    yield scenario.SimulatedNode(name=name, span=span, filled=scenario.FILLINGS[filling])
        else:
            for name in _next_names("node", int(written), numbered):
                yield scenario.SimulatedNode(name=name, span=self.at(at))

    def _machine(self, written: dict[str, Any], at: Pointer) -> scenario.Machine:
        return self._made(scenario.Machine, written, at, pv_sizes=self._volumes(written, at))

    def _volumes(self, written: dict[str, Any], at: Pointer) -> tuple[int, ...] | None:
        if "pvs" in written:
            if "pv_size" in written or "pv_count" in written:
                self.wrong("pvs are all physical volumes: no pv_size or pv_count beside them", (*at, "pvs"))
            return tuple(self._mib(size, (*at, "pvs", index)) for index, size in enumerate(written["pvs"]))
        if ("pv_size" in written) != ("pv_count" in written):
            self.wrong("pv_size and pv_count belong together", at, "write both, or neither")
        if "pv_size" not in written or "pv_count" not in written:
            return None
        if written["pv_count"] > 1000:
            self.wrong("a node has at most 1000 physical volumes here", (*at, "pv_count"))
            return None
        return (self._mib(written["pv_size"], (*at, "pv_size")),) * int(written["pv_count"])

    def _edit(self, written: dict[str, Any], at: Pointer) -> scenario.StageEdit:
        add = self._existing(written["add_instance"], (*at, "add_instance")) if "add_instance" in written else None
        edit = self._made(scenario.StageEdit, written, at, span=self.at(at), add=add)
        of_nodes = [key for key in ("offline", "drained", "group") if key in written]
        tags = [key for key in ("add_tags", "remove_tags") if key in written]
        extra = [*of_nodes, *(tags if edit.instance is None else ())] if edit.node is None else []
        if extra:
            self.wrong(f"{extra[0]} does not belong to this edit", (*at, extra[0]), of_key=True)
        if not extra and (edit.node or edit.instance) and not of_nodes and not tags:
            self.wrong("this edit changes nothing", at, "say what is different: offline, drained, group, tags")
        return edit

    def _existing(self, written: dict[str, Any], at: Pointer) -> scenario.Existing:
        nodes = tuple(self.document.located((*at, "nodes", number)) for number in range(len(written["nodes"])))
        sizes = self._build_sizes(written, at)
        if sizes.template is not None and (sizes.template.value == "drbd") != (len(nodes) == 2):
            needed = "two nodes" if len(nodes) < 2 else "one node"
            self.wrong(f"an instance on {sizes.template.value} has {needed}", (*at, "nodes"))
        running = written.get("running", True) and not written.get("offline", False)
        return self._made(scenario.Existing, written, at, nodes=nodes, sizes=sizes, running=running)

    def _build_sizes(self, written: dict[str, Any], at: Pointer) -> scenario.Sizes:
        if "bound" in written and "spec" not in written:
            self.wrong("bound is an end of a size, and there is no size here", (*at, "bound"), of_key=True)
        sizes: list[tuple[str, Any, Pointer]] = []
        sizes += [(key, written[key], (*at, key)) for key in ("memory-size", "minmem") if key in written]
        disks: list[scenario.DiskSize] = []
        for index, item in enumerate(written.get("disks", ())):
            place: Pointer = (*at, "disks", index)
            disk = item if isinstance(item, dict) else {"size": item}
            place = (*place, "size") if disk is item else place
            disks.append(scenario.DiskSize(self._mib(disk["size"], place), _count(disk, "spindles")))
            sizes.append(("disk-size", disk["size"], place))
        has_units = any(isinstance(size, str) and size[-1:].isalpha() for _, size, _ in sizes)
        bare = [(key, Located(size, self.at(where))) for key, size, where in sizes if isinstance(size, int)]
        return self._made(
            *(scenario.Sizes, written, at),
            span=self.at(at),
            bound=written.get("bound", "min"),
            disks=tuple(disks) if "disks" in written else None,
            bare=tuple(bare) if has_units else (),
        )

    def _capacity(self, written: dict[str, Any], at: Pointer) -> scenario.CapacityQuestion:
        standard = written.get("standard", {})
        where = (*at, "standard")
        ratio = written.get("oversubscription")
        return self._made(
            *(scenario.CapacityQuestion, written, at),
            standard=tuple((key, self._mib(value, (*where, key))) for key, value in standard.items()),
            weights=tuple((name, float(weight)) for name, weight in written.get("weights", {}).items()),
            oversubscription=None if ratio is None else float(ratio),
        )

    def _expectations(
        self, written: dict[str, Any], at: Pointer, above: tuple[str, ...] = ()
    ) -> Iterator[scenario.Expectation]:
        for key, value in written.items():
            place, path = (*at, key), (*above, key)
            match key, value:
                case "tiered", dict() if "specs" in value:
                    yield from self._each(value["specs"], path, (*place, "specs"))
                case "lost_allocations" | "specs", dict():
                    yield from self._each(value, path, place)
                case "binding", dict():
                    yield from (self._one((*path, name), item, (*place, name)) for name, item in value.items())
                case "candidates", dict():
                    for node, about in value.items():
                        yield from self._expectations(about, (*place, node), (*path, node))
                case "failing", _:
                    pairs = value.items() if isinstance(value, dict) else value
                    yield scenario.Expectation(path, tuple(sorted(pairs)), self.at(place))
                case _:
                    yield self._one(path, value, place)

    def _each(self, written: dict[str, Any], path: tuple[str, ...], at: Pointer) -> Iterator[scenario.Expectation]:
        for name, value in written.items():
            yield scenario.Expectation((*path, name), self._expected_number(value, (*at, name)), self.at((*at, name)))

    def _one(self, path: tuple[str, ...], value: Any, at: Pointer) -> scenario.Expectation:
        wanted: scenario.ExpectedValue
        if isinstance(value, list):
            wanted = tuple(value)
        elif path[-1] == "disk_left" and not isinstance(value, bool):
            size = self._mib(value, at)
            wanted = scenario.ExpectedNumber(size, size)
        else:
            wanted = value if isinstance(value, bool | str) else self._expected_number(value, at)
        return scenario.Expectation(path, wanted, self.at(at))

    def _expected_number(self, value: Any, at: Pointer) -> scenario.ExpectedNumber:
        if not isinstance(value, dict):
            return scenario.ExpectedNumber(int(value), int(value))
        exactly = _count(value, "exactly")
        least, most = _count(value, "at_least"), _count(value, "at_most")
        if exactly is not None and (least is not None or most is not None):
            self.wrong("exactly stands alone: no at_least or at_most beside it", at)
        if least is not None and most is not None and least > most:
            self.wrong(f"no number is at least {least} and at most {most}", at)
        return scenario.ExpectedNumber(least, most) if exactly is None else scenario.ExpectedNumber(exactly, exactly)

    def _made(self, kind: type[T], written: dict[str, Any], at: Pointer, **more: Any) -> T:
        """Return a dataclass; what `more` does not give it is as written: words with their places, sizes in MiB."""
        missing = {field.name for field in fields(cast(Any, kind))} - more.keys()
        keys = {key: _FIELDS.get(key, key.replace("-", "_")) for key in written}
        own = {field: self._read_value(key, (*at, key)) for key, field in keys.items() if field in missing}
        return kind(**own, **more)

    def _read_value(self, key: str, at: Pointer) -> Any:
        found = self.document.located(at)
        if key in _SIZES:
            return self._mib(found.value, at)
        match found.value:
            case bool():
                return found.value
            case str():
                return found
            case list():
                return tuple(found.value)
        return int(found.value)

    def _mib(self, value: Any, at: Pointer) -> int:
        return int(self.exact_size(value, at) or 0)


def _next_names(word: str, count: int, numbered: Counter[str], *, is_filling: bool = False) -> list[str]:
    """Return names of nodes: the next numbers of a word, or of a single node the filling alone."""
    if is_filling and count == 1 and not numbered[word]:
        numbered[word] = 1
        return [word]
    begin = f"{word}-"
    first = numbered[begin] + 1
    numbered[begin] += min(count, scenario.MOST_NODES + 1)  # more are refused, however many
    return [f"{begin}{number}" for number in range(first, numbered[begin] + 1)]


def _count(written: dict[str, Any], key: str) -> int | None:
    value = written.get(key)
    return None if value is None else int(value)
