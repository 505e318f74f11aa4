"""hail: answers one iallocator request."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence

from gpolicy.allocator.cluster_data import Node
from gpolicy.allocator.merge import Cluster, merge
from gpolicy.allocator.request_options import RequestError, RequestOptions
from gpolicy.errors import InputError
from gpolicy.ganeti.releases import RELEASE_PATH
from gpolicy.htools import backends
from gpolicy.htools.iallocator import IallocatorDocument, parse_document
from gpolicy.htools.json_fields import Fields
from gpolicy.htools.program_options import Options
from gpolicy.light_dataclasses import dataclass

PREFIX = "invalid request dict: "


@dataclass(frozen=True, slots=True)
class HailAnswer:
    """The content of stdout, and the state of the cluster after the request."""

    info: str
    result: list[object] | str
    after: Cluster


@dataclass(frozen=True, slots=True)
class HailRequest:
    """A request of any kind about the instances `existing`, names resolved to indices.

    `shown` returns it as Haskell shows it (`-v`), `answer` returns hail's answer, or raises RequestError if the request
    cannot be granted. `group_names`: the requested group of each new instance, None for any group; None if the request
    places nothing.
    """

    existing: tuple[int, ...]
    shown: Callable[[], str]
    answer: Callable[[Cluster, RequestOptions], HailAnswer]
    group_names: tuple[str | None, ...] | None = None


def run(options: Options, *arguments: str) -> None:
    """Answer the request in the file that the arguments name. Raises InputError."""
    cluster, request = _load(options, arguments)
    sys.stderr.write(backends.node_status("Initial cluster", cluster.nodes, options))
    backends.save_cluster(options, "pre-ialloc", "before iallocator run", cluster)
    rules = RequestOptions(
        capacity_checks=not options.no_capacity_checks,
        ignore_soft_errors=options.ignore_soft_errors,
        restriction=frozenset(options.restrict_allocation_to) if options.restrict_allocation_to is not None else None,
    )
    try:
        answer = request.answer(cluster, rules)
        success, after = True, answer.after
        info, result = f"Request successful: {answer.info}", answer.result
    except RequestError as error:
        success, after = False, cluster
        info, result = f"Request failed: {error}", []
    sys.stderr.write(backends.node_status("Final cluster", after.nodes, options))
    line = {"success": success, "info": info, "result": result}
    sys.stdout.write(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n")
    backends.save_cluster(options, "post-ialloc", "after iallocator run", after)


def _load(options: Options, arguments: Sequence[str]) -> tuple[Cluster, HailRequest]:
    if not arguments:
        raise InputError("This program needs an input file.")
    if len(arguments) > 1:
        raise InputError("Only one argument is accepted (the input file)")
    if options.mond and not options.ignore_dynu:
        raise InputError("--mond: gpolicy does not query monitoring daemons")
    document, installed = parse_document(backends.read_input(arguments[0])), _installed_release()
    # without another source of the cluster, the original ignores --ignore-dynu
    static = options.static_kvm_node_memory
    cluster = merge(backends.under_release(document.cluster, installed), static_kvm_node_memory=static)
    request = parse_request(document, cluster)
    if options.verbosity > 0:
        sys.stderr.write(backends.warnings(cluster))
    shown: IallocatorDocument | None = document
    if options.text_data is not None or options.simulate:
        cluster, shown = backends.load_cluster(options, installed=installed), None
        if options.verbosity > 0:
            sys.stderr.write(backends.warnings(cluster))
        missing = [index for index in request.existing if index not in cluster.instances]
        if missing:
            raise InputError(
                f"the request is about instance number {missing[0]} of its own document, which the cluster read"
                " from the other source does not have"
            )
    if options.verbosity > 1:
        _show(request, cluster, shown, options)
    return cluster, request


def _installed_release() -> str | None:
    """Return the release of Ganeti on this node; None where none is installed."""
    try:
        return backends.read_file(f"{os.environ.get('GANETI_ROOTDIR', '')}{RELEASE_PATH}").strip() or None
    except InputError:
        return None


def _show(request: HailRequest, cluster: Cluster, document: IallocatorDocument | None, options: Options) -> None:
    """Show on stderr the request (`-v`), the cluster (`-v -v`), and the kind of the search.

    `document` is that of the cluster, None if it is from another source.
    """
    sys.stderr.write(f"Received request: {request.shown()}\n")
    if options.verbosity > 2:
        from gpolicy.htools.haskell_records import shown_cluster  # noqa: PLC0415 - only what is needed

        hypervisor, entries = (document.cluster.hypervisor, document.instances) if document else (None, {})
        sys.stderr.write(f"Received cluster data: {shown_cluster(cluster, hypervisor, entries)}\n")
    if request.group_names is None:
        return
    from gpolicy.allocator.dedicated_nodes import is_dedicated  # noqa: PLC0415 - only what is needed

    if is_dedicated(cluster, request.group_names):
        sys.stderr.write("Allocation on a dedicated cluster; using lost-allocations metrics.\n")


def names_of(nodes: Mapping[int, Node], indices: Sequence[int]) -> list[str]:
    """Return the names of the nodes at `indices`."""
    return [nodes[index].facts.name for index in indices]


def parse_request(document: IallocatorDocument, cluster: Cluster) -> HailRequest:
    """Read the request; names are resolved in `cluster`, the document's own cluster."""
    fields = Fields(PREFIX, document.request)
    kind = fields.text("type")
    if kind in {"allocate", "multi-allocate"}:
        from gpolicy.htools.hail_placing import parse_placing  # noqa: PLC0415 - only what is needed

        return parse_placing(kind, fields, cluster)
    if kind in {"relocate", "node-evacuate", "change-group", "allocate-secondary"}:
        from gpolicy.htools.hail_moving import parse_moving  # noqa: PLC0415 - only what is needed

        return parse_moving(kind, fields, cluster)
    raise InputError(f"Invalid request type '{kind}'")
