"""Run by the system's Python, which has Ganeti's modules: Ganeti's own verdict on instances of a cluster.

Reads one cluster a line as JSON: `cluster`, `groups`, `nodes` and `instances` with own values as config.data has them.
Writes one line for each: the messages of every instance under the policy of its primary node's group, and with
minmem in the place of maxmem. The one argument is the directory of Ganeti's modules.
"""

import importlib
import json
import sys
from typing import Any

sys.path[0] = sys.argv[1]  # in the place of this script's own directory

objects = importlib.import_module("ganeti.objects")
common = importlib.import_module("ganeti.cmdlib.common")
masterd = importlib.import_module("ganeti.masterd.instance")


class Configuration:
    """What the checks ask of Ganeti's configuration, answered by Ganeti's own objects."""

    def __init__(self, described: dict[str, Any]) -> None:
        self.cluster = objects.Cluster(**described["cluster"])
        self.cluster.UpgradeConfig()
        self.groups = {
            name: objects.NodeGroup(name=name, uuid=name, diskparams={}, members=[], **own)
            for name, own in described["groups"].items()
        }
        self.nodes = {name: objects.Node(name=name, uuid=name, **own) for name, own in described["nodes"].items()}
        self.instances = {}
        self.disks: dict[str, list[Any]] = {}
        for name, own in described["instances"].items():
            self.disks[name] = [objects.Disk(**disk) for disk in own.pop("disks")]
            nics = [objects.NIC() for _ in range(own.pop("nics"))]
            self.nodes_of = getattr(self, "nodes_of", {}) | {name: own.pop("nodes")}
            self.instances[name] = objects.Instance(name=name, uuid=name, nics=nics, **own)

    def GetClusterInfo(self) -> Any:  # noqa: N802 (Ganeti's name, as those below)
        return self.cluster

    def GetInstanceNodes(self, uuid: str) -> tuple[str, ...]:  # noqa: N802
        return tuple(self.nodes_of[uuid])

    def GetInstanceDisks(self, uuid: str) -> list[Any]:  # noqa: N802
        return self.disks[uuid]

    def GetNodeInfo(self, uuid: str) -> Any:  # noqa: N802
        return self.nodes[uuid]

    def GetMultiNodeInfo(self, uuids: Any) -> list[tuple[str, Any]]:  # noqa: N802
        return [(uuid, self.nodes[uuid]) for uuid in uuids]

    def GetNodeGroup(self, uuid: str) -> Any:  # noqa: N802
        return self.groups[uuid]

    def GetNdParams(self, node: Any) -> Any:  # noqa: N802
        return self.cluster.FillND(node, self.groups[node.group])

    def verdicts(self) -> dict[str, list[str]]:
        """Return the messages by instance; an instance that conforms has none."""
        found = {}
        for name, instance in self.instances.items():
            group = self.groups[self.nodes[instance.primary_node].group]
            policy = masterd.CalculateGroupIPolicy(self.cluster, group)
            found[name] = common.ComputeIPolicyInstanceViolation(policy, instance, self)
        return found


for line in sys.stdin:
    configuration = Configuration(json.loads(line))
    answer = {"maxmem": configuration.verdicts()}
    for item in configuration.instances.values():
        item.beparams["maxmem"] = item.beparams["minmem"]
    answer["minmem"] = configuration.verdicts()
    sys.stdout.write(json.dumps(answer) + "\n")
