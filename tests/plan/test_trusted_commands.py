"""A plan file may have been tampered with: whatever no plan holds is refused, by either route."""

from __future__ import annotations

from typing import Any

import pytest

from gpolicy.cluster.json_input import Record
from gpolicy.errors import InputError
from gpolicy.plan.trusted_commands import check_argv, check_rapi

GOOD_ARGV = [
    ["gnt-cluster", "modify", "--ipolicy-vcpu-ratio=4.0", "--enabled-disk-templates=plain"],
    ["gnt-cluster", "add-tags", "a"],
    ["gnt-cluster", "add-tags", "--", "-a"],
    ["gnt-group", "add", "gold"],
    ["gnt-group", "add", "--alloc-policy=preferred", "--", "-x"],
    ["gnt-group", "modify", "--ipolicy-bounds-specs=default", "a b"],
    ["gnt-group", "rename", "a", "-x"],
    ["gnt-group", "assign-nodes", "--", "-g", "n1"],
    ["gnt-node", "modify", "--node-parameters=ssh_port=22", "n1"],
    ["gnt-node", "remove-tags", "n1", "a", "b"],
]
BAD_ARGV = [
    ["gnt-node", "modify", "--offline=yes", "n1"],
    ["gnt-node", "modify", "--force", "n1"],
    ["gnt-node", "modify", "-D", "yes", "n1"],
    ["gnt-node", "modify", "--node-parameters", "ssh_port=22", "n1"],
    ["gnt-node", "modify", "--node-parameters=a=1", "--yes-do-it=1", "n1"],
    ["gnt-node", "modify", "--disk-parameters=drbd:a=1", "n1"],
    ["gnt-node", "modify", "--node-parameters=a=1", "n1", "n2"],
    ["gnt-group", "assign-nodes", "--force", "g", "n1"],
    ["gnt-group", "modify", "--ipolicy-std-specs=a=1", "g"],
    ["gnt-group", "modify", "--alloc-policy=preferred"],
    ["gnt-group", "rename", "a"],
    ["gnt-group", "rename", "a", "b", "c"],
    ["gnt-group", "remove", "a", "b"],
    ["gnt-group", "add-tags", "g"],
    ["gnt-group", "add-tags", "--from=/etc/shadow", "g", "t"],
    ["gnt-cluster", "modify"],
    ["gnt-cluster", "modify", "--candidate-pool-size=1", "x"],
    ["gnt-cluster", "modify", "--modify-etc-hosts"],
    ["gnt-cluster", "add-tags"],
    ["gnt-cluster", "redist-conf"],
    ["gnt-cluster", "modify", "--candidate-pool-size=\0"],
]


@pytest.mark.parametrize("argv", GOOD_ARGV)
def test_commands_of_plans_are_taken(argv: list[str]) -> None:
    assert check_argv(argv, "plan") == tuple(argv)


@pytest.mark.parametrize("argv", BAD_ARGV)
def test_other_commands_are_refused(argv: list[str]) -> None:
    with pytest.raises(InputError) as raised:
        check_argv(argv, "plan")
    assert "\n" not in raised.value.message


GOOD_RAPI: list[tuple[str, str, Any]] = [
    ("PUT", "/2/modify", {"ipolicy": {"vcpu-ratio": 4.0}, "vg_name": "x"}),
    ("POST", "/2/groups", {"group_name": "gold", "alloc_policy": "preferred"}),
    ("PUT", "/2/groups/gold/modify", {"ndparams": {"ssh_port": 22}}),
    ("PUT", "/2/groups/gold/rename", {"new_name": "x"}),
    ("PUT", "/2/groups/gold/assign-nodes", {"nodes": ["n1"]}),
    ("DELETE", "/2/groups/gold", None),
    ("POST", "/2/nodes/n1.example.org/modify", {"ndparams": {"ssh_port": 22}}),
    ("PUT", "/2/tags?tag=a%3Ab&tag=c", None),
    ("DELETE", "/2/nodes/n1/tags?tag=a", None),
]
BAD_RAPI: list[tuple[str, str, Any]] = [
    ("GET", "/2/info", None),
    ("DELETE", "/2/instances/inst1", None),
    ("PUT", "/2/modify", {"osparams": {}}),
    ("PUT", "/2/modify", {"candidate_pool_size": 3, "force": True}),
    ("PUT", "/2/modify", {}),
    ("PUT", "/2/modify", None),
    ("PUT", "/2/modify", []),
    ("PUT", "/2/modify?force=1", {"candidate_pool_size": 3}),
    ("PUT", "/2/groups/gold/assign-nodes", {"nodes": []}),
    ("PUT", "/2/groups/gold/assign-nodes", {"nodes": [""]}),
    ("PUT", "/2/groups/gold/assign-nodes", {"nodes": ["n1"], "force": True}),
    ("PUT", "/2/groups/../modify", {"candidate_pool_size": 3}),
    ("PUT", "/2/groups/a/../../modify", {"candidate_pool_size": 3}),
    ("PUT", "/2/groups/a%2Fb/modify", {"alloc_policy": "preferred"}),
    ("PUT", "/2/groups/a b/modify HTTP/1.1\r\nX: y", {"alloc_policy": "preferred"}),
    ("PUT", "/2/groups/gold/modify\n", {"alloc_policy": "preferred"}),
    ("DELETE", "/2/groups/gold?force=1", None),
    ("DELETE", "/2/groups/gold", {"x": 1}),
    ("DELETE", "/2/nodes/n1", None),
    ("POST", "/2/nodes/n1/modify", {"offline": True}),
    ("POST", "/2/nodes/n1/modify", {"ndparams": {}, "force": True}),
    ("POST", "/2/groups", {"alloc_policy": "preferred"}),
    ("PUT", "/2/groups/gold/rename", {"new_name": ""}),
    ("PUT", "/2/tags", None),
    ("PUT", "/2/tags?tag=a&dry-run=1", None),
    ("PUT", "/2/tags?tag=a%20b", None),
    ("PUT", "/2/tags?tag=a", {"x": 1}),
]


@pytest.mark.parametrize(("method", "path", "body"), GOOD_RAPI)
def test_requests_of_plans_are_taken(method: str, path: str, body: Any) -> None:
    call = check_rapi(Record("plan", {"method": method, "path": path, "body": body}))
    assert (call.method, call.path, call.body) == (method, path, body)


@pytest.mark.parametrize(("method", "path", "body"), BAD_RAPI)
def test_other_requests_are_refused(method: str, path: str, body: Any) -> None:
    with pytest.raises(InputError) as raised:
        check_rapi(Record("plan", {"method": method, "path": path, "body": body}))
    assert "\n" not in raised.value.message
