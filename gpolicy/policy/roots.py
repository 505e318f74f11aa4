"""The policies at a path: a directory may contain those of several clusters."""

from __future__ import annotations

from pathlib import Path

from gpolicy.policy.boundary import Boundary, boundary
from gpolicy.policy.files import policy_files
from gpolicy.policy.yaml_reader import MAX_BYTES, read_yaml


def policy_roots(path: Path) -> list[Path]:
    """Return the policies at `path`: `path` itself, or the directories below it that contain a Cluster.

    Directories are separate policies if at least two of them contain a `Cluster` document that is not a template, and
    neither contains the other. Raise InputError if there is nothing to read.
    """
    files = policy_files(path)
    if path.is_file() or len({file.parent for file in files}) < 2:
        return [path]
    within = boundary(path)
    homes = sorted({file.parent for file in files if _has_cluster(file, within)})
    nested = any(one != other and other.is_relative_to(one) for one in homes for other in homes)
    return homes if len(homes) > 1 and not nested else [path]


def _has_cluster(file: Path, within: Boundary) -> bool:
    try:
        text = within.read(file, MAX_BYTES).decode("utf-8-sig", errors="replace")
    except OSError:
        return False
    if "Cluster" not in text:  # most files are about groups: they are not parsed here
        return False
    source = read_yaml(text, str(file))
    roots = [document.root for document in (*source.documents, source.unfinished) if document is not None]
    return any(
        isinstance(root, dict) and root.get("kind") == "Cluster" and root.get("template") is not True for root in roots
    )
