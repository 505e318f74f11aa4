"""Values of hypervisor parameters to ask about, and what real Ganetis answered (`tests/data/hypervisors`, by release).

`python -m tests.ganeti.hypervisor_questions` asks again where Ganeti is installed, and writes the answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any, Final

from gpolicy.ganeti.parameters import WORDS_SINCE, known_in
from gpolicy.ganeti.tables import HVPARAMS, SERIAL_SPEEDS
from gpolicy.ganeti.vocabulary import Type

DIRECTORY: Final = Path(__file__).resolve().parents[1] / "data" / "hypervisors"
RELEASES: Final = ("3.0", "3.1")
Values = dict[str, Any]

KNOWN: Final = {parameter.path[1:]: parameter for parameter in HVPARAMS}
_LATER: Final = {word for (_, word), since in WORDS_SINCE.items() if since not in RELEASES}
_LISTED: Final = {word for parameter in KNOWN.values() for word in parameter.choices} - _LATER
WORDS: Final = tuple(
    sorted(
        _LISTED
        | {"x", "Disk", "NONE", "true", "virtio", "unsafe", "directsync", "vmware", "de", "pc-i440fx-2.1", "host,+aes"}
        | {"disk,network", " disk", "disk ", "xbzrle:auto-converge", "hd", "c 1:3 rw", "nobody", "x y", "ac97", "-x"}
        | {"/", "//", "///", "/a", "//a", "///a", "/a/", "/a//b", "/a/./b", "/a/../b", "/..", "/.a", "/...", "/a/..."}
        | {"/a b"}
        | {"a/b", "./a", "~/a", " /a", "/a ", "/a,b:c", "http://h/x", "https://h/x", "ftp://h", "ftps://h/x"}
        | {"HTTP://h/x", "http:/h", "http://", "file:///x", "http://a b", "http://h/../x", "tftp://h/x"}
        | {"a", "c", "cd", "dc", "acdn", "cc", "e", "cdx", "C", "a,c", "a "}
        | {"127.0.0.1", "0.0.0.0", "1.2.3", "1.2.3.4.5", "01.2.3.4", "1.2.3.256", " 1.2.3.4", "::", "::1", "fe80::1%lo"}  # noqa: S104
        | {"localhost", "lo", "10.0.0.0/8", "0.0.0.0:5900", "::ffff:1.2.3.4"}
        | {"0", "3", "0-3", "3-3", "5-2", "1-", "1-2-3", "1,3", "1, 3", "1,", "1,a", "all", "All", "all,1"}
        | {":", "0:", "0:1:all", "0:3-1", "::2", "0x1", "+1", "1_0", "1 - 2", "1-2:5-4", "1,7-6", "-1", "0-3:4,6"}
    )
)  # fmt: skip
NUMBERS: Final = (-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 31, 32, 33, 100, 1023, 65534, 65535, 65536, 2**31, *SERIAL_SPEEDS)

ALL: Final = "all that were asked about"

TOGETHER: Final[dict[str, dict[str, tuple[Any, ...]]]] = {
    "kvm": {
        "boot_order": ("disk", "cdrom", "network"),
        "cdrom_image_path": ("", "/x.iso"),
        "cdrom2_image_path": ("", "/y.iso"),
        "cpu_mask": ("all", "0:1"),
        "disk_aio": ("threads", "native"),
        "disk_cache": ("default", "none", "writeback", "writethrough"),
        "disk_discard": ("ignore", "unmap"),
        "disk_type": ("paravirtual", "ide", "scsi-hd"),
        "floppy_image_path": ("", "/f"),
        "initrd_path": ("", "/i"),
        "kernel_path": ("", "/k"),
        "kvm_flag": ("", "disabled"),
        "migration_mode": ("live", "non-live"),
        "root_path": ("", "/dev/vda1"),
        "security_domain": ("", "nobody"),
        "security_model": ("none", "user", "pool"),
        "serial_console": (True, False),
        "serial_speed": (38400, 5),
        "spice_bind": ("", "127.0.0.1", "::1", "lo"),
        "spice_image_compression": ("", "off"),
        "spice_ip_version": (0, 4, 6),
        "spice_jpeg_wan_compression": ("", "auto"),
        "spice_password_file": ("", "/p"),
        "spice_playback_compression": (True, False),
        "spice_streaming_video": ("", "all"),
        "spice_tls_ciphers": ("", "HIGH"),
        "spice_use_tls": (False, True),
        "spice_use_vdagent": (True, False),
        "spice_zlib_glz_wan_compression": ("", "auto"),
        "usb_mouse": ("", "tablet"),
        "use_chroot": (False, True),
        "vnc_bind_address": ("", "127.0.0.1"),
        "vnc_password_file": ("", "/p"),
        "vnc_tls": (False, True),
        "vnc_x509_path": ("", "/x"),
        "vnc_x509_verify": (False, True),
    },
    "xen-hvm": {
        "boot_order": ("cd", "n"),
        "cdrom_image_path": ("", "/x"),
        "cpu_cap": (0, -1),
        "disk_type": ("paravirtual", "ioemu"),
        "nic_type": ("rtl8139", "paravirtual"),
        "vif_type": ("", "ioemu", "vif"),
        "vnc_bind_address": ("", "127.0.0.1"),
    },
    "xen-pvm": {
        "bootloader_args": ("", "x"),
        "bootloader_path": ("", "/b"),
        "use_bootloader": (False, True),
        "kernel_args": ("", "ro"),
        "root_path": ("", "/dev/xvda1"),
    },
}
"""Values whose pairs are asked for."""


def parameters(release: str) -> list[tuple[str, ...]]:
    """Return each hypervisor with each of its parameters."""
    return [path for path, parameter in KNOWN.items() if known_in(parameter, release)]


def alone(hypervisor: str, name: str) -> tuple[Any, ...]:
    """Return the values of one parameter to ask about, beside Ganeti's defaults of all others."""
    return {Type.BOOL: (True, False), Type.INT: NUMBERS}.get(KNOWN[hypervisor, name].type, WORDS)


