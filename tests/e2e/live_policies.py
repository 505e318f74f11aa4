"""Random policies that a real cluster takes: those of the laws of plans, less what the pretended hardware refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hypothesis import strategies as st

from gpolicy.cluster.state import ClusterState
from gpolicy.ganeti.parameters import parameter_at
from gpolicy.ganeti.vocabulary import Level, Path as ValuePath
from tests.e2e.parameter_values import two_values
from tests.strategies import ENABLED, Document, policies

NAMES: Final = ("default", "gold", "silver", "bronze", "g-1", "g_2.x")
_LEVELS: Final = {"Cluster": Level.CLUSTER, "NodeGroup": Level.GROUP, "NodeSet": Level.NODE}
_LEFT_OUT: Final = frozenset(
    {
        # what the pretended hardware, or the network, has one value of
        *("volume_group_name", "drbd_usermode_helper", "enabled_hypervisors", "hvparams", "nicparams", "master_netdev"),
        *("master_netmask", "use_external_mip_script", "file_storage_dir", "shared_file_storage_dir"),
        *("default_iallocator", "instance_communication_network"),
        # what Ganeti cannot take back: the rollback could not be exact (their own tests show them)
        *("install_image", "zeroing_image", "candidate_pool_size"),
        "compression_tools",  # not through RAPI
        "std",  # random bounds rarely hold it
    }
)


@st.composite
def live_policies(draw: st.DrawFn, state: ClusterState, *, every_node: bool) -> list[Document]:
    """Return a policy for `state` that Ganeti can carry out and take back exactly.

    Without `every_node` it has values and tags of one node only: each node is a job of its own.
    """
    in_use = sorted({instance.disk_template for instance in state.instances.values()})
    made = draw(policies(state, NAMES))
    fitted = [_fitted(document, in_use, lambda some: draw(st.sampled_from(some))) for document in made.documents]
    return fitted if every_node else [_of_one_node(document) for document in fitted if document.get("name") != "all"]


def _of_one_node(made: Document) -> Document:
    return {**made, "nodes": made["nodes"][:1]} if made["kind"] == "NodeSet" else made


def _fitted(made: Document, in_use: list[str], choose: Callable[[tuple[Any, Any]], Any]) -> Document:
    level = _LEVELS.get(made["kind"])
    if level is None:
        return made
    fitted = {key: value for key, value in made.items() if key not in _LEFT_OUT}
    if level is Level.CLUSTER:
        for family in ("hv_state", "disk_state"):  # an entry of the cluster cannot be removed
            fitted.pop(family, None)
        if ENABLED[0] in fitted:  # a template with disks cannot be disabled
            fitted[ENABLED[0]] = list(dict.fromkeys([*fitted[ENABLED[0]], *in_use]))
    policy = {key: value for key, value in fitted.get("ipolicy", {}).items() if key != "std"}
    if policy:
        fitted["ipolicy"] = policy
    else:
        fitted.pop("ipolicy", None)
    disks = {
        template: below
        for template, values in fitted.get("diskparams", {}).items()
        if (below := {name: _sound(("diskparams", template, name), value, level, choose)
                      for name, value in values.items() if name != "access"})
    }  # fmt: skip
    if disks:
        fitted["diskparams"] = disks
    else:
        fitted.pop("diskparams", None)
    return fitted


def _sound(path: ValuePath, value: Any, level: Level, choose: Callable[[tuple[Any, Any]], Any]) -> Any:
    """Return a value that DRBD could have: the rules call others an error, and there would be no plan."""
    parameter = parameter_at(path)
    return value if value == "inherit" or parameter is None else choose(two_values(parameter, level))
