"""Parameters that contradict one another, or that another one switches off."""

from __future__ import annotations

from tests.rules.defects.tables import CLUSTER, GROUP, kvm, lxc, one, sow, xen

DRBD = "diskparams.drbd."
ON = {f"{DRBD}dynamic-resync": True, f"{DRBD}c-plan-ahead": 20}

sow(
    "security",
    CLUSTER,
    (
        "users from a pool that is not there",
        "Ganeti: no user IDs; no instance starts.",
        (kvm(security_model="pool"), {**kvm(security_model="pool"), "uid_pool": []}),
    ),
    (
        "instances of the user root",
        "The model `user` exists to avoid that.",
        (kvm(security_model="user", security_domain="root"),),
    ),
    ("a model `user` without a user", "Ganeti refuses it.", (kvm(security_model="user"),)),
    (
        "a user beside a pool of users",
        "Ganeti: cannot be set under security model none or pool.",
        ({**kvm(security_model="pool", security_domain="kvm"), "uid_pool": ["2000-2099"]},),
    ),
    ("a pool of user IDs with root", "An instance would run as root.", one("uid_pool", ["0-99"], ["0"])),
    (
        "a pool of user IDs of the system",
        "An instance would run as a service of the node.",
        one("uid_pool", ["100-199"], ["1-20"]),
    ),
    ("a pool of user IDs that reaches nobody", "65534 is nobody.", one("uid_pool", ["65500-65599"])),
    (
        "ranges of user IDs that overlap",
        "One of them is not what is meant.",
        one("uid_pool", ["2000-2099", "2050-2150"], ["3000", "2990-3010"]),
    ),
    ("a range of user IDs backwards", "It is empty.", one("uid_pool", ["2099-2000"])),
    (
        "consoles open to the world",
        "VNC on all addresses, and no password is required.",
        (kvm(vnc_bind_address="0.0.0.0"),),  # noqa: S104
    ),
    (
        "SPICE open to the world",
        "All addresses, and no password file.",
        (kvm(spice_bind="0.0.0.0"), kvm(spice_bind="::")),  # noqa: S104
    ),
    (
        "a file with a password where all may write",
        "Anybody can put another one there.",
        (
            kvm(vnc_bind_address="127.0.0.1", vnc_password_file="/tmp/pw"),
            kvm(spice_bind="127.0.0.1", spice_password_file="/tmp/pw"),
        ),
    ),
    (
        "a program where all may write",
        "Root runs what anybody put there.",
        (kvm(kvm_path="/tmp/kvm"), {"ndparams.oob_program": "/tmp/oob"}, {"drbd_usermode_helper": "/tmp/helper"}),
    ),
    (
        "a kernel where all may write",
        "Guests boot what anybody put there.",
        (kvm(kernel_path="/tmp/vmlinuz", root_path="/dev/vda1"), xen("xen-pvm", kernel_path="/var/tmp/vmlinuz")),
    ),
    (
        "an image over plain http",
        "Anybody on the way can change it.",
        one("install_image", "http://images.example.org/a.img")
        + one("zeroing_image", "http://images.example.org/z.img"),
    ),
    (
        "a script of interfaces where all may write",
        "Root runs what anybody put there.",
        (xen("xen-pvm", vif_script="/tmp/vif"), xen("xen-hvm", vif_script="/tmp/vif")),
    ),
    (
        "a container that may administer the system",
        "sys_admin is root on the node.",
        (lxc(drop_capabilities="mac_override,sys_boot,sys_module,sys_time"),),
    ),
    ("a device of the node as a CD-ROM", "The guest reads the node's own disk.", (kvm(cdrom_image_path="/dev/sda"),)),
    (
        "options of KVM that repeat parameters",
        "Which of the two counts is nobody's promise.",
        (kvm(kvm_extra="-m 4096"), kvm(kvm_extra="-smp 4")),
    ),
)
sow(
    "hypervisors",
    CLUSTER,
    ("arguments of a kernel that is not used", "The guest boots from its disk.", (kvm(kernel_args="ro quiet"),)),
    ("an initrd without a kernel", "It goes with kernel_path only.", (kvm(initrd_path="/boot/initrd.img"),)),
    ("a root device without a kernel", "It goes with kernel_path only.", (kvm(root_path="/dev/vda2"),)),
    ("booting from a CD-ROM that is not there", "No guest boots.", (kvm(boot_order="cdrom"),)),
    ("booting from a floppy disk that is not there", "No guest boots.", (kvm(boot_order="floppy"),)),
    (
        "a root device of another type of disks",
        "virtio disks are vda, vdb, ….",
        (kvm(kernel_path="/boot/vmlinuz", root_path="/dev/sda1", disk_type="paravirtual"),),
    ),
    (
        "a root device of another prefix",
        "The guest finds no root.",
        (xen("xen-pvm", kernel_path="/boot/vmlinuz", blockdev_prefix="xvd", root_path="/dev/sda1"),),
    ),
    (
        "certificates asked for without TLS",
        "Nothing is encrypted.",
        (kvm(vnc_bind_address="127.0.0.1", vnc_x509_verify=True, vnc_x509_path="/etc/ganeti/vnc"),),
    ),
    (
        "TLS of a console that is off",
        "There is no VNC without an address.",
        (kvm(vnc_bind_address="", vnc_tls=True, vnc_x509_path="/etc/ganeti/vnc"),),
    ),
    (
        "SPICE's options without SPICE",
        "Ganeti refuses them.",
        (kvm(spice_use_tls=True), kvm(spice_image_compression="lz"), kvm(spice_streaming_video="all")),
    ),
    (
        "SPICE's ciphers without its TLS",
        "Nothing is encrypted.",
        (kvm(spice_bind="127.0.0.1", spice_tls_ciphers="HIGH"),),
    ),
    (
        "SPICE's IP version for another address",
        "It is for interfaces, or for the version of the address.",
        (kvm(spice_bind="127.0.0.1", spice_ip_version=6), kvm(spice_bind="::1", spice_ip_version=4)),
    ),
    (
        "VNC and SPICE at once",
        "Ganeti refuses the two together.",
        (kvm(vnc_bind_address="127.0.0.1", spice_bind="127.0.0.1"),),
    ),
    (
        "shutdowns noticed on a cluster that ignores them",
        "The cluster's own switch is off.",
        ({**kvm(user_shutdown=True), "enabled_user_shutdown": False},),
    ),
    ("a keyboard without a console", "keymap is for VNC.", (kvm(keymap="de", vnc_bind_address=""),)),
    (
        "a capability of migrations misspelt",
        "KVM refuses to migrate.",
        (kvm(migration_caps="xbrzle"), kvm(migration_caps="auto-convrege")),
    ),
    (
        "capabilities of migrations between commas",
        "They are between colons.",
        (kvm(migration_caps="xbzrle,auto-converge"),),
    ),
    (
        "several queues of an interface without virtio",
        "Only virtio has queues.",
        (kvm(nic_type="e1000", virtio_net_queues=4),),
    ),
    (
        "virtio's help for another interface",
        "vhost is for virtio.",
        (kvm(nic_type="e1000", vhost_net=True), kvm(nic_type="rtl8139", vhost_net=True)),
    ),
    (
        "a SCSI controller without SCSI disks",
        "Nothing is connected to it.",
        ({**kvm(scsi_controller_type="virtio-scsi-pci", disk_type="paravirtual")},),
    ),
    (
        "the node's CPU without hardware virtualisation",
        "KVM does not start.",
        (kvm(kvm_flag="disabled", cpu_type="host"),),
    ),
    (
        "native AIO with the host's cache",
        "KVM refuses: native needs cache none.",
        (kvm(disk_aio="native", disk_cache="writeback"), kvm(disk_aio="native", disk_cache="writethrough")),
    ),
    (
        "all instances on one CPU",
        "A mask of one CPU for the whole cluster.",
        (kvm(cpu_mask="0"), xen("xen-pvm", cpu_mask="2")),
    ),
    ("a boot loader that is not named", "No guest boots.", (xen("xen-pvm", use_bootloader=True),)),
    ("a boot loader that is not used", "use_bootloader is off.", (xen("xen-pvm", bootloader_path="/usr/bin/pygrub"),)),
    (
        "a boot device twice",
        "The second is never tried.",
        (xen("xen-hvm", boot_order="cc"), xen("xen-hvm", boot_order="dnd")),
    ),
    (
        "a PCI device in another form",
        "Xen: BUS:DEVICE.FUNCTION.",
        (xen("xen-hvm", pci_pass="01-00.0"), xen("xen-hvm", pci_pass="eth0")),
    ),
    (
        "capabilities with blanks between them",
        "LXC drops none of them.",
        (lxc(drop_capabilities="mac_override, sys_boot, sys_admin"),),
    ),
    (
        "a capability misspelt",
        "It is not dropped.",
        (lxc(drop_capabilities="mac_override,sysboot,sys_module,sys_time,sys_admin"),),
    ),
    (
        "a hypervisor for tests as the default",
        "`fake` starts nothing.",
        one("enabled_hypervisors", ["fake", "kvm"]),
    ),
    (
        "parameters of a hypervisor that is not enabled",
        "No instance ever has them.",
        (
            {"enabled_hypervisors": ["kvm"], "hvparams.xen-pvm.kernel_path": "/boot/vmlinuz"},
            {"enabled_hypervisors": ["xen-pvm"], "hvparams.kvm.disk_cache": "none"},
        ),
    ),
    ("an option of Xen for KVM", "KVM has no such parameter.", (kvm(cpu_weight=256), kvm(xen_cmd="xl"))),
    (
        "an option of KVM for Xen",
        "Xen has no such parameter.",
        (xen("xen-pvm", disk_cache="none"), xen("xen-hvm", vhost_net=True)),
    ),
)
sow(
    "drbd",
    CLUSTER,
    (
        "the resync controller with two targets",
        "With a fill target the delay target is ignored.",
        ({**ON, f"{DRBD}c-fill-target": 1000, f"{DRBD}c-delay-target": 10},),
    ),
    (
        "a fastest resync slower than the slowest",
        "The range is empty.",
        ({**ON, f"{DRBD}c-min-rate": "200M", f"{DRBD}c-max-rate": "100M"},),
    ),
    (
        "no resync at all",
        "A rate of 0.",
        ({f"{DRBD}dynamic-resync": False, f"{DRBD}resync-rate": 0}, {**ON, f"{DRBD}c-max-rate": 0}),
    ),
    (
        "a protocol that loses writes",
        "Protocol A acknowledges what the peer has not got.",
        one(f"{DRBD}protocol", "A", "B"),
    ),
    (
        "an option of drbdsetup without its dashes",
        "drbdsetup refuses it.",
        one(f"{DRBD}net-custom", "max-buffers=8000") + one(f"{DRBD}disk-custom", "on-io-error=detach"),
    ),
    (
        "an option of the disk among those of the net",
        "drbdsetup refuses it there.",
        one(f"{DRBD}net-custom", "--on-io-error=detach") + one(f"{DRBD}disk-custom", "--max-buffers=8000"),
    ),
    (
        "an option that a parameter sets already",
        "Which of the two counts is nobody's promise.",
        (*one(f"{DRBD}net-custom", "--protocol=A"), {**ON, f"{DRBD}disk-custom": "--c-max-rate=10M"}),
    ),
    (
        "a command behind an option of drbdsetup",
        "Nothing but options belongs there.",
        one(f"{DRBD}disk-custom", "--on-io-error=detach; reboot", "--on-io-error=detach | true"),
    ),
    (
        "nothing that keeps writes in order",
        "Barriers, flushes and drain are all off.",
        one(f"{DRBD}disk-barriers", "bfd"),
    ),
    (
        "a device where a volume group belongs",
        "LVM has no such group.",
        one(f"{DRBD}metavg", "/dev/vg0") + one("volume_group_name", "/dev/vg0", "vg0/lv"),
    ),
)
sow(
    "cluster",
    CLUSTER,
    (
        "VLANs of routed interfaces",
        "Only bridges and Open vSwitch have VLANs.",
        ({"nicparams.mode": "routed", "nicparams.link": "100", "nicparams.vlan": "100"},),
    ),
    (
        "interfaces of a switch that no node has",
        "Open vSwitch is off.",
        ({"nicparams.mode": "openvswitch", "nicparams.link": "switch1", "ndparams.ovs": False},),
    ),
    ("an allocator that is not there", "Only hail comes with Ganeti.", one("default_iallocator", "hial", "hali")),
    (
        "a value of an option that takes none",
        "hail fails, and so does each placement.",
        ({"default_iallocator": "", "default_iallocator_params": {"ignore-dynu": ""}},),
    ),
    (
        "an option that hail does not have",
        "hail fails, and so does each placement.",
        ({"default_iallocator": "hail", "default_iallocator_params": {"ignore-dyn": ""}},),
    ),
    (
        "more least than greatest memory by default",
        "Ganeti stores it.",
        ({"beparams.minmem": "4G", "beparams.maxmem": "2G"},),
    ),
    (
        "a directory of files that is emptied",
        "The template is enabled.",
        (
            {"enabled_disk_templates": ["file"], "ipolicy.disk-templates": ["file"], "file_storage_dir": ""},
            {
                "enabled_disk_templates": ["sharedfile"],
                "ipolicy.disk-templates": ["sharedfile"],
                "shared_file_storage_dir": "",
            },
        ),
    ),
    (
        "one directory for local and shared files",
        "Local files would lie on the shared storage.",
        ({"file_storage_dir": "/srv/ganeti/files", "shared_file_storage_dir": "/srv/ganeti/files"},),
    ),
    (
        "the directory of shared files inside that of local ones",
        "Local files would lie on the shared storage.",
        ({"file_storage_dir": "/srv/ganeti/files", "shared_file_storage_dir": "/srv/ganeti/files/shared"},),
    ),
    (
        "a directory of files that belongs to the system",
        "Disks would lie among the system's own files.",
        one("file_storage_dir", "/etc/ganeti", "/", "/usr/lib/disks") + one("shared_file_storage_dir", "/boot"),
    ),
    (
        "a directory of files in Ganeti's own",
        "Disks would lie among Ganeti's own data.",
        one("file_storage_dir", "/var/lib/ganeti"),
    ),
    (
        "a directory of files that is emptied at each start",
        "Disks would be gone.",
        one("file_storage_dir", "/tmp/ganeti", "/run/ganeti"),
    ),
    (
        "a directory of files with .. in it",
        "Ganeti refuses paths that are not normal.",
        one("file_storage_dir", "/srv/../etc", "/srv/ganeti/../../etc"),
    ),
    (
        "a directory of files with a blank at its end",
        "Ganeti does not find it.",
        one("file_storage_dir", "/srv/ganeti/files "),
    ),
    (
        "a template for adopted disks as the default",
        "blockdev makes no disks.",
        ({"enabled_disk_templates": ["blockdev", "plain"], "ipolicy.disk-templates": ["blockdev", "plain"]},),
    ),
    (
        "userspace access without KVM",
        "Ganeti: userspace is for KVM only.",
        (
            {
                "enabled_hypervisors": ["xen-pvm"],
                "enabled_disk_templates": ["rbd"],
                "ipolicy.disk-templates": ["rbd"],
                "diskparams.rbd.access": "userspace",
            },
        ),
    ),
    (
        "a reserved volume of a group that is misspelt",
        "The expression matches no volume.",
        ({"volume_group_name": "xenvg", "reserved_lvs": ["xnevg/root"]},),
    ),
    (
        "a glob where an expression is wanted",
        "`*` repeats the slash: it matches nothing else.",
        ({"volume_group_name": "xenvg", "reserved_lvs": ["xenvg/*"]},),
    ),
    ("every volume reserved", "verify never reports a lost one.", one("reserved_lvs", [".*"], ["xenvg/.*"])),
    (
        "a name of a cluster that no host has",
        "It is the name of the master's address.",
        one("name", "my cluster", "-c.example.org"),
    ),
)
sow(
    "ports",
    CLUSTER,
    ("migrations at the port of ssh", "It is taken.", (kvm(migration_port=22), xen("xen-pvm", migration_port=22))),
    (
        "migrations at a port of Ganeti's daemons",
        "It is taken.",
        (kvm(migration_port=1811), kvm(migration_port=5080), kvm(migration_port=1814)),
    ),
    (
        "migrations at a port of DRBD",
        "Ganeti gives 11000 to 14999 to disks.",
        (kvm(migration_port=11000), kvm(migration_port=11005)),
    ),
    ("ssh at a port of Ganeti's daemons", "It is taken.", one("ndparams.ssh_port", 1811, 5080)),
    ("no port of Gluster", "Port 0.", ({"diskparams.gluster.port": 0},)),
    ("a dotted netmask", "Ganeti wants the length of the prefix.", one("master_netmask", "255.255.255.0", 255)),
    ("a netmask of everything", "/0 would route all to this link.", one("master_netmask", 0)),
    ("a prefix of MAC addresses with four parts", "It is the first half.", one("mac_prefix", "aa:00:17:01", "aa:00")),
)
sow(
    "exclusive storage",
    GROUP,
    (
        "all volumes excluded",
        "Nothing is left for instances.",
        (
            {
                "ndparams.exclusive_storage": True,
                "ipolicy.disk-templates": ["plain"],
                "physical_volumes.exclude": ["*"],
            },
            {"physical_volumes.exclude": ["/dev/*"]},
        ),
    ),
    (
        "volumes excluded by a name without its directory",
        "Names of volumes begin with /dev.",
        ({"physical_volumes.exclude": ["sda*"]}, {"physical_volumes.exclude": ["nvme0n1"]}),
    ),
    (
        "a volume excluded and assigned",
        "It cannot be both.",
        ({"physical_volumes.exclude": ["/dev/sda"], "physical_volumes.volume_groups": {"ssd": ["/dev/sda"]}},),
    ),
    (
        "storage that has no volumes of its own made exclusive",
        "Only plain disks can be.",
        (
            {"ndparams.exclusive_storage": True, "ipolicy.disk-templates": ["rbd"]},
            {"ndparams.exclusive_storage": True, "ipolicy.disk-templates": ["file", "ext"]},
        ),
    ),
)
