"""Values that Ganeti stores and that are of no use: beside others, on the nodes, or in a directory that others use."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from gpolicy.cluster.state import ClusterObject
from gpolicy.findings import Severity
from gpolicy.ganeti.vocabulary import GANETI_PORTS, INSTANCE_PORTS
from gpolicy.rules.examples import CLUSTER, GROUP, bounds
from gpolicy.rules.parameters.paths import FORBIDDEN
from tests.ganeti.real_ganeti import TREES
from tests.rules.run_rules import check, cluster, with_resources

V31 = 'ganeti_version: "3.1"\n'


def serious(text: str, directory: Path, **more: object) -> list[str]:
    found = check(text, directory, **more)  # type: ignore[arg-type]
    return [item.code for item in found if item.severity is not Severity.INFO]


def kvm(text: str, more: str = "") -> str:
    return f"{CLUSTER}{more}hvparams:\n  kvm: {{{text}}}\n"


def net(text: str) -> str:
    return f'{CLUSTER}diskparams:\n  drbd: {{net-custom: "{text}"}}\n'


def pvm(text: str) -> str:
    return f"{CLUSTER}hvparams:\n  xen-pvm: {{{text}}}\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (kvm('kernel_path: "", initrd_path: /boot/initrd.img'), ["GP176"]),
        (kvm('kernel_path: "", root_path: /dev/vda1'), []),  # Ganeti's own default
        (kvm("kernel_args: ro quiet"), []),  # some kernel is there by default
        (kvm("kernel_path: /boot/k, boot_order: network"), ["GP176"]),
        (kvm('kernel_path: "", boot_order: floppy'), ["GP176"]),
        (kvm("vnc_tls: true"), ["GP176"]),
        (kvm("vnc_bind_address: 127.0.0.1, vnc_x509_path: /etc/ganeti/vnc"), ["GP176"]),
        (kvm("vnc_bind_address: 127.0.0.1, vnc_tls: true, vnc_x509_path: /etc/ganeti/vnc"), []),
        (kvm("virtio_net_queues: 4"), ["GP176"]),
        (kvm("virtio_net_queues: 4, vhost_net: true"), []),
        (kvm("virtio_net_queues: 4", 'ganeti_version: "3.1"\n'), []),  # vhost_net is on by default
        (kvm("vhost_net: true, nic_type: e1000"), ["GP176"]),
        (kvm("scsi_controller_type: megasas, disk_type: paravirtual"), ["GP176"]),
        (kvm("scsi_controller_type: megasas, disk_type: scsi-hd"), []),
        (kvm("kernel_path: /boot/k, root_path: /dev/sda1, disk_type: paravirtual"), ["GP176"]),
        (kvm("kernel_path: /boot/k, root_path: LABEL=root, disk_type: paravirtual"), []),
        (kvm("cpu_type: host, kvm_flag: disabled"), ["GP176", "GP186"]),
        (kvm("security_model: user, security_domain: root"), ["GP176"]),
        (kvm("user_shutdown: true", "enabled_user_shutdown: false\n"), ["GP176"]),
        (pvm("use_bootloader: true"), ["GP176"]),
        (pvm("use_bootloader: true, bootloader_path: /usr/lib/xen/bin/pygrub"), []),
        (pvm("bootloader_path: /usr/lib/xen/bin/pygrub"), ["GP176"]),
        (pvm("use_bootloader: true, bootloader_path: /b, initrd_path: /boot/initrd.img"), []),
        (pvm("root_path: /dev/sda1, blockdev_prefix: xvd"), ["GP176"]),
        (pvm("root_path: /dev/sda1, blockdev_prefix: sd"), []),
        (kvm("disk_aio: native"), ["GP175"]),
        (kvm("spice_use_tls: true"), ["GP175"]),
        (kvm("security_domain: kvm"), ["GP175"]),
        (kvm('vnc_bind_address: "::"'), ["GP177"]),
        (kvm("vnc_bind_address: 10.1.2.3"), ["GP174"]),
        (kvm('kvm_extra: "-vnc 0.0.0.0:1 -smp 4"'), ["GP178", "GP178"]),
        (kvm("kvm_extra: '-append \"a b\"'"), ["GP178", "GP178"]),
        (kvm('kvm_extra: "-no-hpet  -watchdog x"'), ["GP178"]),
        (kvm("kvm_extra: no-hpet"), ["GP178"]),
        (kvm("kvm_extra: '-global \"a b\"'", V31), []),  # 3.1 reads it as a shell does
        (kvm("kvm_extra: '-global \"a b'", V31), ["GP178"]),
        (kvm('kvm_extra: "-no-hpet  -watchdog x"', V31), []),
        (kvm('kvm_extra: "-smp 4"', V31), ["GP178"]),
        (kvm("disk_type: pflash", V31), ["GP139"]),
        (kvm("disk_type: pflash"), []),
        (kvm("disk_type: scsi"), ["GP139"]),
        (kvm("cdrom_disk_type: scsi-hd"), []),
        (kvm("disk_type: scsi-generic", "enabled_disk_templates: [plain]\n"), ["GP186"]),
        (kvm("disk_type: scsi-generic", "enabled_disk_templates: [blockdev]\n"), []),
        (kvm("disk_type: scsi-generic"), []),
        (kvm("vga: nvidia"), ["GP157"]),
        (kvm("machine_version: i440fx"), ["GP157"]),
        (kvm("machine_version: q35-7.2"), ["GP157"]),
        (kvm("machine_version: q35"), []),
        (kvm("cpu_type: host-passthrough"), ["GP157"]),
        (kvm("kvm_flag: disabled"), ["GP186"]),
        (kvm("mem_path: /tmp/memory"), ["GP159"]),
        (kvm("machine_version: pc-i440fx7.2"), ["GP157"]),
        (kvm("vnc_bind_address: vnc.example.org"), ["GP174"]),
        (kvm("vnc_bind_address: bond0.100"), []),
        (f"{CLUSTER}install_image: https://\n", ["GP159"]),
        (f"{CLUSTER}master_netdev: eth0,eth1\n", ["GP183"]),
        (f"{CLUSTER}master_netdev: lo\n", ["GP183"]),
        (f'{CLUSTER}enabled_hypervisors: [kvm]\nnicparams: {{mode: bridged, link: "100"}}\n', ["GP184"]),
        (f"{CLUSTER}diskparams:\n  gluster: {{host: 10.0.0.256}}\n", ["GP131"]),
        (f"{CLUSTER}diskparams:\n  gluster: {{port: 22}}\n", ["GP117"]),
        (f"{CLUSTER}compression_tools: [gzip, lzopp]\n", ["GP187"]),
        (pvm("use_bootloader: true, bootloader_path: /usr/lib/xen-4.17/bin"), ["GP159"]),
        (net("-max-buffers=8000"), ["GP134"]),
        (kvm('soundhw: "hda,ac97"'), []),
        (kvm('soundhw: "hda,blaster"'), ["GP157"]),
        (kvm('usb_devices: "tablet,host:1234:5678"'), []),
        (kvm("usb_devices: tablett"), ["GP157"]),
        (kvm("cpu_type: Skylake"), ["GP157"]),
        (kvm('cpu_type: "Skylake-Server-v4,+vmx"'), []),
        (kvm("cpu_type: SapphireRapids-v9"), []),
        (kvm("machine_version: pc-i440fx-72.0"), ["GP157"]),
        (kvm("machine_version: pc-q35-rhel9.2.0"), []),
        (kvm("machine_version: pc-1.0x"), ["GP157"]),
        (kvm('kvm_extra: "-devcie virtio-rng-pci"'), ["GP178"]),
        (kvm('kvm_extra: "-device virtio-rng-pci -newer-option"'), []),
        (kvm("kernel_path: /boot/k, root_path: dev/vda1"), ["GP185"]),
        (kvm("kernel_path: /boot/k, root_path: /dev/vda1, kernel_args: ro root=/dev/vda2"), ["GP176"]),
        (kvm("kernel_path: /boot/k, root_path: /dev/xvda1, disk_type: paravirtual"), ["GP176"]),
        (kvm("kernel_args: ro init=/bin/sh"), ["GP186"]),
        (kvm("acpi: false"), ["GP186"]),
        (kvm("user_shutdown: false", "enabled_user_shutdown: true\n"), ["GP176"]),
        (kvm("acpi: true", "enabled_user_shutdown: true\n"), ["GP176"]),  # by Ganeti's default of user_shutdown
        (f"{CLUSTER}enabled_hypervisors: [xen-pvm]\nenabled_user_shutdown: true\n", []),
        (pvm("root_path: '', kernel_args: ro"), ["GP176"]),
        (pvm("root_path: '', kernel_args: ro root=/dev/xvda1"), []),
        (pvm("root_path: '', use_bootloader: true, bootloader_path: /usr/lib/xen/bin/pygrub"), []),
        (kvm("disk_type: paravirtual, scsi_controller_type: lsi"), []),
        (kvm("disk_type: paravirtual, scsi_controller_type: virtio-scsi-pci"), ["GP176"]),
        (f"{CLUSTER}master_netmask: 33\n", ["GP152"]),
        (f"{CLUSTER}master_netmask: 64\n", []),
        (f"{CLUSTER}hvparams:\n  xen-pvm: {{cpu_cap: 8}}\n", ["GP152"]),
        (f"{CLUSTER}volume_group_name: vg0\ndiskparams:\n  drbd: {{metavg: xenvg}}\n", ["GP137"]),
        (f"{CLUSTER}volume_group_name: vgdata\ndiskparams:\n  drbd: {{metavg: data}}\n", ["GP137"]),
        (f"{CLUSTER}volume_group_name: vg0\ndiskparams:\n  drbd: {{metavg: ssd}}\n", []),
        (f"{CLUSTER}reserved_lvs: [vg0/backup-*]\n", ["GP160"]),
        (f"{CLUSTER}reserved_lvs: ['*']\n", ["GP109"]),
        (f"{CLUSTER}reserved_lvs: ['vg0/backup-[0-9]*']\n", []),
        (f"{CLUSTER}reserved_lvs: ['vg0/snap\\d*']\n", []),
        (f"{CLUSTER}enabled_disk_templates: [diskless, plain]\n", ["GP302"]),
        (f"{CLUSTER}enabled_disk_templates: [plain]\n---\n{GROUP}diskparams:\n  drbd: {{metavg: xenvg}}\n", ["GP307"]),
        (f"{CLUSTER}enabled_hypervisors: [kvm, xen-pvm]\ndiskparams:\n  rbd: {{access: userspace}}\n", ["GP111"]),
        (f"{GROUP}limits: {{oversubscription: 0.5}}\n", ["GP152"]),
        (pvm("blockdev_prefix: /dev/xvd"), ["GP185"]),
        (f"{CLUSTER}hvparams:\n  xen-hvm: {{boot_order: cdc}}\n", ["GP185"]),
        (f"{CLUSTER}hvparams:\n  xen-hvm: {{boot_order: dc}}\n", []),
        (f"{CLUSTER}hvparams:\n  xen-hvm: {{nic_type: e1000, vif_type: vif}}\n", ["GP176"]),
        (f"{CLUSTER}hvparams:\n  lxc: {{extra_cgroups: /sys/fs/cgroup}}\n", ["GP185"]),
        (kvm("kernel_path: /boot"), ["GP159"]),
        (kvm("kvm_path: /usr/bin/kvm -enable-kvm"), ["GP159"]),
        (kvm("kvm_path: /usr/bin/qemu-img"), ["GP159"]),
        (kvm("kvm_path: /usr/bin/qemu-system-aarch64"), []),
        (kvm("mem_path: /proc/hugepages"), ["GP159"]),
        (kvm("vnc_bind_address: 127.0.0.1, vnc_tls: true, vnc_x509_path: /etc/ganeti"), []),
        (f"{CLUSTER}install_image: /srv/images/\n", ["GP159"]),
        (f"{CLUSTER}zeroing_image: /dev/null\n", ["GP159"]),
        (f"{CLUSTER}drbd_usermode_helper: /bin/false\n", ["GP159"]),
        (f"{CLUSTER}file_storage_dir: /srv/file storage\n", ["GP159"]),
        (f"{GROUP}ndparams: {{oob_program: /usr/bin/ipmitool}}\n", ["GP159"]),
        (f"{GROUP}ndparams: {{oob_program: /usr/local/sbin/ipmi-power}}\n", []),
        (net("--verify-alg=md6"), ["GP158"]),
        (net("--verify-alg sha256 --max-buffers=36k --tcp-cork=no --no-tcp-cork"), []),
        (net("--timeout=60 --ping-int=5"), ["GP158"]),
        (net("--max-buffers=8000; reboot"), ["GP158", "GP158"]),
        (net("--max-buffers --tcp-cork"), ["GP158"]),
        (net("--max-buffers 4000 --max-buffers 8000"), ["GP158"]),
        (net("--ko-count 4 twice"), ["GP158"]),
        (net("--fencing=resource-only"), []),
        (f'{CLUSTER}diskparams:\n  drbd: {{disk-custom: "--resync-after -1 -b 4"}}\n', []),
        (net("--on-io-error=detach"), ["GP136"]),
        (kvm("disk_type: scsi-hd, cdrom_disk_type: scsi-hd", V31), ["GP139"]),
        (kvm("disk_type: scsi-hd, cdrom_disk_type: scsi-cd", V31), []),
        (kvm("disk_type: scsi-hd, cdrom_image_path: /x.iso", V31), ["GP139"]),
        (kvm("disk_type: scsi-hd, cdrom_image_path: /x.iso, cdrom_disk_type: ide", V31), []),
        (kvm("disk_type: ide, cdrom2_image_path: /x.iso", V31), []),
        (kvm('cdrom_image_path: "ftp://iso.example.org/x.iso"', V31), ["GP139", "GP147"]),
        (kvm('cdrom_image_path: "https://iso.example.org/x.iso"', V31), []),
        (f"{CLUSTER}{V31}diskparams:\n  rbd: {{access: userspace, pool: vm-pool}}\n", ["GP139"]),
        (f"{CLUSTER}{V31}diskparams:\n  rbd: {{access: userspace, pool: vm_pool}}\n", []),
        (f"{CLUSTER}{V31}diskparams:\n  rbd: {{access: kernelspace, pool: vm-pool}}\n", []),
        (f'{CLUSTER}{V31}diskparams:\n  gluster: {{access: userspace, host: "fd00::1"}}\n', ["GP139"]),
        (f"{CLUSTER}{V31}diskparams:\n  gluster: {{access: userspace, host: 10.1.2.3}}\n", []),
        (kvm('cpu_mask: "5"'), ["GP179"]),
        (kvm('cpu_mask: "5:6"'), []),  # one for each virtual CPU
        (kvm("migration_caps: xbzrel"), ["GP181"]),
        (kvm('migration_caps: "xbzrle:postcopy-ram"'), []),
        (f'{CLUSTER}hvparams:\n  lxc: {{drop_capabilities: "sysboot,sys_time"}}\n', ["GP181"]),
        (f'{CLUSTER}hvparams:\n  lxc: {{drop_capabilities: "sys_boot, sys_time"}}\n', []),
        (f"{CLUSTER}hvparams:\n  xen-hvm: {{pci_pass: '0000:01:00.0;02:1f.7'}}\n", []),
        (kvm("migration_port: 22"), ["GP117"]),
        (kvm("migration_port: 2222", "ndparams: {ssh_port: 2222}\n"), ["GP117"]),
        (kvm("migration_port: 22", "ndparams: {ssh_port: 2222}\n"), []),
        (kvm("migration_port: 14999"), ["GP117"]),
        (f"{GROUP}ndparams: {{ssh_port: 5080}}\n", ["GP117"]),
        (f'{CLUSTER}uid_pool: ["0-99"]\n', ["GP118"]),
        (f'{CLUSTER}uid_pool: ["65500-65599"]\n', ["GP118"]),
        (f'{CLUSTER}uid_pool: ["2000-2099", "2050-2150"]\n', ["GP118"]),
        (f'{CLUSTER}uid_pool: ["2000-2099", "2100"]\n', []),
        (kvm("security_model: pool"), ["GP119"]),
        (kvm("security_model: pool", 'uid_pool: ["2000"]\n'), ["GP119"]),
        (kvm('kernel_path: "", serial_console: false, serial_speed: 115200'), ["GP176"]),
        (kvm("virtio_net_queues: 4, vhost_net: true, vnet_hdr: false"), ["GP176"]),
        (kvm("cpu_type: 127.0.0.1"), ["GP185"]),
        (kvm("mem_path: /dev/shm"), []),
        (kvm('cpu_mask: "0-1:2-3"', "beparams: {vcpus: 1}\n"), ["GP179"]),
        (kvm('cpu_mask: "0-1:2-3"', "beparams: {vcpus: 2}\n"), []),
        (kvm("migration_port: 010602"), ["GP152"]),
        (pvm("root_path: /dev/xvda1, blockdev_prefix: sd"), []),  # Linux names it xvda all the same
        (f"{CLUSTER}default_iallocator: eth0\n", ["GP148"]),
        (f"{CLUSTER}compression_tools: [gzip, lzpo]\n", ["GP187"]),
        (f"{CLUSTER}compression_tools: [gzip, lzip, our-own]\n", []),
        (f"{CLUSTER}enabled_disk_templates: [drbd]\ndrbd_usermode_helper: bin/true\n", ["GP305"]),
        (f"{CLUSTER}drbd_usermode_helper: bin/true\n", ["GP140"]),
        (f"{CLUSTER}file_storage_dir: srv/ganeti\n", ["GP145"]),
        (f'{CLUSTER}volume_group_name: vg0\nreserved_lvs: ["dom0-.*"]\n', ["GP160"]),
        (f"{CLUSTER}enabled_disk_templates: [drbd]\ncandidate_pool_size: 1\n", ["GP192"]),
        (f"{CLUSTER}diskparams:\n  drbd: {{resync-rate: 100M, c-max-rate: 300M}}\n", ["GP122"]),
        (kvm("security_model: pool", 'uid_pool: ["20000-20002"]\n'), ["GP119"]),
        (kvm("security_model: pool", 'uid_pool: ["20000-20099"]\n'), []),
        (f"{CLUSTER}file_storage_dir: /\n", ["GP145"]),
        (f"{CLUSTER}file_storage_dir: /srv/../usr/lib/x\n", ["GP145", "GP147"]),
        (f"{CLUSTER}file_storage_dir: /etcetera\n", []),
        (f"{CLUSTER}file_storage_dir: '/srv/a '\n", ["GP191"]),
        (f"{CLUSTER}file_storage_dir: /srv/a/b\nshared_file_storage_dir: /srv/a/\n", ["GP146"]),
        (f"{CLUSTER}file_storage_dir: /srv/ab\nshared_file_storage_dir: /srv/a\n", []),
        (f"{CLUSTER}zeroing_image: http://images.example.org/zero.img\n", ["GP147"]),
        (f"{CLUSTER}install_image: /var/tmp/i.img\n", ["GP147"]),
        (f"{GROUP}ndparams: {{oob_program: /tmp/oob}}\n", ["GP147"]),
        (f"{CLUSTER}default_iallocator: /usr/lib/ganeti/iallocators/hail\n", ["GP148"]),
        (f"{CLUSTER}default_iallocator: ours\n", []),
        (f'{CLUSTER}default_iallocator: ""\ndefault_iallocator_params: {{ignore-dynu: ""}}\n', ["GP148"]),
        (f'{CLUSTER}default_iallocator: hail\ndefault_iallocator_params: {{ignore-dynu: ""}}\n', ["GP148"]),
        (f"{CLUSTER}default_iallocator: hail\ndefault_iallocator_params: {{no-capacity-checks: true}}\n", ["GP148"]),
        (f'{CLUSTER}default_iallocator: hail\ndefault_iallocator_params: {{save: ""}}\n', ["GP148"]),
        (f'{CLUSTER}default_iallocator: hail\ndefault_iallocator_params: {{mond: "yes"}}\n', []),
        (f'{CLUSTER}nicparams: {{mode: routed, vlan: ".7"}}\n', ["GP168"]),
        (f'{CLUSTER}nicparams: {{mode: routed, link: "br0"}}\n', ["GP169"]),
        (f"{CLUSTER}nicparams: {{mode: routed, link: main}}\n", []),
        (f"{CLUSTER}volume_group_name: vg0\nreserved_lvs: [vgO/root, vg0/swap]\n", ["GP137"]),
        (f"{CLUSTER}volume_group_name: data\ndisk_state:\n  plain:\n    Data: {{disk_total: 4T}}\n", ["GP137"]),
        (f"{CLUSTER}volume_group_name: vg1\ndiskparams:\n  drbd: {{metavg: vg2}}\n", []),
        (f'{CLUSTER}reserved_lvs: ["vg0/*"]\n', ["GP160"]),
        (f'{CLUSTER}reserved_lvs: ["vg0/roo.*"]\n', []),
        (f"{GROUP}physical_volumes: {{exclude: ['*']}}\n", ["GP424"]),
        (f"{GROUP}physical_volumes: {{exclude: ['*1']}}\n", []),
        (f"{GROUP}physical_volumes: {{volume_groups: {{ssdvg: ['nvme*']}}}}\n", ["GP424"]),
        (f"{GROUP}limits: {{oversubscription: 15}}\n", ["GP152"]),
        (f"{GROUP}limits: {{oversubscription: 2}}\n", []),
        (f"{CLUSTER}enabled_hypervisors: [fake]\n", []),  # a cluster for tests
        (f"{CLUSTER}enabled_hypervisors: [kvm]\nhvparams:\n  lxc: {{num_ttys: 4}}\n", ["GP112"]),
        (f"{CLUSTER}enabled_hypervisors: [kvm]\nhvparams:\n  lxc: {{num_ttys: 6}}\n", []),  # Ganeti's default
        (f'{CLUSTER}enabled_disk_templates: [sharedfile]\nshared_file_storage_dir: ""\n', ["GP311"]),
    ],
)  # fmt: skip
def test_values_that_are_of_no_use(text: str, expected: list[str], tmp_path: Path) -> None:
    assert serious(text, tmp_path) == expected


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
from tests.ganeti import constants, uidpool
from tests.ganeti.storage import filestorage
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
