"""Run by the system's Python, which has Ganeti's modules: how Ganeti itself reads a command.

Reads one JSON request a line, writes one JSON answer a line. A request has `argv` (a gnt-* command) or `rapi`
(method, path, body), and may have `own` (values that an object has now) and `level`. The answer has `op` (the
opcode as it would be queued, validated as the master does it) and, if asked for, `before` and `stored`: what
Ganeti's own objects make of `own`, and its own logical units of the change. Or it has `error`. A request with
`hypervisor` and `values` asks whether that hypervisor takes them beside the defaults of its other parameters; one with
`starts` asks the same of the code that makes QEMU's command, and one with `tag` whether that can be a tag. The answer
is empty, or has `error`. Nothing is submitted anywhere. The one argument is the directory of Ganeti's modules.
"""

import contextlib
import importlib
import io
import json
import os
import socket
import sys
from collections.abc import Iterator
from typing import Any
from unittest import mock

Stored = tuple[dict[str, Any], dict[str, Any]]

sys.path[0] = sys.argv[1]  # in the place of this script's own directory

cli = importlib.import_module("ganeti.cli")
constants = importlib.import_module("ganeti.constants")
errors = importlib.import_module("ganeti.errors")
http = importlib.import_module("ganeti.http")
hypervisors = importlib.import_module("ganeti.hypervisor")
objects = importlib.import_module("ganeti.objects")
opcodes = importlib.import_module("ganeti.opcodes")
serializer = importlib.import_module("ganeti.serializer")
connector = importlib.import_module("ganeti.rapi.connector")
http_server = importlib.import_module("ganeti.http.server")
cluster_lus = importlib.import_module("ganeti.cmdlib.cluster")
group_lus = importlib.import_module("ganeti.cmdlib.group")
node_lus = importlib.import_module("ganeti.cmdlib.node")

PROGRAMS = {
    "gnt-cluster": (importlib.import_module("ganeti.client.gnt_cluster"), constants.TAG_CLUSTER),
    "gnt-group": (importlib.import_module("ganeti.client.gnt_group"), constants.TAG_NODEGROUP),
    "gnt-node": (importlib.import_module("ganeti.client.gnt_node"), constants.TAG_NODE),
    "gnt-instance": (importlib.import_module("ganeti.client.gnt_instance"), constants.TAG_INSTANCE),
}
ASKS_FIRST = (
    ("gnt-instance", "migrate"),
    ("gnt-instance", "failover"),
    ("gnt-instance", "move"),
    ("gnt-node", "evacuate"),
    ("gnt-group", "evacuate"),
)
"""Commands that open a connection before they submit; `gnt-node evacuate` asks which instances there are."""


class RefusedError(Exception):
    """Ganeti said no."""


class SubmittedError(Exception):
    """Carries the opcode out of the client."""

    def __init__(self, op: Any) -> None:
        super().__init__()
        self.op = op


def submit(op: Any, *_args: object, **_kwargs: object) -> None:
    raise SubmittedError(op)


def no_client(*_args: object, **_kwargs: object) -> None:
    raise AssertionError("the command asks the cluster before it submits")


class Anything:
    """Has every attribute and takes every call, as a MagicMock does, which takes a hundred times as long to make."""

    side_effect: Any = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = Anything()
        setattr(self, name, made)
        return made

    def __call__(self, *arguments: object, **more: object) -> Any:
        self.call_args = (arguments, more)
        if isinstance(self.side_effect, Exception):
            raise self.side_effect
        return self.side_effect(*arguments, **more) if self.side_effect else self.return_value

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, key: object) -> Any:
        return Anything()


class Connection:
    """Answers what `ASKS_FIRST` ask."""

    def QueryNodes(self, **_kwargs: object) -> list[list[list[str]]]:  # noqa: N802 (Ganeti's name)
        return [[["instance1"]]]

    def Close(self) -> None:  # noqa: N802 (Ganeti's name)
        pass


