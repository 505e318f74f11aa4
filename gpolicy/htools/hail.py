"""hail: answers one iallocator request."""

from __future__ import annotations

import json
import os
import sys

from gpolicy.allocator.merge import Cluster, merge
from gpolicy.allocator.request_options import RequestError, RequestOptions
from gpolicy.errors import InputError
from gpolicy.ganeti.htools_reading import HAIL_OPTIONS
from gpolicy.ganeti.releases import RELEASE_PATH
from gpolicy.htools.backends import (
    load_cluster,
    node_status,
    read_file,
    read_input,
    run_program,
    save_cluster,
    under_release,
    warnings,
)
from gpolicy.htools.hail_requests import parse_request
from gpolicy.htools.iallocator import IallocatorDocument, parse_document
from gpolicy.htools.program_options import Options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpolicy.htools.hail_requests import HailRequest
    from gpolicy.htools.json_fields import Json


def main(argv: Sequence[str]) -> int:
    """Run hail with the arguments `argv` (without the program's name) and return its exit code."""
    return run_program("hail", HAIL_OPTIONS, "file 1 1\n", argv, _run)


def _run(options: Options, arguments: Sequence[str]) -> None:
    cluster, request = _load(options, arguments)
    sys.stderr.write(node_status("Initial cluster", cluster.nodes, options))
    save_cluster(options, "pre-ialloc", "before iallocator run", cluster, cluster.nodes, cluster.instances)
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
    line = {"success": success, "info": info, "result": result}
    sys.stdout.write(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n")
    save_cluster(options, "post-ialloc", "after iallocator run", cluster, nodes, instances)


def _load(options: Options, arguments: Sequence[str]) -> tuple[Cluster, HailRequest]:
    if not arguments:
        raise InputError("This program needs an input file.")
    if len(arguments) > 1:
        raise InputError("Only one argument is accepted (the input file)")
    if options.monitored and not options.ignore_load:
        raise InputError("--mond: gpolicy does not query monitoring daemons")
    document, installed = parse_document(read_input(arguments[0])), _installed_release()
    # without another source of the cluster, the original ignores --ignore-dynu
    own = merge(under_release(document.cluster, installed), static_kvm_node_memory=options.static_kvm_node_memory)
    request = parse_request(document, own)
    if options.verbosity > 0:
        sys.stderr.write(warnings(own))
    if options.text_file is None and not options.simulate:
        if options.verbosity > 1:
            _show(request, document, own, options, document.cluster.hypervisor, document.instances)
        return own, request
    cluster = load_cluster(options, installed=installed)
    if options.verbosity > 0:
        sys.stderr.write(warnings(cluster))
    _check_indices(request, cluster)
    if options.verbosity > 1:
        _show(request, document, cluster, options, None, {})
    return cluster, request


def _installed_release() -> str | None:
    """Return the release of Ganeti on this node; None where none is installed."""
    try:
        return read_file(f"{os.environ.get('GANETI_ROOTDIR', '')}{RELEASE_PATH}").strip() or None
    except InputError:
        return None


def _show(
    request: HailRequest,
    document: IallocatorDocument,
    cluster: Cluster,
    options: Options,
    hypervisor: str | None,
    entries: Mapping[str, Json],
) -> None:
    """Show on stderr the request (`-v`), the cluster (`-v -v`), and the kind of the search."""
    sys.stderr.write(f"Received request: {request.shown(document.request)}\n")
    if options.verbosity > 2:
        from gpolicy.htools.haskell_records import shown_cluster  # noqa: PLC0415 - only what is needed

        sys.stderr.write(f"Received cluster data: {shown_cluster(cluster, hypervisor, entries)}\n")
    if request.group_names is None:
        return
    from gpolicy.allocator.dedicated_nodes import is_dedicated  # noqa: PLC0415 - only what is needed

    names = set(request.group_names)
    if is_dedicated(cluster.groups, cluster.nodes, names.pop() if len(names) == 1 else None):
        sys.stderr.write("Allocation on a dedicated cluster; using lost-allocations metrics.\n")


def _check_indices(request: HailRequest, cluster: Cluster) -> None:
    """Refuse a request about instances that the cluster of another source does not have."""
    missing = [index for index in request.existing if index not in cluster.instances]
    if missing:
        raise InputError(
            f"the request is about instance number {missing[0]} of its own document, which the cluster read"
            " from the other source does not have"
        )
