"""The options of drbdsetup that disk-custom and net-custom may hold, and what each takes (DRBD 8.3 and 8.4)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

DISK: Final = "disk-custom"
NET: Final = "net-custom"


@dataclass(frozen=True, slots=True)
class DrbdOption:
    """One option: the parameters that may hold it, and its words, or its least and greatest number; any if neither."""

    holders: tuple[str, ...]
    words: frozenset[str] = frozenset()
    numbers: tuple[int, int] | None = None

    def refuses(self, value: str) -> str:
        """Return what the option wants instead of `value`; nothing if it takes it."""
        if self.words:
            return "" if value in self.words else f"one of {', '.join(sorted(self.words))}"
        number = _number(value) if self.numbers is not None else None
        if self.numbers is None or (number is not None and self.numbers[0] <= number <= self.numbers[1]):
            return ""
        return f"a number from {self.numbers[0]} to {self.numbers[1]}"


_NUMBER: Final = re.compile(r"(-?[0-9]{1,12})([skmgSKMG]?)")
_UNITS: Final = {"": 1, "s": 512, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def _number(text: str) -> int | None:
    found = _NUMBER.fullmatch(text)
    return int(found[1]) * _UNITS[found[2].lower()] if found else None


def _words(holder: str, words: str) -> DrbdOption:
    return DrbdOption((holder,), words=frozenset(words.split()))


def _numbers(holder: str, least: int, most: int) -> DrbdOption:
    return DrbdOption((holder,), numbers=(least, most))


_HASHES: Final = _words(
    NET,
    "crc32 crc32c crct10dif md4 md5 rmd160 sha1 sha224 sha256 sha384 sha512 sha3-224 sha3-256 sha3-384 sha3-512 sm3"
    " streebog256 streebog512 wp512 xxhash64 blake2b-160 blake2b-256 blake2b-384 blake2b-512",
)
_SWITCHES: Final = "yes no"
_BUFFER: Final = _numbers(NET, 0, 10 << 20)
_ANY_DISK: Final = DrbdOption((DISK,))

OPTIONS: Final[dict[str, DrbdOption]] = {
    **dict.fromkeys(("size", "max-bio-bvecs", "rs-discard-granularity"), _ANY_DISK),
    **dict.fromkeys(("disk-barrier", "disk-flushes", "disk-drain", "md-flushes"), _words(DISK, _SWITCHES)),
    **dict.fromkeys(("no-disk-barrier", "no-disk-flushes", "no-disk-drain", "no-md-flushes"), _ANY_DISK),
    **dict.fromkeys(("resync-rate", "rate", "c-plan-ahead", "c-fill-target", "c-delay-target"), _ANY_DISK),
    **dict.fromkeys(("c-min-rate", "c-max-rate"), _ANY_DISK),
    "on-io-error": _words(DISK, "pass_on call-local-io-error detach"),
    "fencing": DrbdOption((DISK, NET), frozenset({"dont-care", "resource-only", "resource-and-stonith"})),
    "resync-after": _numbers(DISK, -1, 1 << 20),
    "al-extents": _numbers(DISK, 7, 65534),
    **dict.fromkeys(("al-updates", "discard-zeroes-if-aligned", "disable-write-same"), _words(DISK, _SWITCHES)),
    "disk-timeout": _numbers(DISK, 0, 6000),
    "read-balancing": _words(
        DISK,
        "prefer-local prefer-remote round-robin least-pending when-congested-remote 32K-striping 64K-striping"
        " 128K-striping 256K-striping 512K-striping 1M-striping",
    ),
    "protocol": _words(NET, "A B C"),
    "timeout": _numbers(NET, 1, 600),
    "connect-int": _numbers(NET, 1, 120),
    "ping-int": _numbers(NET, 1, 120),
    "ping-timeout": _numbers(NET, 1, 300),
    "max-epoch-size": _numbers(NET, 1, 20000),
    "max-buffers": _numbers(NET, 32, 131072),
    "unplug-watermark": _numbers(NET, 1, 131072),
    **dict.fromkeys(("sndbuf-size", "rcvbuf-size"), _BUFFER),
    "ko-count": _numbers(NET, 0, 200),
    **dict.fromkeys(("allow-two-primaries", "always-asbp", "tcp-cork", "use-rle"), _words(NET, _SWITCHES)),
    **dict.fromkeys(("no-tcp-cork", "cram-hmac-alg", "shared-secret", "socket-check-timeout"), DrbdOption((NET,))),
    "csums-after-crash-only": _words(NET, _SWITCHES),
    "after-sb-0pri": _words(
        NET,
        "disconnect discard-younger-primary discard-older-primary discard-zero-changes discard-least-changes"
        " discard-local discard-remote",
    ),
    "after-sb-1pri": _words(
        NET, "disconnect consensus violently-as0p discard-secondary call-pri-lost-after-sb call-pri-lost"
    ),
    "after-sb-2pri": _words(NET, "disconnect violently-as0p call-pri-lost-after-sb call-pri-lost"),
    "rr-conflict": _words(NET, "disconnect violently call-pri-lost retry-connect auto-discard"),
    **dict.fromkeys(("data-integrity-alg", "csums-alg", "verify-alg"), _HASHES),
    "on-congestion": _words(NET, "block pull-ahead disconnect"),
    "congestion-fill": _numbers(NET, 0, 10 << 30),
    "congestion-extents": _numbers(NET, 7, 65534),
}
"""By name. Each release knows more, so a rule reports an unknown one only if it looks like one of these."""

FLAGS: Final = frozenset(
    name for name, option in OPTIONS.items() if name.startswith("no-") or option.words == frozenset(_SWITCHES.split())
)
"""Options that also stand without a value."""
