"""hail: answers one iallocator request."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from gpolicy.allocator.group_choice import RequestError
from gpolicy.allocator.merge import Cluster, merge
from gpolicy.allocator.request_options import RequestOptions
from gpolicy.errors import InputError
from gpolicy.htools.backends import load_cluster, node_status, read_input, save_cluster, warnings
from gpolicy.htools.hail_requests import Request, parse_request
from gpolicy.htools.iallocator import parse_document
from gpolicy.htools.options import HAIL_OPTIONS, Options, Stop, read_options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpolicy.allocator.model import Instance
    from gpolicy.allocator.node import Node


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
    sys.stderr.write(node_status("Initial cluster", cluster.nodes, options))
    rules = RequestOptions(
        capacity_checks=options.capacity_checks,
        ignore_soft_errors=options.ignore_soft_errors,
        restriction=frozenset(options.restriction) if options.restriction is not None else None,
    )
    try:
        answer = request.answer(cluster, rules)
        success, nodes, instances = True, answer.nodes, answer.instances
        info, result = f"Request successful: {answer.info}", answer.result
    except RequestError as error:
        success, nodes, instances = False, cluster.nodes, cluster.instances
        info, result = f"Request failed: {error}", []
    sys.stderr.write(node_status("Final cluster", nodes, options))
    _save(options, "post-ialloc", cluster, nodes, instances)
    line = {"success": success, "info": info, "result": result}
    return json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n"


def _load(options: Options, arguments: Sequence[str]) -> tuple[Cluster, Request]:
    if not arguments:
        raise InputError("This program needs an input file.")
    if len(arguments) > 1:
        raise InputError("Only one argument is accepted (the input file)")
    document = parse_document(read_input(arguments[0]))
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
    missing = [index for index in request.existing if index not in cluster.instances]
    if missing:
        raise InputError(
            f"the request is about instance number {missing[0]} of its own document, which the cluster read"
            " from the other source does not have"
        )


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
    save_cluster(name, cluster, nodes, instances)
    when = "before" if kind == "pre-ialloc" else "after"
    sys.stderr.write(f"The cluster state {when} allocation has been written to file '{name}'\n")
