"""Parameters through which a value reaches root on the nodes: as a program that runs, its arguments, or a file."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from gpolicy.ganeti.parameter import Path


class Reach(StrEnum):
    """What root on a node does with the value."""

    PROGRAM = "root on the nodes runs the program that this names"
    ARGUMENTS = "root on the nodes runs a program with this as arguments"
    FILE = "root on the nodes opens the file or directory that this names"


_REACHES: Final[dict[Path, Reach]] = {
    ("drbd_usermode_helper",): Reach.PROGRAM,
    ("use_external_mip_script",): Reach.PROGRAM,
    ("default_iallocator",): Reach.PROGRAM,
    ("compression_tools",): Reach.PROGRAM,
    ("ndparams", "oob_program"): Reach.PROGRAM,
    ("default_iallocator_params",): Reach.ARGUMENTS,
    ("diskparams", "drbd", "disk-custom"): Reach.ARGUMENTS,
    ("diskparams", "drbd", "net-custom"): Reach.ARGUMENTS,
    ("install_image",): Reach.FILE,
    ("zeroing_image",): Reach.FILE,
    ("file_storage_dir",): Reach.FILE,
    ("shared_file_storage_dir",): Reach.FILE,
}
_HYPERVISOR_REACHES: Final[dict[str, Reach]] = {
    "bootloader_path": Reach.PROGRAM,
    "device_model": Reach.PROGRAM,
    "init_script": Reach.PROGRAM,
    "kvm_path": Reach.PROGRAM,
    "vif_script": Reach.PROGRAM,
    "xen_cmd": Reach.PROGRAM,
    "bootloader_args": Reach.ARGUMENTS,
    "devices": Reach.ARGUMENTS,
    "extra_cgroups": Reach.ARGUMENTS,
    "extra_config": Reach.ARGUMENTS,
    "kvm_extra": Reach.ARGUMENTS,
    "pci_pass": Reach.ARGUMENTS,
    "usb_devices": Reach.ARGUMENTS,
    "cdrom2_image_path": Reach.FILE,
    "cdrom_image_path": Reach.FILE,
    "floppy_image_path": Reach.FILE,
    "initrd_path": Reach.FILE,
    "kernel_path": Reach.FILE,
    "mem_path": Reach.FILE,
    "spice_password_file": Reach.FILE,
    "vnc_password_file": Reach.FILE,
    "vnc_x509_path": Reach.FILE,
}
"""By name, whatever the hypervisor. `root_path` is missing: it names a device inside the instance."""


def reach_of(path: Path) -> Reach | None:
    """Return how the value at `path` reaches root on the nodes; None where it does not."""
    if path[0] == "hvparams" and len(path) == 3:
        return _HYPERVISOR_REACHES.get(path[2])
    return _REACHES.get(path)
