"""Which clusters a run is about: by labels, by what changed in git, by shard; and the policies beside one."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from gpolicy.cluster.process import ask_git
from gpolicy.errors import ArgumentError, GpolicyError, InputError, RequestError, argument
from gpolicy.fleet.named_clusters import NamedCluster, named_clusters
from gpolicy.guessing import did_you_mean_one_of
from gpolicy.opening import real_path, work_tree
from gpolicy.policy.files import boundary, policy_roots
from gpolicy.policy.kinds import Policy
from gpolicy.policy.loading import load_policy
from gpolicy.policy.settings_file import settings_file

_SHARD: Final = re.compile(r"([1-9][0-9]{0,4})/([1-9][0-9]{0,4})", re.ASCII)


def labelled_clusters(clusters: Sequence[NamedCluster], wanted: Iterable[str]) -> list[NamedCluster]:
    """Return the clusters that have a label `KEY=VALUE` for each KEY; VALUE may be a glob.

    Several values of one key are alternatives. Raise RequestError for a word that is no label, for a key that no
    cluster has, and if no cluster is left.
    """
    values: dict[str, list[str]] = {}
    for word in wanted:
        key, separator, value = word.partition("=")
        if not separator or not key or not value:
            hint = f"for example {argument('label')} stage=canary"
            raise ArgumentError(f"label {word[:60]!r} is not KEY=VALUE", hint=hint)
        values.setdefault(key, []).append(value)
    known = {key for cluster in clusters for key in cluster.labels}
    for key in values:
        if key not in known:
            raise RequestError(f"no cluster has a label {key[:60]!r}", hint=did_you_mean_one_of(key, "labels", known))
    found = [
        cluster
        for cluster in clusters
        if all(any(fnmatchcase(cluster.labels.get(key, ""), glob) for glob in globs) for key, globs in values.items())
    ]
    if not found and values:
        asked = " and ".join(f"{key}={' or '.join(globs)}" for key, globs in values.items())
        key, globs = next(iter(values.items()))
        there = {cluster.labels[key] for cluster in clusters if key in cluster.labels}
        hint = did_you_mean_one_of(globs[0], f"values of {key}", there)
        raise RequestError(f"no cluster has {asked[:200]}", hint=hint)
    return found


def sharded_clusters(clusters: Sequence[NamedCluster], shard: str) -> list[NamedCluster]:
    """Return the part `N/M` of the clusters, every Mth one: all parts together are all of them, each once."""
    found = _SHARD.fullmatch(shard)
    number, parts = (int(found[1]), int(found[2])) if found else (1, 0)
    if number > parts:
        hint = f"such as {argument('shard')} 2/5, the second of five parts"
        raise ArgumentError(f"shard {shard[:60]!r} is not N/M", hint=hint)
    return list(clusters[number - 1 :: parts])


def changed_clusters(
    clusters: Sequence[NamedCluster], reference: str, read: Callable[[Path], Policy] = load_policy
) -> list[NamedCluster]:
    """Return the clusters whose policy, which `read` gives, or anything that it extends, differs from a commit.

    The commit is where the branch of `reference` and the present one parted. Files of the work tree count as they are
    now, new ones too. A cluster without a policy, or with one that cannot be read, counts as changed; so do all
    clusters if the settings file itself changed. Raise InputError if git does not know the commit.
    """
    trees = {cluster.source.parent: work_tree(real_path(cluster.source.parent)) for cluster in clusters}
    changed = {tree: _changed_files(tree, _parted(tree, reference)) for tree in {*trees.values()} if tree is not None}
    found = []
    for cluster in clusters:
        tree = trees[cluster.source.parent]
        if tree is None:
            raise InputError(f"{cluster.source}: not in a git work tree", hint=f"leave out {argument('changed_since')}")
        if real_path(cluster.source) in changed[tree] or _has_changed(cluster, changed[tree], read):
            found.append(cluster)
    return found


def _has_changed(cluster: NamedCluster, changed: frozenset[Path], read: Callable[[Path], Policy]) -> bool:
    if cluster.policy is None:
        return True
    root = real_path(cluster.policy)
    if any(file.is_relative_to(root) for file in changed):
        return True
    try:
        policy = read(cluster.policy)
    except GpolicyError:
        return True
    return not policy.is_whole or any(real_path(file) in changed for file in policy.files)


def texts_before(files: Iterable[str], reference: str) -> dict[str, str]:
    """Return what was in those of `files` that have changed since the branch of `reference` parted, by name.

    Of a new file that is nothing. Raise InputError if git does not know the commit.
    """
    named = {name: real_path(name) for name in files}
    tree = next((work_tree(path.parent) for path in named.values()), None)
    if tree is None:
        return {}
    commit = _parted(tree, reference)
    changed = _changed_files(tree, commit)
    blobs = {name: f"{commit}:{path.relative_to(tree).as_posix()}" for name, path in named.items() if path in changed}
    found = {name: ask_git(tree, "cat-file", "blob", blob).stdout for name, blob in blobs.items()}
    return {name: content.decode("utf-8", "replace") for name, content in found.items()}


def _parted(tree: Path, reference: str) -> str:
    """Return the commit where the branch of `reference` and the present one parted."""
    if reference.startswith("-"):
        raise ArgumentError(f"changed_since {reference[:60]!r} is no commit", hint="name a branch, a tag or a commit")
    base = _git(tree, "merge-base", reference, "HEAD", what=f"git knows no commit {reference[:60]!r} to compare with")
    return base.decode("ascii", "replace").strip()


def _changed_files(tree: Path, commit: str) -> frozenset[Path]:
    """Return the files of a work tree that differ from a commit."""
    differing = _git(tree, "diff", "--name-only", "-z", "--no-ext-diff", "--no-renames", commit, "--")
    new = _git(tree, "ls-files", "--others", "--exclude-standard", "-z")
    names = (os.fsdecode(name) for name in (differing + new).split(b"\0") if name)
    return frozenset(tree / name for name in names)


def _git(tree: Path, *words: str, what: str = "git does not answer") -> bytes:
    answer = ask_git(tree, *words)
    if answer.code:
        reason = " ".join(answer.stderr.split())[:200]
        hint = "fetch it first: CI often has one commit only (fetch-depth: 0)"
        raise InputError(f"{what}: {reason}" if reason else what, hint=hint)
    return answer.stdout


def other_policies(path: Path) -> list[Policy]:
    """Return the policies beside the one at `path`: those of the clusters that the settings file names.

    If it names none, those that are found in the work tree, or around `path` where there is none. Raise InputError if
    one cannot be read.
    """
    named = [cluster.policy for cluster in named_clusters(settings_file(path)).values() if cluster.policy is not None]
    own = real_path(path)
    known = {real_path(root): root for root in named or policy_roots(boundary(path).root)}
    return [load_policy(root) for real, root in known.items() if not own.is_relative_to(real)]


NAME: Final = re.compile(r"[0-9]{8}T[0-9]{6}Z\.json", re.ASCII)
_TIME: Final = "%Y%m%dT%H%M%SZ.json"


def snapshot_file(directory: Path, cluster: str, taken_at: time.struct_time) -> Path:
    """Return the file for a new snapshot (UTC), in its new directory. InputError for a later one: it would count."""
    file = directory / cluster / time.strftime(_TIME, taken_at)
    if later := [path for path in snapshots_of(directory, cluster) if path.name > file.name]:
        hint = "correct the clock, or remove the snapshots that a wrong clock has named"
        raise InputError(f"{later[-1]}: is of a time to come, so no new snapshot was written", hint=hint)
    file.parent.mkdir(parents=True, exist_ok=True)
    return file


def snapshots_of(directory: Path, cluster: str) -> list[Path]:
    """Return the snapshots of a cluster, the oldest first."""
    try:
        return sorted(path for path in (directory / cluster).iterdir() if NAME.fullmatch(path.name))
    except OSError:
        return []


def newest_snapshot(directory: Path, cluster: str) -> Path:
    """Return the newest snapshot of a cluster. Raise InputError if there is none."""
    found = snapshots_of(directory, cluster)
    if not found:
        hint = f"`gpolicy snapshot --all --save {directory}` writes them"
        raise InputError(f"{directory / cluster}: no snapshot of the cluster {cluster}", hint=hint)
    return found[-1]


def prune_snapshots(directory: Path, cluster: str, keep: int) -> None:
    """Remove all but the newest `keep` snapshots of a cluster. Other files stay."""
    for path in snapshots_of(directory, cluster)[:-keep]:
        path.unlink(missing_ok=True)