for _module in (cli, *(module for module, _ in PROGRAMS.values())):
    for _name, _function in (("SubmitOrSend", submit), ("SubmitOpCode", submit), ("GetClient", no_client)):
        setattr(_module, _name, _function)


def as_queued(op: Any) -> Any:
    """Return the opcode as the master gets it: through JSON, and validated with its defaults set."""
    loaded = opcodes.OpCode.LoadOpCode(serializer.LoadJson(serializer.DumpJson(op.__getstate__())))
    loaded.Validate(True)
    return loaded


def parse_argv(argv: list[str]) -> Any:
    """Run a command up to the point where it would submit its job, and return the opcode."""
    module, tag_type = PROGRAMS[argv[0]]
    for option in module.commands[argv[1]][2]:
        if option.action == "append":
            option.default = []  # the parser appends to the default itself, which outlives a command here
    function, options, arguments = cli._ParseArgs(argv[0], list(argv), module.commands, {}, frozenset())
    if function is None:
        raise RefusedError("wrong number of arguments")
    options.tag_type = tag_type
    client = Connection if tuple(argv[:2]) in ASKS_FIRST else no_client
    with mock.patch.object(sys, "argv", list(argv)), mock.patch.object(module, "GetClient", client):
        try:
            code = function(options, arguments)
        except SubmittedError as submitted:
            return submitted.op
    raise RefusedError(f"exit code {code}, nothing submitted")


def parse_rapi(request: dict[str, Any]) -> Any:
    """Return the opcode that RAPI would submit for a request."""
    line = f"{request['method']} {request['path']} HTTP/1.1"
    if len(line) + 2 > http_server._HttpClientToServerMessageReader.START_LINE_LENGTH_MAX:
        raise RefusedError("start line too long")
    line.encode("ascii")
    handler_class, items, arguments = connector.Mapper().getController(request["path"])
    # The body goes through JSON, as on the wire.
    body = serializer.LoadJson(json.dumps(request["body"])) if request["body"] is not None else None
    received = Anything()
    received.private.body_data = body
    handler = handler_class(items, arguments, received, _client_cls=no_client)
    handler.SubmitJob = lambda ops: submit(*ops)
    try:
        getattr(handler, request["method"])()
    except SubmittedError as submitted:
        return submitted.op
    raise RefusedError("nothing submitted")


