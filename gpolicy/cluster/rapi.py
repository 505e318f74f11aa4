"""Ganeti's remote API (RAPI): one consistent read, in seven requests for a cluster of any size."""

from __future__ import annotations

import time
from dataclasses import replace

from gpolicy.cluster.rapi_answers import (
    CONFIGURATION_FIELDS,
    NODE_OWN_FIELDS,
    PLACE_FIELDS,
    Answers,
    ChangedError,
    configuration_of,
    state_of,
)
from gpolicy.cluster.rapi_client import Client, netloc
from gpolicy.cluster.state import ClusterState
from gpolicy.errors import UnreachableError
from gpolicy.ganeti.parameter import Value
from gpolicy.ganeti.vocabulary import RAPI_READS

_ATTEMPTS = 4
_WHOLE_READ = 4  # times the time limit of one answer: only the node list can be slow
_PAUSE = 0.5  # seconds before reading a changed cluster again
_INFO, _GROUPS, _NODES, _INSTANCES = (RAPI_READS[name] for name in ("info", "groups", "nodes", "instances"))
_NODE_OWN = f"/2/query/node?fields={','.join(NODE_OWN_FIELDS)}"
_NODE_CONFIGURATION = f"/2/query/node?fields={','.join(CONFIGURATION_FIELDS)}"
_INSTANCE_PLACES = f"/2/query/instance?fields={','.join(PLACE_FIELDS)}"


def read_rapi(client: Client, *, insecure: bool = False) -> ClusterState:
    """Return the state of the cluster behind `client`.

    The cluster and its groups are read again at the end, and everything once more when they have changed, or when the
    parts do not fit together. Raise UnreachableError after a few attempts, or when the read takes longer than four
    times the client's timeout.
    """
    source = f"rapi://{netloc(client.host, client.port)}"
    until = time.monotonic() + _WHOLE_READ * client.timeout
    first = _frame(client, until)
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(_PAUSE)
        nodes = client.get(_NODES, until=until)
        node_own = client.get_if_allowed(_NODE_OWN, until=until)
        instances = client.get(_INSTANCES, until=until)
        last = _frame(client, until)
        why = ""
        if first == last:
            try:
                state = state_of(Answers(*first, nodes, instances, node_own), source)
            except ChangedError as error:
                why = f" (at last: {error.message})"
            else:
                notes = ("the server's TLS certificate was not verified",) if insecure else ()
                return replace(state, notes=(*notes, *state.notes))
        first = last
    raise UnreachableError(
        f"{source}: the cluster changed while it was read, {_ATTEMPTS} times in a row{why}",
        hint="try again when fewer jobs are running",
    )


def read_rapi_configuration(client: Client, *, instances: bool = False) -> ClusterState:
    """Return the configuration of the cluster, without measurements: no node is asked.

    It takes three requests, or four with the places of `instances`, even if nodes are down, and a user with a password.
    Raise as `read_rapi` does.
    """
    source = f"rapi://{netloc(client.host, client.port)}"
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(_PAUSE)
        answers = client.get(_INFO), client.get(_GROUPS), client.get(_NODE_CONFIGURATION)
        placed = client.get(_INSTANCE_PLACES) if instances else None
        try:
            return configuration_of(*answers, placed, source)
        except ChangedError as error:
            why = error.message
    raise UnreachableError(f"{source}: the cluster changed while it was read (at last: {why})", hint="try again")


def _frame(client: Client, until: float) -> tuple[Value, Value]:
    """Return the parts that are read first and last, to detect a change: the cluster and its groups."""
    return client.get(_INFO, until=until), client.get(_GROUPS, until=until)
