"""Where hspace and hail take a cluster from: choice of the source, reading, warnings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gpolicy.allocator.merge import Cluster, inconsistent_nodes, merge
from gpolicy.errors import InputError

if TYPE_CHECKING:
    from gpolicy.allocator.model import ClusterData
    from gpolicy.htools.options import Options


def read_file(path: str) -> str:
    """Return a file's text. Raises InputError in the words of the original."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        reason = "does not exist (No such file or directory)"
    except IsADirectoryError:
        reason = "inappropriate type (is a directory)"
    except PermissionError:
        reason = "permission denied (Permission denied)"
    except (OSError, ValueError) as error:
        reason = str(error)
    raise InputError(f"{path}: openFile: {reason}")


def load_data(options: Options) -> ClusterData:
    """Read the cluster that the options name. Raises InputError without htools' prefix."""
    if sum(source is not None for source in (options.rapi, options.luxi, options.text_file)) > 1:
        raise InputError("Only one of the rapi, luxi, and data files options should be given.")
    if options.rapi is not None:
        from gpolicy.htools.rapi import read_rapi  # noqa: PLC0415 - only what is needed

        return read_rapi(options.rapi)
    if options.luxi is not None:
        raise InputError("luxi: this socket is for Ganeti's own programs; use -m (RAPI), -t (text) or -I (iallocator)")
    if options.simulate:
        from gpolicy.htools.simulation import simulate  # noqa: PLC0415 - only what is needed

        return simulate(options.simulate)
    if options.text_file is not None:
        from gpolicy.htools.text_format import parse_cluster  # noqa: PLC0415 - only what is needed

        return parse_cluster(read_file(options.text_file))
    if options.iallocator_file is not None:
        from gpolicy.htools.iallocator import parse_cluster_only  # noqa: PLC0415 - only what is needed

        return parse_cluster_only(read_file(options.iallocator_file))
    raise InputError("No backend selected! Exiting.")


def load_cluster(options: Options) -> Cluster:
    """Read and merge the cluster. Raises InputError with the text for stderr."""
    try:
        return merge(
            load_data(options),
            static_kvm_node_memory=options.static_kvm_node_memory,
            ignore_load=options.ignore_load,
        )
    except InputError as error:
        message = str(error)
        if message.startswith("Only one of the rapi"):
            raise
        raise InputError(f"failed to load data, aborting: {message}") from None


def warnings(cluster: Cluster) -> str:
    """Return what stderr says about nodes whose books do not add up, last node first."""
    found = inconsistent_nodes(cluster)
    if not found:
        return ""
    lines = [
        f"  - node {node.facts.name} is missing {memory} MB ram and {_toward_zero(disk, 1024)} GB disk\n"
        for node, memory, disk in reversed(found)
    ]
    return "Warning: cluster has inconsistent data:\n" + "".join(lines)


def _toward_zero(value: int, unit: int) -> int:
    return value // unit if value >= 0 else -(-value // unit)
