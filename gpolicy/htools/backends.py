"""What the programs have in common: choosing a source, and reading, checking, showing and saving the cluster."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module

from gpolicy.allocator.cluster_data import NO_LOAD, NO_NODE, Instance, Load
from gpolicy.allocator.ghc_numbers import DivisionError, floor
from gpolicy.allocator.merge import Cluster, ClusterData, inconsistent_nodes, merge
from gpolicy.cluster.record import LARGEST_FILE
from gpolicy.errors import InputError, RequestError
from gpolicy.ganeti.releases import RELEASE_VARIABLE, check_release, n1_by_unallocated
from gpolicy.htools.program_options import Exit, Options, read_options
from gpolicy.light_dataclasses import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

    from gpolicy.allocator.placement import Nodes

_STANDARD_INPUT = 0


class UnopenedError(InputError):
    """A file that cannot be opened. htools names the program where other messages begin with "Error"."""


def read_file(path: str) -> str:
    """Return a file's text. Raises UnopenedError."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123 - pathlib is slow to import
            return _whole(file, path)
    except IsADirectoryError:
        raise UnopenedError(f"{path}: openFile: inappropriate type (is a directory)") from None
    except (OSError, ValueError) as error:
        raise UnopenedError(f"{path}: openFile: {_why_not_opened(error)}") from None


def _whole(file: TextIO, name: str) -> str:
    text = file.read(LARGEST_FILE + 1)
    if len(text) > LARGEST_FILE:
        raise InputError(f"{name}: larger than {LARGEST_FILE // 1024**2} MiB")
    return text


def _why_not_opened(error: Exception) -> str:
    """Return why a file cannot be opened, in GHC's words if they are known."""
    words = _REASONS.get(type(error))
    return f"{words} ({error.strerror})" if words and isinstance(error, OSError) else str(error)


_REASONS: Mapping[type[Exception], str] = {
    FileNotFoundError: "does not exist",
    IsADirectoryError: "inappropriate type",
    NotADirectoryError: "inappropriate type",
    PermissionError: "permission denied",
}


def read_input(name: str) -> str:
    """Return the text of the file `name`, or of standard input for `-`. Raises InputError."""
    if name != "-":
        return read_file(name)
    try:
        with open(_STANDARD_INPUT, encoding="utf-8", errors="surrogateescape", closefd=False) as file:
            return _whole(file, "standard input")
    except OSError as error:
        raise InputError(f"standard input: {error.strerror}") from None


def write_file(path: str, text: str) -> None:
    """Write `text` to a file. Raises InputError, UnopenedError if it cannot be opened."""
    try:
        file = open(path, "w", encoding="utf-8", errors="surrogateescape")  # noqa: PTH123, SIM115 - closed below
    except (OSError, ValueError) as error:  # a name may hold a null byte
        raise UnopenedError(f"{path}: openFile: {_why_not_opened(error)}") from None
    try:
        with file:
            file.write(text)
    except OSError as error:
        raise InputError(f"{path}: cannot write: {error.strerror}") from None
    except ValueError as error:  # text that cannot be encoded
        raise InputError(f"{path}: cannot write: {error}") from None


def run_program(program: str, argv: Sequence[str]) -> int:
    """Let the module of a program do what `argv` asks for and return the exit code."""
    read = read_options(program, argv)
    if isinstance(read, Exit):
        sys.stdout.write(read.stdout)
        sys.stderr.write(read.stderr)
        return read.code
    options, arguments = read
    try:
        import_module(f"gpolicy.htools.{program}").run(options, *arguments)
    except (DivisionError, InputError) as error:
        sys.stdout.flush()
        begins = program if isinstance(error, (DivisionError, UnopenedError)) else "Error"
        sys.stderr.write(f"{begins}: {error}\n")
        return 1
    return 0


class _SourceError(InputError):
    """What is wrong with the source of the cluster; the message gets no prefix."""


def load_data(options: Options) -> ClusterData:
    """Read the cluster that the options name. Raises InputError without htools' prefix of messages."""
    if sum(source is not None for source in (options.master, options.luxi, options.text_data)) > 1:
        raise _SourceError("Only one of the rapi, luxi, and data files options should be given.")
    if options.master is not None:
        from gpolicy.htools.rapi import read_rapi  # noqa: PLC0415 - only what is needed

        return read_rapi(options.master)
    if options.luxi is not None:
        instead = "; instead of -X, write the commands to a file (-CFILE) and run it on the master"
        raise InputError(
            "luxi: this socket is for Ganeti's own programs; use -m (RAPI), -t (text) or -I (iallocator)"
            f"{instead if options.exec else ''}"
        )
    if options.simulate:
        from gpolicy.htools.text_format import simulate  # noqa: PLC0415 - only what is needed

        return simulate(options.simulate)
    if options.text_data is not None:
        from gpolicy.htools.text_format import parse_cluster  # noqa: PLC0415 - only what is needed

        return parse_cluster(read_file(options.text_data))
    if options.ialloc_src is not None:
        return _read_document(read_file(options.ialloc_src))
    raise InputError("No backend selected! Exiting.")


