"""What tired people write into texts: words for nothing, blanks and commas, paths and names with one wrong letter."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpolicy.findings import Severity
from gpolicy.rules.examples import CLUSTER, GROUP, bounds
from tests.rules.run_rules import check


def serious(text: str, directory: Path) -> list[str]:
    return [item.code for item in check(text, directory) if item.severity is not Severity.INFO]


def own(text: str) -> str:
    return f"{CLUSTER}{text}\n"


def kvm(text: str) -> str:
    return own(f"hvparams:\n  kvm: {{{text}}}")


def nic(text: str) -> str:
    return own(f"nicparams: {{{text}}}")


def disks(template: str, text: str) -> str:
    return own(f"diskparams:\n  {template}: {{{text}}}")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (own("default_iallocator: None"), "GP191"),
        (own("volume_group_name: none"), "GP191"),
        (own('default_iallocator: "hail "'), "GP191"),
        (own('default_iallocator: "hail,"'), "GP191"),
        (own("default_iallocator: hal"), "GP148"),
        (own('default_iallocator: "hail ail"'), "GP148"),
        (own('tags: ["*"]'), "GP191"),
        (kvm("machine_version: default"), "GP191"),
        (kvm('cpu_type: "host "'), "GP191"),
        (kvm('cpu_type: "host host"'), "GP185"),
        (kvm('cpu_mask: "all:"'), "GP191"),
        (kvm("vnc_bind_address: none"), "GP191"),
        (kvm('vnc_bind_address: "127,0,0,1"'), "GP174"),
        (kvm("root_path: /dev/vda1x"), "GP185"),
        (kvm("root_path: /DEV/VDA1"), "GP185"),
        (kvm('kernel_path: "/boot/vmlinuz,"'), "GP191"),
        (kvm('kernel_path: "/boot/a,/boot/b"'), "GP159"),
        (kvm("kernel_path: /bot/vmlinuz"), "GP159"),
        (kvm("kernel_path: /BOOT/vmlinuz"), "GP159"),
        (kvm("kvm_path: /usr/ibn/kvm"), "GP159"),
        (kvm("kvm_path: /usr/bin/kmv"), "GP159"),
        (kvm("mem_path: /"), "GP159"),
        (own("drbd_usermode_helper: /bintrue"), "GP159"),
        (own("drbd_usermode_helper: /bin/treu"), "GP159"),
        (own("file_storage_dir: /srv/gnaeti/files"), "GP159"),
        (own('reserved_lvs: ["xenvg/root xenvg/swap"]'), "GP160"),
        (own('reserved_lvs: ["xenvg/root,"]'), "GP160"),
        (own('uid_pool: ["50005099"]'), "GP118"),
        (own("master_netdev: eht0"), "GP183"),
        (own("master_netdev: bond"), "GP183"),
        (own("master_netdev: ETH0"), "GP183"),
        (nic('mode: bridged, link: "-br0"'), "GP183"),
        (nic("mode: routed, link: 100x"), "GP169"),
        (disks("rbd", 'pool: "*"'), "GP191"),
        (disks("rbd", 'pool: "a,b"'), "GP131"),
        (disks("gluster", "host: 10.0.0.5x"), "GP131"),
        (disks("gluster", "port: 2049"), "GP117"),
        (kvm("migration_port: 22"), "GP117"),
        (kvm("migration_port: 23"), "GP117"),
        (own("hvparams:\n  xen-hvm: {cpu_cap: -1}"), "GP152"),
        (own("ndparams: {ssh_port: 443}"), "GP117"),
        ("gpolicy: v1\nkind: Cluster\nname: C.example.org\n", "GP164"),
        ("gpolicy: v1\nkind: TagRules\nexclusion: [none]\n", "GP191"),
        ("gpolicy: v1\nkind: TagRules\nexclusion: [service/]\n", "GP191"),
        (own('tags: ["site:ham:"]'), "GP191"),
        (disks("rbd", "pool: userspace"), "GP191"),
        (kvm("cpu_type: native"), "GP191"),
        (own("install_image: /srv/a.img\nzeroing_image: /srv/a.img"), "GP159"),
        (kvm("kernel_path: /boot/vmlinuz, initrd_path: /boot/vmlinuz"), "GP159"),
        (own('uid_pool: ["1000-1099"]'), "GP118"),
        (disks("gluster", "host: gluster_1"), "GP131"),
        (
            own("volume_group_name: newvg\nreserved_lvs: [oldvg/root]\ndiskparams:\n  drbd: {metavg: oldvg}"),
            "GP137",
        ),
        (f"{GROUP}nodes: ['n*.example.org', n1.example.org]\n", "GP612"),
        (
            (
                f"{GROUP}nodes: [n1, n2]\n---\ngpolicy: v1\nkind: TagRules\nfailure_domains: [rack]\n---\ngpolicy: v1\n"
                "kind: NodeSet\nname: a\nnodes: [n1]\ntags: ['rack:a']\n---\ngpolicy: v1\nkind: NodeSet\nname: b\n"
                "nodes: [N2]\ntags: ['rack:b']\n"
            ),
            "GP612",
        ),
        (f"{GROUP}hardware: {{memory: 64G, cpus: 16}}\nhv_state:\n  kvm: {{mem_node: 40G}}\n", "GP419"),
        (
            f"{GROUP}ipolicy:\n  minmax:\n    - name: 'small '\n      {bounds('1G 8G', '1 4', '1G 9G')}",
            "GP191",
        ),
        ("gpolicy: v1\nkind: Guards\nguards: [{name: 'few,', max_changes: 3}]\n", "GP191"),
    ],
)
def test_one_slip_is_one_finding(text: str, code: str, tmp_path: Path) -> None:
    assert serious(text, tmp_path) == [code]


@pytest.mark.parametrize(
    "text",
    [
        own('default_iallocator: ""\nvolume_group_name: ""'),
        own("default_iallocator: hail2"),
        own('tags: ["site:ham", "owner-web"]'),
        own('uid_pool: ["50000000"]'),
        own("file_storage_dir: /gnt/files\nshared_file_storage_dir: /lab/shared"),
        own("drbd_usermode_helper: /usr/bin/true"),
        own('reserved_lvs: ["xenvg/(root|swap|home)", "xenvg/snap-[0-9]{1,3}"]'),
        own("master_netdev: enp3s0f0np0"),
        own("master_netdev: brLAN"),
        kvm("kernel_path: /vmlinuz, root_path: /dev/mapper/vg-root"),
        kvm("kernel_path: /srv/kernels/vmlinuz-6.1, root_path: UUID=1"),
        kvm("kvm_path: /usr/libexec/qemu-kvm, cpu_type: 'host,+vmx,-hypervisor'"),
        kvm("vga: none, machine_version: 'pc-q35-7.2,usb=off'"),
        kvm("vnc_bind_address: '::1', vnc_password_file: /etc/ganeti/vnc"),
        nic("mode: routed, link: rt_web"),
        nic("mode: bridged, link: br-lan.100"),
        disks("gluster", "host: 'fe80::', port: 24007"),
        disks("rbd", "pool: .rbd-1"),
    ],
)
def test_texts_that_people_mean(text: str, tmp_path: Path) -> None:
    assert serious(text, tmp_path) == []
