"""Forms of texts that Ganeti checks: as patterns, which schemas use, and in words for people.

What each form takes was seen by giving the hypervisors' own checks of Ganeti 3.0.2 thousands of values.
"""

from __future__ import annotations

from typing import Final

_PART: Final = r"(?!\.{1,2}(?:/|$))[^/]+"  # any name but . and ..
_PATH: Final = rf"//?(?:{_PART}(?:/{_PART})*)?"  # POSIX gives two slashes at the beginning a meaning of their own
_URL: Final = r"(?:https?|ftps?)://.*"
_OCTET: Final = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_CPU: Final = r" *\+?[0-9]+(?:_[0-9]+)* *"  # blanks, a sign and underscores are taken as well
_CPUS: Final = rf"{_CPU}(?:-{_CPU})?(?:,{_CPU}(?:-{_CPU})?)*"


def _whole(pattern: str) -> str:
    return f"^(?:{pattern})$"


def _optional(pattern: str) -> str:
    return f"^(?:{pattern})?$"


PATH: Final = _whole(_PATH)
PATH_OR_NOTHING: Final = _optional(_PATH)
PATH_URL_OR_NOTHING: Final = _optional(f"{_PATH}|{_URL}")
IPV4: Final = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
IPV4_OR_NOTHING: Final = _optional(IPV4)
BOOT_LETTERS: Final = _whole("[acdn]+")
CPUS_OR_NOTHING: Final = _optional(_CPUS)
CPUS_PER_VCPU: Final = _whole(f"(?:all|{_CPUS})?(?::(?:all|{_CPUS})?)*")

PATHS: Final = frozenset({PATH, PATH_OR_NOTHING, PATH_URL_OR_NOTHING})
"""Forms of paths."""

_A_PATH: Final = "a whole path without . and .., double slashes and a slash at its end (/boot/vmlinuz)"
FORMS: Final[dict[str, str]] = {
    PATH: _A_PATH,
    PATH_OR_NOTHING: f'{_A_PATH}, or ""',
    PATH_URL_OR_NOTHING: f'{_A_PATH}, an http or ftp URL, or ""',
    IPV4_OR_NOTHING: 'an IPv4 address, or ""',
    BOOT_LETTERS: "letters of a (floppy), c (disk), d (CD-ROM) and n (network), in order",
    CPUS_OR_NOTHING: "CPUs and ranges of them between commas (0-3,8)",
    CPUS_PER_VCPU: "all, or CPUs and ranges of them between commas (0-3,8); or one of these for each virtual CPU,"
    " between colons (0:1:all)",
}
"""What each form is, in words."""