def _read_document(text: str) -> ClusterData:
    """Return the cluster of an iallocator document, whose request must be valid, too."""
    from gpolicy.htools.hail import parse_document, parse_request  # noqa: PLC0415 - only what is needed

    try:
        document = parse_document(text)
        parse_request(document, merge(document.cluster))
    except InputError as error:
        raise _SourceError(str(error)) from None
    return document.cluster


def load_cluster(options: Options, loads: Mapping[str, Load] | None = None, installed: str | None = None) -> Cluster:
    """Read and merge the cluster, with the utilisation of the instances that `loads` names.

    `installed` is that of `under_release`. Raises InputError with the text for stderr.
    """
    try:
        data = under_release(load_data(options), installed)
    except _SourceError:
        raise
    except InputError as error:
        raise InputError(f"failed to load data, aborting: {error}") from None
    measured = (lambda item: loads.get(item.name, item.load)) if loads else None
    return merge(
        data,
        static_kvm_node_memory=options.static_kvm_node_memory,
        loads=(lambda _: NO_LOAD) if options.ignore_dynu else measured,
        exclusion_prefixes=tuple(f"{prefix}:" for prefix in options.exclusion_tags),
        # an iallocator document is loaded once as a request, and its result once more as a cluster
        twice=options.ialloc_src is not None and not (options.master or options.simulate or options.text_data),
    )


def under_release(data: ClusterData, installed: str | None = None) -> ClusterData:
    """Return the cluster as htools of its release judge it; that of RELEASE_VARIABLE goes before what a source says.

    `installed` is the release of the htools in whose place gpolicy runs, if it is known. Raises InputError.
    """
    release = os.environ.get(RELEASE_VARIABLE) or installed
    if not release:
        return data
    if release != installed:
        try:
            check_release(release, RELEASE_VARIABLE)
        except RequestError as error:
            raise InputError(f"{error.message} ({error.hint})") from None
    return replace(data, n1_by_unallocated=n1_by_unallocated(release))


def warnings(cluster: Cluster) -> str:
    """Return htools' warning about nodes whose sums are inconsistent, last node first (htools, Loader: `checkData`)."""
    found = inconsistent_nodes(cluster)
    if not found:
        return ""
    lines = [
        f"  - node {node.facts.name} is missing {memory} MB ram and {disk // 1024} GB disk\n"
        for node, memory, disk in reversed(found)
    ]
    return f"Warning: cluster has inconsistent data:\n{''.join(lines)}\n"


def node_status(what: str, nodes: Nodes, options: Options) -> str:
    """Return the table of nodes with its heading if `-p` is given, else an empty text."""
    if options.print_nodes is None:
        return ""
    from gpolicy.htools.tables import node_table  # noqa: PLC0415 - only what is needed

    return f"\n{what} status:\n{node_table(nodes, options.print_nodes)}\n"


def save_cluster(options: Options, kind: str, when: str, cluster: Cluster) -> None:
    """Write `cluster` where `--save` says, if it does. Raises InputError."""
    if options.save is None:
        return
    from gpolicy.htools.text_format import format_cluster  # noqa: PLC0415 - only what is needed

    name = f"{options.save}.{kind}"
    write_file(name, format_cluster(cluster))
    sys.stderr.write(f"The cluster state {when} has been written to file '{name}'\n")


def with_node_options(nodes: Nodes, options: Options) -> Nodes:
    """Take `-O` nodes offline, and set the disk reserve and the cpu ratio."""
    names = {index: node.facts.name for index, node in nodes.items()}
    named = {name: find_name(name, names) for name in options.offline}
    offline = set(named.values())
    if wrong := [name for name in options.offline if named[name] is None]:
        raise InputError(f"wrong node name(s) set as offline: {','.join(wrong)}\n")
    result = {}
    for index, node in nodes.items():
        own, ratio = node.facts, options.max_cpu
        low = floor(options.min_disk * own.total_disk)
        facts = replace(own, offline=own.offline or index in offline, min_disk_ratio=options.min_disk, low_disk=low)
        if ratio is not None:
            facts = replace(facts, vcpu_ratio=ratio, high_cpus=floor(ratio * own.total_cpus))
        result[index] = node if facts == own else node.with_facts(facts)
    return result


def node_name(nodes: Nodes, instance: Instance, index: int) -> str:
    """Return the name of an instance's node, empty for none. Raises InputError if the node is not among `nodes`."""
    if index == NO_NODE:
        return ""
    if index not in nodes:
        raise InputError(f"instance {instance.name} has a node outside of the group, so it cannot be shown or saved")
    return nodes[index].facts.name


def find_name(name: str, names: Mapping[int, str]) -> int | None:
    """Return the element with this name, or the only one whose name is `name` and something behind a dot."""
    exact = [index for index, full in names.items() if full == name]
    found = exact or [index for index, full in names.items() if full.startswith(f"{name}.")]
    return found[0] if len(found) == 1 else None
