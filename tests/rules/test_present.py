"""Groups, hypervisors and volume groups of the policy against those that the cluster has."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpolicy.cluster.state import ClusterObject
from tests.rules.run_rules import check, cluster, codes, with_instance

CLUSTER = "gpolicy: v1\nkind: Cluster\nname: c.example.org\n"


def group(name: str, more: str = "") -> str:
    return f"gpolicy: v1\nkind: NodeGroup\nname: {name}\n{more}"


@pytest.mark.parametrize(
    ("policy", "wanted"),
    [
        (group("gold"), []),
        (group("bronze"), []),
        (group("glod", "removed: true\n"), [(4, "Did you mean `gold`?")]),
        (group("olds", "removed: true\n"), []),
        (group("web2", "removed: true\n"), []),
        (group("rack-b", "removed: true\n"), []),
        (group("glod", "removed: true\n") + "---\n" + group("gold"), []),  # both are meant
        (group("main", "renamed_from: gold\n"), []),
        (group("gold", "renamed_from: default\n"), []),  # done
        (group("main", "renamed_from: default\n"), [(4, "its groups are gold, rack-a, web1")]),
    ],
)
def test_groups_that_the_cluster_does_not_have(policy: str, wanted: list[tuple[int, str]], tmp_path: Path) -> None:
    found = check(policy, tmp_path, state=cluster({"gold": {}, "web1": {}, "rack-a": {}}))
    assert [(item.span.line, item.hint) for item in found if item.code == "GP744" and item.span] == wanted
    assert codes(found) == ["GP744"] * len(wanted)


def test_a_hypervisor_that_instances_use(tmp_path: Path) -> None:
    state = with_instance(cluster({"gold": {}}, {"n1": "gold"}), "n1", template="plain", hypervisor="kvm")
    (found,) = check(f"{CLUSTER}enabled_hypervisors: [xen-pvm]\n", tmp_path, state=state)
    assert found.code == "GP745"
    assert found.message == "kvm is not to be enabled, but web1.example.org use it"
    unknown = {name: replace(item, hypervisor=None) for name, item in state.instances.items()}
    assert not check(f"{CLUSTER}enabled_hypervisors: [xen-pvm]\n", tmp_path, state=replace(state, instances=unknown))


@pytest.mark.parametrize(
    ("key", "template", "now", "wanted"),
    [
        ("volume_group_name: ssdvg", "drbd", "xenvg", True),
        ("volume_group_name: ssdvg", "file", "xenvg", False),
        ("volume_group_name: xenvg", "drbd", "xenvg", False),
        ("volume_group_name: ssdvg", "drbd", "", False),
        ("file_storage_dir: /srv/new", "file", "/srv/old", True),
        ("shared_file_storage_dir: /srv/new", "sharedfile", "/srv/old", True),
        ("shared_file_storage_dir: /srv/new", "file", "/srv/old", False),
    ],
)
def test_disks_that_stay_where_they_are(key: str, template: str, now: str, *, wanted: bool, tmp_path: Path) -> None:
    state = with_instance(cluster({"gold": {}}, {"n1": "gold"}), "n1", template=template, hypervisor="kvm")
    state = replace(state, cluster=ClusterObject(own={(key.partition(":")[0],): now}))
    assert codes(check(f"{CLUSTER}{key}\n", tmp_path, state=state)) == ["GP746"] * wanted
