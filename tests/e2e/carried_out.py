"""Policies carried out on the live cluster through gpolicy's own command line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.e2e.live_cluster import LiveCluster, Run, gpolicy
from tests.strategies import Document, yaml_text

RISKS: Final = ("disks-stay", "exclusive-storage", "master-network", "takes-instances")
"""Guards against expensive changes, which these tests allow."""
ROUTES: Final = ("local", "rapi")


def write_policy(file: Path, documents: Iterable[Document]) -> Path:
    """Write a policy and return its file."""
    file.write_text(yaml_text(list(documents)), encoding="utf-8")
    return file


@dataclass(frozen=True, slots=True)
class Way:
    """A way to the cluster: `route` is local or rapi (or ssh), for reading and for changing alike."""

    cluster: LiveCluster
    route: str

    @property
    def address(self) -> str:
        """The value of --state and --to."""
        return {"local": "local:", "rapi": self.cluster.rapi, "ssh": self.cluster.ssh}[self.route]

    @property
    def trust(self) -> list[str]:
        """The options that this way needs."""
        return self.cluster.rapi_options(self.address)

    def plan(self, policy: Path, output: Path | None = None, *, state: str | None = None) -> Run:
        """Plan the policy; exit code 2 means changes."""
        address = state or self.address
        kept = ["--save", str(output)] if output else []
        allowed = [word for guard in RISKS for word in ("--allow", guard)]
        trust = self.cluster.rapi_options(address)
        return gpolicy("plan", policy, "--state", address, *allowed, *kept, *trust, "--detailed-exitcode")

    def apply(self, plan: Path, *options: str) -> Run:
        """Apply a plan."""
        return gpolicy("apply", plan, "--to", self.address, "--yes", *self.trust, *options)

    def carry_out(self, policy: Path, plan: Path) -> bool:
        """Plan and apply a policy; see that nothing is left. Return whether there was anything to do.

        The plan is made from config.data, the one source that shows every value: a plan
        contains only what its source shows.
        """
        planned = self.plan(policy, plan, state=self.cluster.sources["config"])
        if planned.code == 0:
            return False
        assert planned.code == 2, planned.err + planned.out
        applied = self.apply(plan)
        assert applied.code == 0, applied.err + applied.out
        self.expect_nothing_left(policy)
        return True

    def expect_nothing_left(self, policy: Path, sources: Sequence[str] = ("config",)) -> None:
        """See that the policy is carried out, as each of the sources shows it."""
        for source in sources:
            again = self.plan(policy, state=self.cluster.sources[source])
            assert again.code == 0, f"{source}: {again.out}{again.err}"
