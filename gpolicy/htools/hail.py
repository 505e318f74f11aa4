"""hail: answers one iallocator request."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpolicy.allocator.evacuation import (
    EvacuationResult,
    Move,
    change_group,
    evacuate_nodes,
    relocate,
)
from gpolicy.allocator.group_choice import RequestError
from gpolicy.allocator.merge import Cluster, merge
from gpolicy.allocator.redundancy import settled
from gpolicy.allocator.request_options import RequestOptions
from gpolicy.allocator.requests import allocate, allocate_many, allocate_secondary
from gpolicy.errors import InputError
from gpolicy.htools import tables
from gpolicy.htools.backends import load_cluster, read_file, warnings
from gpolicy.htools.hail_requests import (
    AllocateRequest,
    ChangeGroupRequest,
    EvacuateRequest,
    MultiAllocateRequest,
    RelocateRequest,
    Request,
    parse_request,
)
from gpolicy.htools.haskell_records import shown_groups
from gpolicy.htools.iallocator import parse_document
from gpolicy.htools.opcodes import opcode
from gpolicy.htools.options import HAIL_OPTIONS, Options, Stop, read_options
from gpolicy.htools.text_format import format_cluster

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpolicy.allocator.model import Instance
    from gpolicy.allocator.node import Node

Result = list[object] | str


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes to stdout, and the state of the cluster after it."""

    info: str
    result: Result
    nodes: Mapping[int, Node]
    instances: Mapping[int, Instance]


def main(argv: Sequence[str]) -> int:
    """Run hail with the arguments `argv` (without the program's name) and return its exit code."""
    read = read_options("hail", HAIL_OPTIONS, "file 1 1\n", argv)
    if isinstance(read, Stop):
        sys.stdout.write(read.stdout)
        sys.stderr.write(read.stderr)
        return read.code
    options, arguments = read
    try:
        sys.stdout.write(_run(options, arguments))
    except InputError as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1
    return 0


def _run(options: Options, arguments: Sequence[str]) -> str:
    cluster, request = _load(options, arguments)
    _save(options, "pre-ialloc", cluster, cluster.nodes, cluster.instances)
    sys.stderr.write(tables.node_status("Initial cluster", cluster.nodes, options.print_nodes))
    try:
        answer = _answer(cluster, request, options)
        success, nodes, instances = True, answer.nodes, answer.instances
        info, result = f"Request successful: {answer.info}", answer.result
    except RequestError as error:
        success, nodes, instances = False, cluster.nodes, cluster.instances
        info, result = f"Request failed: {error}", []
    sys.stderr.write(tables.node_status("Final cluster", nodes, options.print_nodes))
    _save(options, "post-ialloc", cluster, nodes, instances)
    line = {"success": success, "info": info, "result": result}
    return json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n"


def _load(options: Options, arguments: Sequence[str]) -> tuple[Cluster, Request]:
    if not arguments:
        raise InputError("This program needs an input file.")
    if len(arguments) > 1:
        raise InputError("Only one argument is accepted (the input file)")
    text = sys.stdin.read() if arguments[0] == "-" else read_file(arguments[0])
    document = parse_document(text)
    # without another source of the cluster, the original does not pass --ignore-dynu on
    own = merge(document.cluster, static_kvm_node_memory=options.static_kvm_node_memory)
    request = parse_request(document, own)
    if options.verbosity > 0:
        sys.stderr.write(warnings(own))
    cluster = own
    if options.text_file is not None or options.simulate:
        cluster = load_cluster(options)
        if options.verbosity > 0:
            sys.stderr.write(warnings(cluster))
        _check_indices(request, cluster)
    if options.verbosity > 1 and cluster.common_suffix:
        sys.stderr.write(f"Note: Stripping common suffix of '{cluster.common_suffix}' from names\n")
    return cluster, request


def _check_indices(request: Request, cluster: Cluster) -> None:
    """Refuse a request about instances that the other cluster does not have."""
    wanted: tuple[int, ...] = ()
    if isinstance(request, EvacuateRequest | ChangeGroupRequest):
        wanted = request.instances
    elif not isinstance(request, AllocateRequest | MultiAllocateRequest):
        wanted = (request.instance,)
    missing = [index for index in wanted if index not in cluster.instances]
    if missing:
        raise InputError(
            f"the request is about instance number {missing[0]} of its own document, which the cluster read"
            " from the other source does not have"
        )


