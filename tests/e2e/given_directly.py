"""Ganeti's own commands given directly, and what its configuration holds then."""

from __future__ import annotations

from typing import Any, Final

from gpolicy.cluster.state_files import read_config_file
from gpolicy.ganeti.vocabulary import DEFAULT_MAX, DEFAULT_MIN
from tests.e2e.live_cluster import LiveCluster

WARNING: Final = "After the ipolicy change the following instances violate them"


class Real:
    """The cluster, and short ways to what its configuration holds."""

    def __init__(self, cluster: LiveCluster) -> None:
        self.cluster = cluster

    def taken(self, *command: str) -> str:
        """Run a command that Ganeti accepts, and return what it says."""
        done = self.cluster.ganeti(*command)
        return done.stdout + done.stderr

    def refused(self, *command: str) -> str:
        """Run a command that Ganeti refuses, and return what it says."""
        done = self.cluster.ganeti(*command, check=False)
        assert done.returncode != 0, done.stdout
        return done.stdout + done.stderr

    def config(self, name: str | None = None) -> Any:
        """Return the stored cluster, or the group of that name."""
        config = self.cluster.config()
        if name is None:
            return config["cluster"]
        return next(group for group in config["nodegroups"].values() if group["name"] == name)

    def node(self, name: str) -> Any:
        """Return the stored node."""
        return next(node for node in self.cluster.config()["nodes"].values() if node["name"] == name)

    def groups_of_nodes(self) -> dict[str, str]:
        """Return the group of each node."""
        state = read_config_file(self.cluster.config_file)
        return {name: node.group for name, node in state.nodes.items()}


def bounds(**high: int) -> str:
    """Return the one argument of --ipolicy-bounds-specs: the default pair with other maxima."""
    top = {**DEFAULT_MAX, **{name.replace("_", "-"): value for name, value in high.items()}}
    low, up = (",".join(f"{name}={spec[name]}" for name in DEFAULT_MIN) for spec in (DEFAULT_MIN, top))
    return f"--ipolicy-bounds-specs=min:{low}/max:{up}"