def typed(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the opcode's fields with the types that the master forces; the client leaves some as text."""
    words = [constants.VALUE_DEFAULT]
    force = importlib.import_module("ganeti.utils").ForceDictType
    for values in [fields["ndparams"]] if fields.get("ndparams") else []:
        force(values, constants.NDS_PARAMETER_TYPES, words)
    for values in (fields.get("diskparams") or {}).values():
        force(values, constants.DISK_DT_TYPES, words)
    for values in (fields.get("hv_state") or {}).values():
        force(values, constants.HVSTS_PARAMETER_TYPES, words)
    for groups in (fields.get("disk_state") or {}).values():
        for values in groups.values():
            force(values, constants.DSS_PARAMETER_TYPES, words)
    return fields


def _logical_unit(unit_class: Any, op: Any, cfg: Any) -> Any:
    unit = object.__new__(unit_class)
    unit.op, unit.cfg, unit.rpc, unit.proc = op, cfg, Anything(), Anything()
    unit.group_uuid = "group-uuid"
    unit.owned_locks = lambda _level: set()
    unit.LogWarning = unit.LogInfo = lambda *_arguments: None
    return unit


def _copy(item: Any) -> dict[str, Any]:
    copied: dict[str, Any] = serializer.LoadJson(serializer.DumpJson(item.ToDict()))
    return copied


def _cluster(own: dict[str, Any]) -> Any:
    cluster = objects.Cluster(
        enabled_hypervisors=["kvm"],
        default_bridge="xen-br0",
        enabled_disk_templates=sorted(constants.DISK_TEMPLATES),
        volume_group_name="xenvg",
        drbd_usermode_helper="/bin/true",
        master_netdev="eth0",
        mac_prefix="aa:00:00",
        file_storage_dir="",
        candidate_pool_size=10,
        zeroing_image="",
        data_collectors={
            name: {constants.DATA_COLLECTOR_STATE_ACTIVE: True, constants.DATA_COLLECTOR_PARAMETER_INTERVAL: 5000000}
            for name in constants.DATA_COLLECTOR_NAMES
        },
        **own,
    )
    cluster.UpgradeConfig()
    return cluster


def _config(cluster: Any, **known: Any) -> Any:
    cfg = Anything()
    cfg.GetClusterInfo.return_value = cluster
    cfg.GetPrimaryIPFamily.return_value = socket.AF_INET
    cfg.GetInstanceNames.return_value = cfg.GetMultiInstanceInfoByName.return_value = (
        cfg.GetInstanceList.return_value
    ) = []
    cfg.GetNodeGroupInstances.return_value = cfg.DisksOfType.return_value = cfg.GetMultiNodeInfo.return_value = []
    for name in ("GetAllNodesInfo", "GetAllInstancesInfo", "GetAllNodeGroupsInfo"):
        getattr(cfg, name).return_value = {}
    cfg.GetVGName.side_effect = lambda: cluster.volume_group_name
    cfg.GetDRBDHelper.side_effect = lambda: cluster.drbd_usermode_helper
    cfg.GetInstanceCommunicationNetwork.side_effect = lambda: cluster.instance_communication_network
    cfg.SetVGName.side_effect = lambda value: setattr(cluster, "volume_group_name", value)
    cfg.SetDRBDHelper.side_effect = lambda value: setattr(cluster, "drbd_usermode_helper", value)
    cfg.SetCompressionTools.side_effect = lambda value: setattr(cluster, "compression_tools", value)
    cfg.SetInstanceCommunicationNetwork.side_effect = lambda value: setattr(
        cluster, "instance_communication_network", value
    )
    for name, value in known.items():
        getattr(cfg, name).return_value = value
    return cfg


def store_cluster(op: Any, own: dict[str, Any]) -> Stored:
    """Return the cluster's values before and after its modify job; checks that need nodes or files are left out."""
    cluster = _cluster(own)
    before = _copy(cluster)
    unit = _logical_unit(cluster_lus.LUClusterSetParams, op, _config(cluster))
    with contextlib.ExitStack() as stack:
        for name in (
            "CheckHVParams",
            "AdjustCandidatePool",
            "EnsureKvmdOnNodes",
            "CheckFileStoragePathVsEnabledDiskTemplates",
            "CheckSharedFileStoragePathVsEnabledDiskTemplates",
        ):
            stack.enter_context(mock.patch.object(cluster_lus, name, Anything()))
        stack.enter_context(mock.patch.object(cluster_lus.hypervisor, "GetHypervisorClass", Anything()))
        stack.enter_context(mock.patch.object(cluster_lus.utils, "FindFile", Anything()))
        unit.CheckArguments()
        unit.CheckPrereq()
        unit.Exec(lambda *_: None)
    return before, cluster.ToDict()


def store_group_add(op: Any) -> Stored:
    """Return the values of the new group."""
    cfg = _config(_cluster({}))
    cfg.LookupNodeGroup.side_effect = errors.OpPrereqError("not found")
    unit = _logical_unit(group_lus.LUGroupAdd, op, cfg)
    unit.CheckArguments()
    unit.CheckPrereq()
    unit.Exec(lambda *_: None)
    group = cfg.AddNodeGroup.call_args[0][0]
    group.UpgradeConfig()
    return {}, group.ToDict()


def store_group(op: Any, own: dict[str, Any]) -> Stored:
    """Return the group's values before and after its modify job."""
    group = objects.NodeGroup(name="g", members=[], **own)
    group.UpgradeConfig()
    before = _copy(group)
    unit = _logical_unit(group_lus.LUGroupSetParams, op, _config(_cluster({}), GetNodeGroup=group))
    unit.CheckArguments()
    unit.CheckPrereq()
    unit.Exec(lambda *_: None)
    return before, group.ToDict()


def store_node(op: Any, own: dict[str, Any]) -> Stored:
    """Return the node's values before and after its modify job."""
    flags = {"master_candidate": True, "offline": False, "drained": False, "master_capable": True, "vm_capable": True}
    node = objects.Node(name="n", uuid="node-uuid", powered=True, **flags, **own)
    node.UpgradeConfig()
    before = _copy(node)
    cfg = _config(_cluster({}), GetNodeInfo=node, ExpandNodeName=("node-uuid", "n"))
    unit = _logical_unit(node_lus.LUNodeSetParams, op, cfg)
    with mock.patch.object(node_lus, "SupportsOob", return_value=True):
        unit.CheckArguments()
        unit.lock_instances = False
        unit.CheckPrereq()
        unit.Exec(lambda *_: None)
    return before, node.ToDict()


STORES = {
    "OP_CLUSTER_SET_PARAMS": store_cluster,
    "OP_GROUP_ADD": lambda op, _own: store_group_add(op),
    "OP_GROUP_SET_PARAMS": store_group,
    "OP_NODE_SET_PARAMS": store_node,
}


def check_hypervisor(hypervisor: str, values: dict[str, Any]) -> None:
    """Let the checks of a hypervisor see values of some parameters; what they raise is Ganeti's refusal."""
    filled = {**constants.HVC_DEFAULTS[hypervisor], **values}
    importlib.import_module("ganeti.utils").ForceDictType(filled, constants.HVS_PARAMETER_TYPES)
    hypervisors.GetHypervisorClass(hypervisor).CheckParameterSyntax(filled)


def check_start(values: dict[str, str], devices: str) -> None:
    """Let the code of Ganeti 3.1 that makes QEMU's command see a type of disk or CD-ROM, or a disk's address."""
    kvm = hypervisors.GetHypervisorClass("kvm")
    hypervisor = object.__new__(kvm)
    if "address" in values:
        importlib.import_module("ganeti.hypervisor.hv_kvm.kvm_utils").ParseStorageUriToBlockdevParam(values["address"])
    elif "cdrom_disk_type" in values:
        hypervisor._CdromOption([], values["cdrom_disk_type"], "/image", False, "cdrom1")
    else:
        filled = {**constants.HVC_DEFAULTS["kvm"], **values}
        hypervisor._GenerateKVMBlockDevicesOptions(filled, [], "", devices)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to one request; whatever Ganeti raises is its refusal."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            if "hypervisor" in request:
                check_hypervisor(request["hypervisor"], request["values"])
                return {}
            if "starts" in request:
                check_start(request["starts"], request["devices"])
                return {}
            if "tag" in request:
                objects.TaggableObject.ValidateTag(request["tag"])
                return {}
            op = parse_argv(request["argv"]) if "argv" in request else parse_rapi(request["rapi"])
            op = as_queued(op)
            fields = serializer.LoadJson(serializer.DumpJson(op.__getstate__()))
            result: dict[str, Any] = {"op": {"id": op.OP_ID, "fields": typed(fields)}}
            if "own" in request:
                before, after = STORES[op.OP_ID](op, request["own"])
                result["before"], result["stored"] = serializer.LoadJson(serializer.DumpJson([before, after]))
    except (Exception, SystemExit) as error:  # noqa: BLE001 (every failure is an answer)
        return {"error": f"{type(error).__name__}: {error} {said.getvalue().strip()}"}
    return result


def main() -> None:
    """Answer until there are no more requests."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=out, flush=True)


if __name__ == "__main__":
    main()
