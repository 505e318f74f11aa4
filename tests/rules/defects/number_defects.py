"""Numbers of parameters that have lost their unit, have another one's, or a digit too many."""

from __future__ import annotations

from tests.rules.defects.tables import CLUSTER, GROUP, NODES, kvm, lxc, one, sow, xen

DRBD = "diskparams.drbd."
ON = {f"{DRBD}dynamic-resync": True, f"{DRBD}c-plan-ahead": 20}

sow(
    "units",
    CLUSTER,
    (
        "a least resync rate without its unit",
        "4 KiB/s: a resync under load never ends.",
        ({**ON, f"{DRBD}c-min-rate": 4},),
    ),
    (
        "a most resync rate without its unit",
        "100 KiB/s: a disk of 1T takes four months.",
        ({**ON, f"{DRBD}c-min-rate": 1, f"{DRBD}c-max-rate": 100},),
    ),
    (
        "a static resync rate without its unit",
        "60 KiB/s: a disk never resyncs.",
        ({f"{DRBD}dynamic-resync": False, f"{DRBD}resync-rate": 60},),
    ),
    (
        "a resync rate in the next greater unit",
        "100 GiB/s is more than any link has.",
        ({**ON, f"{DRBD}c-max-rate": "100G"}, {f"{DRBD}dynamic-resync": False, f"{DRBD}resync-rate": "60G"}),
    ),
    ("the plan of the resync controller in milliseconds", "The unit is 0.1 s.", ({**ON, f"{DRBD}c-plan-ahead": 2000},)),
    (
        "the delay of the resync controller in milliseconds",
        "The unit is 0.1 s: 100 are 10 s.",
        ({**ON, f"{DRBD}c-delay-target": 100},),
    ),
    (
        "a pause of live migrations in microseconds",
        "The unit is ms: the guest stands still for half a minute.",
        (kvm(migration_downtime=30000),),
    ),
    (
        "a pause of live migrations in seconds",
        "The unit is ms: no busy guest ever gets across.",
        (kvm(migration_downtime=0),),
    ),
    (
        "the bandwidth of migrations in KiB/s",
        "The unit is MiB/s: no limit at all.",
        (kvm(migration_bandwidth=1_000_000),),
    ),
    ("the bandwidth of migrations in GiB/s", "The unit is MiB/s: migrations never end.", (kvm(migration_bandwidth=1),)),
    (
        "the interval of a collector in seconds",
        "The unit is µs: it runs all the time.",
        one("data_collector_interval.diskstats", 5, 60),
    ),
    (
        "the interval of a collector in milliseconds",
        "The unit is µs: it runs 200 times a second.",
        one("data_collector_interval.drbd", 5000),
    ),
    (
        "the interval of a collector in nanoseconds",
        "The unit is µs: it runs once in an hour.",
        one("data_collector_interval.lv", 5_000_000_000),
    ),
    ("the timeout of containers in milliseconds", "The unit is s: eight hours.", (lxc(startup_timeout=30000),)),
    ("no time for containers to start", "Every start fails.", (lxc(startup_timeout=0),)),
    (
        "the default memory of instances without its unit",
        "2 MiB: nothing boots.",
        ({"beparams.minmem": 2, "beparams.maxmem": 2}, {"beparams.minmem": 1, "beparams.maxmem": 4096}),
    ),
    (
        "the default memory of instances in the next greater unit",
        "4T of memory by default.",
        ({"beparams.minmem": "1G", "beparams.maxmem": "4T"},),
    ),
    ("the memory of the node itself without its unit", "4 MiB hold no system.", one("hv_state.kvm.mem_node", 4, 8)),
    ("the memory of the hypervisor in the next greater unit", "1T for itself.", one("hv_state.kvm.mem_hv", "1T")),
    ("the memory of nodes without its unit", "A node with 256 MiB.", one("hv_state.kvm.mem_total", 256, 64)),
    (
        "the size of the volume group without its unit",
        "4 MiB hold no disk.",
        one("disk_state.plain.xenvg.disk_total", 4, 500),
    ),
    (
        "the reserve of the volume group without its unit",
        "50 MiB protect nothing.",
        ({"disk_state.plain.xenvg.disk_total": "4T", "disk_state.plain.xenvg.disk_reserved": 50},),
    ),
)
sow(
    "units",
    GROUP,
    ("the memory of promised nodes without its unit", "A server with 192 MiB.", one("hardware.memory", 192, 64)),
    (
        "the size of promised volumes without its unit",
        "Volumes of 2 MiB.",
        ({"hardware.memory": "128G", "hardware.cpus": 32, "hardware.pv_count": 4, "hardware.pv_size": 2},),
    ),
    (
        "the memory of promised nodes in the next greater unit",
        "A server with 192 TiB.",
        ({"hardware.memory": "192T", "hardware.cpus": 48},),
    ),
    (
        "the resync rate of a group without its unit",
        "60 KiB/s: a disk never resyncs.",
        ({f"{DRBD}dynamic-resync": False, f"{DRBD}resync-rate": 60},),
    ),
    (
        "the size of the volume group of a group in the next smaller unit",
        "4 GiB hold no disk of the sizes.",
        ({"hardware.pv_count": 4, "hardware.pv_size": "1T", "disk_state.plain.xenvg.disk_total": "4M"},),
    ),
)
sow(
    "numbers",
    CLUSTER,
    ("more jobs at once than a master can run", "Each is a process.", one("max_running_jobs", 2000, 100_000)),
    (
        "fewer jobs watched than run",
        "The surplus is polled, and slow.",
        ({"max_running_jobs": 20, "max_tracked_jobs": 5}, {"max_running_jobs": 50, "max_tracked_jobs": 1}),
    ),
    (
        "more master candidates than any cluster has nodes",
        "A digit too many.",
        one("candidate_pool_size", 10_000, 1000),
    ),
    (
        "a relative speed of CPUs in MHz",
        "1.0 is an ordinary node: htools would fill this one alone.",
        one("ndparams.cpu_speed", 2400, 3600),
    ),
    (
        "a number of spindles in the thousands",
        "A node has some dozens of disks.",
        one("ndparams.spindle_count", 40_000),
    ),
    ("memory sold fifteen times over", "The point of a decimal is lost.", one("limits.oversubscription", 15, 25)),
    ("memory sold less than once", "Nodes then take less than they have.", one("limits.oversubscription", 0.15, 0.5)),
    (
        "more stripes than any node has volumes",
        "LVM takes as many as there are.",
        one("diskparams.plain.stripes", 100, 64),
    ),
    ("more DRBD stripes than any node has volumes", "LVM takes as many as there are.", one(f"{DRBD}data-stripes", 100)),
    (
        "a speed of the serial line that no UART has",
        "KVM does not start.",
        (kvm(serial_console=True, serial_speed=3840), kvm(serial_console=True, serial_speed=1152000)),
    ),
    (
        "a share of CPU time for nobody",
        "One percent of one CPU for every instance.",
        (xen("xen-pvm", cpu_cap=1), xen("xen-hvm", cpu_cap=2)),
    ),
    ("hundreds of PCI slots kept", "There are 32.", (kvm(kvm_pci_reservations=120),)),
    ("no PCI slot left for disks and interfaces", "Each needs one of the 32.", (kvm(kvm_pci_reservations=32),)),
    ("hundreds of consoles of a container", "A digit too many.", (lxc(num_ttys=6000),)),
    ("hundreds of sockets of a guest", "A digit too many.", (kvm(cpu_sockets=1000, cpu_cores=4, cpu_threads=1),)),
    (
        "more default CPUs than any size allows",
        "Ganeti refuses each instance that names none.",
        one("beparams.vcpus", 5000),
    ),
    (
        "fill target in bytes",
        "The unit is sectors.",
        ({**ON, f"{DRBD}c-delay-target": 0, f"{DRBD}c-fill-target": 1_048_576_000},),
    ),
)
sow(
    "numbers",
    GROUP,
    (
        "a digit too many in the promised CPUs",
        "No server has so many for its memory.",
        ({"hardware.memory": "64G", "hardware.cpus": 4800},),
    ),
    (
        "a digit too many in the promised volumes",
        "No server has so many disks.",
        ({"hardware.pv_size": "2T", "hardware.pv_count": 1200},),
    ),
    ("a group's share of CPUs with a digit too many", "No CPU serves so many.", one("ipolicy.vcpu-ratio", 40_000)),
    (
        "as many node failures as nodes",
        "Nothing may be placed.",
        (
            {"nodes": ["n[1-3].example.org"], "limits.max_node_failures": 3},
            {"nodes": ["n1.example.org", "n2.example.org"], "limits.max_node_failures": 2},
        ),
    ),
    (
        "less memory declared than the node keeps",
        "Nothing is left for instances.",
        ({"hv_state.kvm.mem_total": "4G", "hv_state.kvm.mem_node": "8G"},),
    ),
    (
        "fewer CPUs declared than the node keeps",
        "Nothing is left for instances.",
        ({"hv_state.kvm.cpu_total": 2, "hv_state.kvm.cpu_node": 4},),
    ),
    (
        "more memory declared than promised",
        "One of the two is wrong.",
        ({"hardware.memory": "128G", "hv_state.kvm.mem_total": "1280G"},),
    ),
    (
        "more CPUs declared than promised",
        "One of the two is wrong.",
        ({"hardware.cpus": 32, "hv_state.kvm.cpu_total": 320},),
    ),
    (
        "more disk declared than promised",
        "One of the two is wrong.",
        ({"hardware.pv_count": 4, "hardware.pv_size": "1T", "disk_state.plain.xenvg.disk_total": "40T"},),
    ),
    (
        "more disk reserved than declared",
        "Nothing is left for disks.",
        ({"disk_state.plain.xenvg.disk_total": "1T", "disk_state.plain.xenvg.disk_reserved": "2T"},),
    ),
    (
        "more overhead than disk",
        "Nothing is left for disks.",
        ({"disk_state.plain.xenvg.disk_total": "1T", "disk_state.plain.xenvg.disk_overhead": "20T"},),
    ),
)
sow(
    "numbers",
    NODES,
    ("a node's memory without its unit", "A node with 96 MiB.", one("hv_state.kvm.mem_total", 96, 192)),
    ("a node's CPU speed in MHz", "1.0 is an ordinary node.", one("ndparams.cpu_speed", 2400)),
    ("a node's SSH port with a digit too many", "Ports end at 65535.", one("ndparams.ssh_port", 222_222)),
    (
        "a node with less memory than it keeps",
        "Nothing is left for instances.",
        ({"hv_state.kvm.mem_total": "2G", "hv_state.kvm.mem_node": "4G"},),
    ),
)