def _answer(cluster: Cluster, request: Request, options: Options) -> Answer:
    groups, nodes, instances = cluster.groups, cluster.nodes, cluster.instances
    rules = RequestOptions(
        capacity_checks=options.capacity_checks,
        ignore_soft_errors=options.ignore_soft_errors,
        restriction=frozenset(options.restriction) if options.restriction is not None else None,
    )
    force = options.ignore_soft_errors
    if isinstance(request, AllocateRequest):
        if rules.restriction is None and request.restriction is not None:
            rules = replace(rules, restriction=frozenset(request.restriction))
        found = allocate(groups, nodes, instances, request.wanted, rules)
        if found.placement is None:
            raise RequestError(", ".join(found.messages))
        number = len(instances)
        after = {**nodes, **{node.index: settled(node, number) for node in found.placement.changed}}
        return Answer(
            ", ".join(found.messages),
            list(_names(nodes, found.placement.nodes)),
            after,
            {number: found.placement.instance, **instances},  # -S writes the new one first: it has no index yet
        )
    if isinstance(request, MultiAllocateRequest):
        many = allocate_many(groups, nodes, instances, request.wanted, rules)
        info = f"{len(many.failed)} instances failed to allocate and {len(many.placed)} were allocated successfully"
        placed = [[instance.name, _names(nodes, where.nodes)] for instance, where in many.placed]
        failed = [[instance.name, text] for instance, text in many.failed]
        return Answer(info, [placed, failed], many.nodes, many.instances)
    if isinstance(request, RelocateRequest):
        done, new = relocate(nodes, instances, request.instance, request.required_nodes, request.leaving, force=force)
        table = {**instances, request.instance: done.instance}
        return Answer("success", list(_names(nodes, (new,))), done.nodes, table)
    if isinstance(request, EvacuateRequest):
        return _evacuated(cluster, evacuate_nodes(nodes, instances, request.mode, request.instances, force=force))
    if isinstance(request, ChangeGroupRequest):
        return _evacuated(
            cluster,
            change_group(groups, nodes, instances, request.instances, request.targets, rules, show_groups=shown_groups),
        )
    placement, info = allocate_secondary(nodes, instances, request.instance, rules)
    after = {**nodes, **{node.index: node for node in placement.changed}}
    return Answer(
        info,
        _names(nodes, placement.nodes)[1],
        after,
        {**instances, request.instance: placement.instance},
    )


def _evacuated(cluster: Cluster, result: EvacuationResult) -> Answer:
    nodes = cluster.nodes
    info = f"{len(result.failed)} instances failed to move and {len(result.moved)} were moved successfully"
    moved = [
        [instance.name, cluster.groups[group].name, _names(nodes, where)] for instance, group, where, _ in result.moved
    ]
    failed = [[instance.name, text] for instance, text in result.failed]
    jobs = [_job(moves, nodes) for _, _, _, moves in result.moved]
    return Answer(info, [moved, failed, jobs], result.nodes, result.instances)


def _job(moves: Sequence[Move], nodes: Mapping[int, Node]) -> list[dict[str, object]]:
    return [opcode(move, nodes) for move in moves]


def _names(nodes: Mapping[int, Node], indices: Sequence[int]) -> list[str]:
    return [nodes[index].facts.name for index in indices]


def _save(
    options: Options,
    kind: str,
    cluster: Cluster,
    nodes: Mapping[int, Node],
    instances: Mapping[int, Instance],
) -> None:
    if options.save is None:
        return
    name = f"{options.save}.{kind}"
    text = format_cluster(cluster.groups.values(), nodes, instances.values(), cluster.tags, cluster.policy)
    try:
        Path(name).write_text(text, encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise InputError(f"{name}: cannot write: {error.strerror}") from None
    when = "before" if kind == "pre-ialloc" else "after"
    sys.stderr.write(f"The cluster state {when} iallocator run has been written to file '{name}'\n")
