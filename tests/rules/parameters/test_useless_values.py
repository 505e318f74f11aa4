"""Values that Ganeti stores and that are of no use beside specs or on the nodes; those alone are `cases/values.txt`."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from gpolicy.cluster.state import ClusterObject
from gpolicy.findings import Severity
from gpolicy.ganeti.vocabulary import GANETI_PORTS, INSTANCE_PORTS
from gpolicy.rules.parameters.texts import FORBIDDEN
from tests.ganeti.real_ganeti import TREES
from tests.rules.policy_texts import CLUSTER, GROUP, bounds
from tests.rules.run_rules import check, cluster, with_resources


def serious(text: str, directory: Path, **more: object) -> list[str]:
    found = check(text, directory, **more)  # type: ignore[arg-type]
    return [item.code for item in found if item.severity is not Severity.INFO]


def kvm(text: str) -> str:
    return f"{CLUSTER}hvparams:\n  kvm: {{{text}}}\n"


@pytest.mark.parametrize(
    ("topology", "cpus", "wrong"),
    [
        ("cpu_cores: 2", "1 4", False),
        ("cpu_cores: 2", "3 3", True),
        ("cpu_cores: 4, cpu_threads: 2", "1 4", True),
        ("cpu_sockets: 2, cpu_cores: 2, cpu_threads: 2", "1 8", False),
        ("cpu_sockets: 2, cpu_cores: 2, cpu_threads: 2", "9 32", True),
        ("cpu_sockets: 2, cpu_cores: 2", "9 32", False),
        ("cpu_cores: 0", "3 3", False),
    ],
)
def test_a_topology_needs_cpus_that_go_with_it(topology: str, cpus: str, wrong: bool, tmp_path: Path) -> None:
    spec = f"---\n{GROUP}ipolicy:\n  minmax:\n    - name: some\n      {bounds('1G 8G', cpus, '1G 9G')}"
    assert (serious(kvm(topology) + spec, tmp_path) == ["GP180"]) is wrong


def test_what_the_cluster_has_counts(tmp_path: Path) -> None:
    with_domain = ClusterObject(own={("hvparams", "kvm", "security_domain"): "kvm", ("uid_pool",): [[2000, 2099]]})
    state = replace(cluster({"gold": {}}, {"n1": "gold"}), cluster=with_domain)
    assert serious(kvm("security_model: user"), tmp_path, state=state) == []
    assert serious(kvm("security_model: pool, security_domain: ''"), tmp_path, state=state) == []
    masked = kvm('cpu_mask: "0-16"') + f"---\n{GROUP}"
    assert serious(masked, tmp_path, state=with_resources(state, cpu_total=16)) == ["GP179"]
    assert serious(masked, tmp_path, state=state) == []


ANSWER = """
import json, sys
sys.path.insert(0, sys.argv[1])
from ganeti import constants, uidpool
from ganeti.storage import filestorage
ports = [port for _, port in constants.DAEMONS_PORTS.values()]
drbd = [constants.FIRST_DRBD_PORT, constants.LAST_DRBD_PORT]
uidpool.CheckUidPool([(0, 99)])
print(json.dumps([sorted(filestorage._GetForbiddenFileStoragePaths()), ports, drbd]))
"""


@pytest.mark.ganeti
@pytest.mark.skipif(not TREES, reason="Debian's package ganeti is not installed (no /usr/share/ganeti/3.*)")
def test_directories_and_ports_are_ganetis_own() -> None:
    run = subprocess.run(
        ["/usr/bin/python3", "-c", ANSWER, str(TREES[-1].parents[2])],
        capture_output=True,
        text=True,
        check=True,
        env={},
    )
    directories, ports, of_instances = json.loads(run.stdout)
    assert sorted(FORBIDDEN) == directories
    assert set(GANETI_PORTS) == set(ports) - {22, 80}  # ssh is compared with ssh_port; 80 is on an address of its own
    assert list(INSTANCE_PORTS) == of_instances


@pytest.mark.parametrize(
    ("base", "own", "expected"),
    [
        ("dynamic-resync: true, c-max-rate: 200M", "dynamic-resync: false, resync-rate: 100M", []),
        ("dynamic-resync: true, c-max-rate: 200M", "dynamic-resync: false, c-max-rate: 100M", ["GP122"]),
        ("dynamic-resync: false, c-max-rate: 200M", "resync-rate: 100M", ["GP122"]),
    ],
)
def test_a_mode_that_leaves_values_of_a_base_unused_is_meant(
    base: str, own: str, expected: list[str], tmp_path: Path
) -> None:
    head = "gpolicy: v1\nkind: Cluster\nname: {}\n{}\nenabled_disk_templates: [drbd]\ndiskparams:\n  drbd: {{{}}}\n"
    text = head.format("base", "template: true", base) + "---\n" + head.format("c.example.org", "extends: base", own)
    assert [item.code for item in check(text, tmp_path) if item.code == "GP122"] == expected
