"""What a verb is about: the cluster at an address, or clusters that the settings file names."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import gpolicy
from gpolicy.cli.options import STATE_VARIABLE, Clusters, MaybeClusters, Outputs, RapiOptions, source_options
from gpolicy.cli.output import Report, show_report
from gpolicy.cli.terminal import working
from gpolicy.cluster.sources import FILE_SCHEMES, SourceOptions
from gpolicy.errors import InputError, UsageError
from gpolicy.opening import real_path
from gpolicy.printable import as_text, some
from gpolicy.report.forms import SUFFIXES

if TYPE_CHECKING:
    from gpolicy.checking.checking import FleetMembers
    from gpolicy.cluster.state import ClusterState
    from gpolicy.fleet.named_clusters import NamedCluster, RolloutSettings
    from gpolicy.what_if.supposing import WhatIf


_SAVING: Final = ("plan", "remedy", "suggest", "evacuate")  # verbs with --save, which was --output
_WROTE_REPORTS: Final = ("capacity", "drift")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One cluster that a verb is about. `named` is its entry in the settings file, if it comes from there.

    `given_policy` is the policy that the command line names; `address` what to read, None where none is given;
    with a directory of `snapshots`, its newest one is read instead. `several` says that it is one of several, so that
    an output is a directory. `members` are the policies of all clusters, if they have been read.
    """

    given_policy: Path | None
    address: str | None
    options: SourceOptions
    named: NamedCluster | None = None
    snapshots: Path | None = None
    several: bool = False
    members: FleetMembers | None = None

    @property
    def name(self) -> str:
        """The name in the settings file; empty for an address."""
        return self.named.name if self.named else ""

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels in the settings file."""
        return self.named.labels if self.named else {}

    def output(self, given: Path | None, suffix: str = ".json") -> Path | None:
        """Return the file to write: the given one, or one of this cluster in the given directory, which is made.

        Raise UsageError if one file is given that is called like a report.
        """
        if given is None or not self.several:
            form = None if given is None else SUFFIXES.get(given.suffix.lower())
            if form is not None:
                hint = f"for the report write `--output {form}={given}`"
                raise UsageError(f"{given}: what is written there is no report", hint=hint)
            return given
        given.mkdir(parents=True, exist_ok=True)
        return given / f"{self.name}{suffix}"

    @property
    def policy(self) -> Path:
        """The policy: of the command line, else of the settings file, else the current directory. Raise InputError."""
        if self.given_policy is not None:
            return self.given_policy
        if self.named is None:
            return Path()
        if self.named.policy is None:
            hint = f"write `policy` under [clusters.{self.named.name}], or name the policy"
            raise InputError(f"{self.named.source}: the cluster {self.named.name} has no policy", hint=hint)
        return as_named(self.named.policy)

    def read(self) -> ClusterState:
        """Return the state of the cluster; show progress when that takes long. Raise UsageError without an address."""
        from gpolicy.cluster.state import NOT_VERIFIED  # noqa: PLC0415
        from gpolicy.ganeti.releases import RELEASE_VARIABLE, check_release  # noqa: PLC0415

        src = self.address
        if self.snapshots is not None:
            from gpolicy.fleet.choosing import newest_snapshot  # noqa: PLC0415 (few need it)

            src = f"snapshot:{newest_snapshot(self.snapshots, self.name)}"
        if src is None:
            hint = (
                "give --state local: on the master, else --state ssh://HOST, rapi://HOST or snapshot:FILE, or set"
                f" {STATE_VARIABLE}; `gpolicy help plan` lists all sources"
            )
            raise UsageError("no state is given: where is the cluster read from?", hint=hint)
        said = os.environ.get(RELEASE_VARIABLE)
        declared = check_release(said, RELEASE_VARIABLE) if said else None
        with working(f"reading {src}"):
            state = replace(gpolicy.read_state(src, self.options), declared_release=declared)
        if NOT_VERIFIED in state.notes:
            sys.stderr.write(as_text([f"warning: {NOT_VERIFIED}: anybody may have answered"]))
        return state

    def check_given_policy(self, state: ClusterState) -> gpolicy.CheckedPolicy | None:
        """Return the policy that the command line names, checked on the cluster; None if it names none."""
        from gpolicy.cli.checking import checked_policy  # noqa: PLC0415 (it imports this module)

        return None if self.given_policy is None else checked_policy(self.given_policy, state)

    def open(
        self, what_if: WhatIf | None, limits: gpolicy.Limits, *, resource_model: bool = False
    ) -> gpolicy.OpenedCluster:
        """Return the cluster under the policy that the command line names, with what is supposed of it."""
        state = self.read()
        policy = self.check_given_policy(state)
        return gpolicy.open_cluster(
            state, policy, what_if=what_if, limits=limits, resource_model=resource_model, working=working
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """The clusters of a run. `several`: the command line asks for clusters by --all or --label, perhaps for one.

    `jobs` is how many at once, `seconds` the time for each; `pages` the directory for pages. `shard` is which part of
    them all they are, if they are not. `policies` are those that were read to choose them, by their real paths.
    """

    targets: Sequence[Target]
    several: bool
    pages: Path | None
    jobs: int
    seconds: float
    shard: str | None = None
    policies: Mapping[Path, gpolicy.Policy] = field(default_factory=dict)


Work = Callable[[Target], Report]
"""What a verb finds out about one cluster. It may write files, but nothing to standard output."""


def run(work: Work, asked: Clusters, path: Path | None, shown: Outputs, *, verb: str, volumes: bool = False) -> int:
    """Do the work of a verb for each cluster that the options choose, show the report, and return the exit code."""
    return run_on(targets_of(asked, path, volumes=volumes), work, shown, verb=verb)


def run_on(targets: Targets, work: Work, shown: Outputs, *, verb: str) -> int:
    """Do the work of a verb for each of the targets, show the report, and return the exit code."""
    work = partial(_report_of, work)
    output = report_file(shown, verb)
    display, metrics = shown.display, [file for form, file in shown.files if form.form == "prometheus"]
    if metrics or display.form == "prometheus":
        from gpolicy.cli.many_clusters import run_metrics  # noqa: PLC0415 (few runs are for them)

        return run_metrics(work, targets, verb, metrics[0] if metrics else output)
    if not targets.several:
        return show_report(work(targets.targets[0]), display, output, also=shown.files)
    if output is not None:
        hint = "say --output FORM=FILE, --pages DIR or --format prometheus"
        raise UsageError(f"--output is for one cluster, with --format {display.form}", hint=hint)
    from gpolicy.cli.many_clusters import run_all  # noqa: PLC0415 (most runs are about one)

    return run_all(work, targets, display, verb, shown.files)


def report_file(shown: Outputs, verb: str) -> Path | None:
    """Return the file of --output FILE, as it was written in 1.0 for reports. Raise UsageError for other verbs."""
    if not shown.old or verb in _SAVING:
        return None
    form, file = shown.display.form, shown.old[0]
    by_suffix = "json" if file.suffix == ".json" else SUFFIXES.get(file.suffix.lower(), form)
    if verb not in _WROTE_REPORTS or len(shown.old) > 1:
        hint = f"--output {by_suffix}={file} writes the report to a file"
        raise UsageError(f"--output {file}: no form is given", hint=hint)
    sys.stderr.write(as_text([f"note: --format {form} --output {file} is now --output {form}={file}"]))
    return file


def _report_of(work: Work, target: Target) -> Report:
    """Return the report of the work for a target, or of the errors of the policy that prevent it."""
    try:
        return work(target)
    except gpolicy.PolicyError as error:
        return Report(exit_code=int(error.exit_code), errors=error.findings, files=error.files)


def targets_of(asked: Clusters, path: Path | None = None, *, volumes: bool = False) -> Targets:
    """Return what the options are about; `path` is the policy, or the cluster, that the command line names.

    Raise UsageError for options that exclude one another, InputError for what is wrong with the settings file.
    """
    if not _asks_for_several(asked):
        asked, path = _cluster_or_policy(asked, path)
        return _targets(asked, (_choose_one(asked, path, volumes=volumes),))
    from gpolicy.fleet.choosing import changed_clusters, labelled_clusters, sharded_clusters  # noqa: PLC0415

    _refuse_address(asked)
    known = all_clusters_near(path)
    if path is not None and real_path(path) != real_path(known[0].source.parent):
        hint = "--all and --label take the policies that it names: leave the path out"
        raise UsageError(f"{path}: not the directory of a settings file", hint=hint)
    policies: dict[Path, gpolicy.Policy] = {}
    chosen = labelled_clusters(known, asked.label or ())

    def read(path: Path) -> gpolicy.Policy:
        policies[real_path(path)] = gpolicy.load_policy(as_named(path))
        return policies[real_path(path)]

    if asked.changed_since is not None:
        chosen = changed_clusters(chosen, asked.changed_since, read)
    if asked.shard is not None:
        chosen = sharded_clusters(chosen, asked.shard)
    targets = [target_of(cluster, None, asked.snapshots, volumes=volumes, several=True) for cluster in chosen]
    return replace(_targets(asked, targets, several=True), policies=policies)


def _cluster_or_policy(asked: Clusters, word: Path | None) -> tuple[Clusters, Path | None]:
    """Return the options and the policy; a word that is no file, but names a cluster, is an option: that cluster."""
    if word is None or asked.state is not None or word.exists() or str(word) not in clusters_near(None):
        return asked, word
    return replace(asked, state=str(word)), None


def destination_of(to: str, rapi: RapiOptions, *, volumes: bool = False) -> tuple[str, SourceOptions]:
    """Return the address of a destination, and how to reach it: as given, or that of a cluster of the settings file."""
    clusters = {} if ":" in to else clusters_near(None)
    if not clusters:
        return to, source_options(rapi, volumes=volumes)
    from gpolicy.fleet.named_clusters import one_cluster  # noqa: PLC0415 (few need it)

    cluster = one_cluster(to, clusters)
    refuse_rapi_options(rapi)
    return destination_in(cluster, ", or give an address"), target_of(cluster, None, None, volumes=volumes).options


def destination_in(cluster: NamedCluster, otherwise: str = "") -> str:
    """Return the destination that the settings file gives a cluster, or else raise InputError."""
    if cluster.destination is None:
        hint = f"write `destination` under [clusters.{cluster.name}]{otherwise}"
        raise InputError(f"{cluster.source}: the cluster {cluster.name} has no destination", hint=hint)
    return cluster.destination


def _targets(asked: Clusters, targets: Sequence[Target], *, several: bool = False) -> Targets:
    jobs = asked.jobs or max(4, 2 * (os.cpu_count() or 1))
    shard = asked.shard if several else None
    return Targets(targets=targets, several=several, pages=asked.pages, jobs=jobs, seconds=asked.timeout, shard=shard)


def _asks_for_several(asked: Clusters) -> bool:
    if asked.all_clusters and asked.label:
        raise UsageError("--all and --label exclude one another", hint="leave one of them out")
    several = asked.all_clusters or bool(asked.label)
    for option, value in (("--changed-since", asked.changed_since), ("--shard", asked.shard), ("--pages", asked.pages)):
        if value is not None and not several:
            raise UsageError(f"{option} is for several clusters", hint="say --all or --label KEY=VALUE as well")
    return several


def _refuse_address(asked: Clusters) -> None:
    """Raise UsageError for options about one address: a password must not go to whatever the settings file names."""
    if asked.state is not None:
        raise UsageError("--state is about one address, not about clusters of gpolicy.toml", hint="leave it out")
    refuse_rapi_options(asked)


def refuse_rapi_options(rapi: RapiOptions) -> None:
    """Raise UsageError for options that say how to reach one address."""
    given = {
        "--rapi-credentials": rapi.rapi_credentials,
        "--rapi-ca": rapi.rapi_ca,
        "--insecure-rapi": rapi.insecure_rapi or None,
    }
    if option := next((name for name, value in given.items() if value is not None), None):
        hint = "say `credentials` and `ca` of each cluster there"
        raise UsageError(f"{option} is about one address, not about clusters of gpolicy.toml", hint=hint)


def _choose_one(asked: Clusters, path: Path | None, *, volumes: bool) -> Target:
    src = asked.state
    if src and ":" not in src and (clusters := clusters_near(path)) and (src in clusters or not Path(src).exists()):
        from gpolicy.fleet.named_clusters import one_cluster  # noqa: PLC0415 (few need it)

        _refuse_address(replace(asked, state=None))
        return target_of(one_cluster(src, clusters), path, asked.snapshots, volumes=volumes)
    if src is None and not isinstance(asked, MaybeClusters):
        src = os.environ.get(STATE_VARIABLE)
        if src:
            sys.stderr.write(as_text([f"state: {src} ({STATE_VARIABLE})"]))
        elif (cluster := _choose_default(path)) is not None:
            _refuse_address(asked)
            sys.stderr.write(as_text([f"cluster: {cluster.name} ({as_named(cluster.source)})"]))
            return target_of(cluster, path, asked.snapshots, volumes=volumes)
    if asked.snapshots is not None:
        raise UsageError("--snapshots is for clusters of gpolicy.toml", hint="use --state snapshot:FILE")
    return Target(given_policy=path, address=src or None, options=source_options(asked, volumes=volumes))


def _choose_default(path: Path | None) -> NamedCluster | None:
    """Return the cluster of a policy: the only one of the settings file, or the one that the policy belongs to."""
    clusters = clusters_near(path)
    if not clusters:
        return None
    policy = real_path(path or Path())
    owners = [item for item in clusters.values() if item.policy is not None and real_path(item.policy) == policy]
    if len(owners) == 1:
        return owners[0]
    if len(clusters) == 1 and path is None:
        return next(iter(clusters.values()))
    from gpolicy.policy.loading import declared_cluster  # noqa: PLC0415

    named = declared_cluster(path or Path())
    if named in clusters:
        return clusters[named]
    names = some(list(clusters), 5)
    hint = "say --state NAME, --label KEY=VALUE or --all"
    raise UsageError(f"which cluster? gpolicy.toml names {names}", hint=hint)


def target_of(
    cluster: NamedCluster, path: Path | None, snapshots: Path | None, *, volumes: bool = False, several: bool = False
) -> Target:
    """Return a cluster of the settings file as a target; of a directory of snapshots, the newest one is read."""
    address = cluster.state
    scheme, _, rest = address.partition(":")
    if scheme in FILE_SCHEMES:
        address = f"{scheme}:{as_named(Path(rest))}"
    options = SourceOptions(rapi_ca=cluster.authority, login=cluster.login, physical_volumes=volumes)
    return Target(
        given_policy=path, address=address, options=options, named=cluster, snapshots=snapshots, several=several
    )


def clusters_near(path: Path | None) -> Mapping[str, NamedCluster]:
    """Return the clusters that the settings file of a policy, or of the current directory, names."""
    from gpolicy.fleet.named_clusters import named_clusters  # noqa: PLC0415
    from gpolicy.policy.settings_file import settings_file  # noqa: PLC0415

    return named_clusters(settings_file(path or Path()))


def all_clusters_near(path: Path | None) -> list[NamedCluster]:
    """Return the same, at least one. Raise UsageError if there is none."""
    if clusters := clusters_near(path):
        return list(clusters.values())
    hint = "write a table [clusters.NAME] with `policy` and `state` for each in gpolicy.toml"
    raise UsageError("no settings file names clusters", hint=hint)


def rollout_near(path: Path | None) -> tuple[list[NamedCluster], RolloutSettings | None]:
    """Return the clusters of the settings file, at least one, and what it says of roll-outs.

    Raise UsageError if there is no cluster.
    """
    from gpolicy.fleet.named_clusters import rollout_settings  # noqa: PLC0415
    from gpolicy.policy.settings_file import settings_file  # noqa: PLC0415

    clusters, file = all_clusters_near(path), settings_file(path or Path())
    return clusters, rollout_settings(file, clusters) if file is not None else None


def as_named(path: Path) -> Path:
    """Return a path from the current directory, if it lies below."""
    here, whole = real_path(Path.cwd()), real_path(path)
    return whole.relative_to(here) if whole.is_relative_to(here) else path
