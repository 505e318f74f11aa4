"""docs/reference/ganeti-releases.md names every difference between 3.0 and 3.1 that the tables or the packages hold."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

from gpolicy.ganeti.parameters import PARAMETERS, WORDS_SINCE, WORDS_UNTIL
from tests.ganeti.real_ganeti import RELEASE, TREES

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "reference" / "ganeti-releases.md").read_text(encoding="utf-8")
FOUND: Final[dict[str, list[str | None]]] = json.loads(
    (ROOT / "tests" / "data" / "releases" / "differences.json").read_text(encoding="utf-8")
)
"""What differs between the packages, as scripts/releases found it: in 3.0 and in 3.1, None where it is not."""

ON_THE_PAGE: Final = {
    r"constant HVC_DEFAULTS\.kvm\.vhost_net": "`hvparams.kvm.vhost_net` | `false` by default | `true` by default",
    r"(constant|check) .*(disk_discard|DISCARD).*": "`hvparams.kvm.disk_discard` | `default` by default | `ignore`",
    r"(constant|check) .*(disk_aio|AIO).*": "`hvparams.kvm.disk_aio` | `threads`, `native` | `io_uring` as well",
    r"(constant|check) .*(xen_cmd|XEN_CMD|XEN_COMMANDS).*": "`hvparams.xen-hvm.xen_cmd` | `xm` or `xl` | gone",
    r"(constant VERIFY|opcode OP_CLUSTER_VERIFY).*(hvparam_assessment|ASSESSMENT|skip_checks)": "`gnt-cluster verify`",
    r"option gnt-cluster verify --no-hv-param-assessment": "`--no-hv-param-assessment`",
    r"opcode OP_(CLUSTER|GROUP)_VERIFY_DISKS is_strict|option gnt-cluster verify-disks .*": "`--no-strict`",
    r"opcode OP_INSTANCE_(CREATE|RENAME) (ip|name)_check": "checks of names and addresses of new instances",
    r"option gnt-(backup import|instance add|instance rename) --(no-)?(ip|name)-check": "`--name-check`, `--ip-check`",
    r"option gnt-instance rename --force": "`gnt-instance rename` has no `--force`",
    r"(opcode OP_INSTANCE_SET_PARAMS|option gnt-instance modify) .*hotplug.*": "on unless `--no-hotplug`",
    r"(opcode OP_NETWORK_RENAME|(command|option) gnt-network rename).*": "can be renamed",
    r"resource PUT .*/rename\$": "/2/networks/NAME/rename",
    r"resource field I_FIELDS custom_osparams": "`custom_osparams`",
    r"code hypervisor\.hv_base": "`MemAvailable`",
    r"code hypervisor\.hv_kvm(\..*)?": "## How KVM starts instances",
    r"code hypervisor\.hv_xen": "always `xl`",
    r"code tools\.cfgupgrade": "`cfgupgrade`",
    r"code storage\.drbd": "DRBD disk without a connection",
    r"code server\.rapi": "`--ssl-chain`",
    r"code watcher": "`ganeti-watcher`",
}
"""Differences by their names, and words by which the page names them."""

OF_NO_MATTER: Final = {
    r"constant (CONFIG|VERSION)_(MINOR|REVISION)": "the number of the release",
    r"constant DAEMONS_EXTRA_LOG(BASE|FILES)\.ganeti-metad\..*": "log files",
    r"code (pathutils|runtime|tools\.ensure_dirs)": "owners of log files",
    r"code (rapi\.(client|connector|rlib2)|client\.gnt_.*|cli_opts|rpc_defs|backend|server\.noded|ht)": "what is above",
    r"code cmdlib(\.(cluster\.verify|group|network|instance_.*))?": "jobs that gpolicy does not submit, as above",
    r"code (serializer|http|http\.client|daemon|locking|workerpool|config)": "other modules of Python for the same",
    r"code (impexpd|hypervisor\.hv_chroot|tools\.burnin)": "single instances",
}
"""Differences that touch nothing which gpolicy reads, writes, computes or checks, and why."""


def differences(release: str) -> set[str]:
    """Return the parameters that are not the same in a release and in the one before."""
    moved = [
        (item.path, since)
        for item in PARAMETERS
        for since in (item.since, item.until, *(new[0] for new in (item.new_default, item.new_maximum) if new))
    ]
    words = [(path, since) for (path, _), since in (*WORDS_SINCE.items(), *WORDS_UNTIL.items())]
    return {".".join(path) for path, since in (*moved, *words) if since == release}


@pytest.mark.parametrize(("title", "release"), [("Parameters", "3.1"), ("3.2", "3.2")])
def test_the_page_names_them_and_no_others(title: str, release: str) -> None:
    section = PAGE.partition(f"## {title}\n")[2].partition("## ")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    named = {name.strip(" `") for cell in cells for name in cell.split(",") if "params." in name}
    assert named == differences(release)


def test_every_difference_of_the_packages_is_named_or_of_no_matter() -> None:
    patterns = [*ON_THE_PAGE, *OF_NO_MATTER]
    assert not [name for name in FOUND if not any(re.fullmatch(pattern, name) for pattern in patterns)]
    assert not [pattern for pattern in patterns if not any(re.fullmatch(pattern, name) for name in FOUND)]
    flat = " ".join(PAGE.split())
    assert not [words for words in ON_THE_PAGE.values() if words not in flat]


@pytest.mark.ganeti
@pytest.mark.slow
@pytest.mark.skipif(not TREES, reason="Debian's package ganeti is not installed (no /usr/share/ganeti/3.*)")
def test_the_installed_package_has_its_side_of_each_difference() -> None:
    side = ["3.0", "3.1"].index(RELEASE)
    script = ROOT / "scripts" / "reference" / "inventory.py"
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        ["/usr/bin/python3", str(script)], env=environment, capture_output=True, text=True, check=True
    )
    has = json.loads(done.stdout)
    assert {name: has.get(name) for name in FOUND} == {name: values[side] for name, values in FOUND.items()}