def pairs() -> Iterator[tuple[str, Values]]:
    """Give every two values of two parameters to ask about."""
    for hypervisor, values in TOGETHER.items():
        for first, second in combinations(values, 2):
            for one in values[first]:
                for other in values[second]:
                    yield hypervisor, {first: one, second: other}


def ask() -> dict[str, Any]:
    """Return the answers of the installed Ganeti: what it takes of each parameter alone, which pairs it refuses."""
    from tests.ganeti.real_ganeti import RELEASE, real_ganeti

    ganeti = real_ganeti()
    taken: dict[str, Any] = {}
    for hypervisor, name in parameters(RELEASE):
        asked = alone(hypervisor, name)
        some = [value for value in asked if ganeti.takes(hypervisor, {name: value})]
        taken[f"{hypervisor}.{name}"] = ALL if len(some) == len(asked) else some
    refused = [[hypervisor, values] for hypervisor, values in pairs() if not ganeti.takes(hypervisor, values)]
    return {"taken": taken, "refused_pairs": refused}


def recorded(release: str) -> dict[str, Any]:
    """Return the answers of a release that are kept."""
    answers: dict[str, Any] = json.loads((DIRECTORY / f"{release}.json").read_text(encoding="utf-8"))
    return answers


def as_text(answers: dict[str, Any]) -> str:
    """Return answers as JSON, one parameter or pair a line."""
    taken = ",\n".join(f"  {json.dumps(name)}: {json.dumps(values)}" for name, values in answers["taken"].items())
    refused = ",\n".join(f"  {json.dumps(pair)}" for pair in answers["refused_pairs"])
    return f'{{"taken": {{\n{taken}\n}},\n"refused_pairs": [\n{refused}\n]}}\n'


if __name__ == "__main__":
    from tests.ganeti.real_ganeti import RELEASE

    (DIRECTORY / f"{RELEASE}.json").write_text(as_text(ask()), encoding="utf-8")
