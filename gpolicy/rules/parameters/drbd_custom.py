"""GP13x: the free strings that Ganeti hands on to drbdsetup (resource model: disk-custom and net-custom)."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import Related, RuleInfo, Severity
from gpolicy.ganeti.parameter import Path
from gpolicy.policy.misspelt import surely_meant
from gpolicy.policy.model import Declared, Leaf
from gpolicy.rules.examples import CLUSTER

_SOURCE: Final = "Resource model, Disk parameters (disk-custom, net-custom); drbdsetup(8) of DRBD 8.3 and 8.4"
CUSTOM: Final[tuple[Path, ...]] = (("diskparams", "drbd", "disk-custom"), ("diskparams", "drbd", "net-custom"))

_LONGEST: Final = 4096

_OF_GANETI: Final = {
    "disk-barrier": "disk-barriers",
    "no-disk-barrier": "disk-barriers",
    "disk-flushes": "disk-barriers",
    "no-disk-flushes": "disk-barriers",
    "disk-drain": "disk-barriers",
    "no-disk-drain": "disk-barriers",
    "md-flushes": "meta-barriers",
    "no-md-flushes": "meta-barriers",
    "resync-rate": "resync-rate",
    "rate": "resync-rate",
    "c-plan-ahead": "c-plan-ahead",
    "c-fill-target": "c-fill-target",
    "c-delay-target": "c-delay-target",
    "c-min-rate": "c-min-rate",
    "c-max-rate": "c-max-rate",
    "protocol": "protocol",
    **dict.fromkeys(("size", "allow-two-primaries", "cram-hmac-alg", "shared-secret"), ""),
}
"""Options of drbdsetup that Ganeti itself writes, and the parameter that it takes them from (if there is one)."""

_DISK: Final = frozenset(option for option, own in _OF_GANETI.items() if own not in ("", "protocol")) | {
    *("size", "max-bio-bvecs", "on-io-error", "fencing", "resync-after", "al-extents", "al-updates", "disk-timeout"),
    *("discard-zeroes-if-aligned", "disable-write-same", "read-balancing", "rs-discard-granularity"),
}
_NET: Final = frozenset({"protocol"}) | {
    *("timeout", "max-epoch-size", "max-buffers", "unplug-watermark", "connect-int", "ping-int", "ping-timeout"),
    *("sndbuf-size", "rcvbuf-size", "ko-count", "allow-two-primaries", "cram-hmac-alg", "shared-secret"),
    *("after-sb-0pri", "after-sb-1pri", "after-sb-2pri", "always-asbp", "rr-conflict", "data-integrity-alg"),
    *("tcp-cork", "no-tcp-cork", "on-congestion", "congestion-fill", "congestion-extents", "csums-alg", "verify-alg"),
    *("use-rle", "csums-after-crash-only", "socket-check-timeout"),
}


@dataclass(frozen=True, slots=True)
class _Custom:
    """A free string: its words, None where the quotes do not match; and its options, by the names of drbdsetup."""

    declared: Declared
    leaf: Leaf
    words: tuple[str, ...] | None

    @property
    def options(self) -> tuple[str, ...]:
        return tuple(word.lstrip("-").partition("=")[0] for word in self.words or () if word.startswith("--"))


def _strings(context: Context) -> Iterator[_Custom]:
    for declared, leaf in context.explicit_at(*CUSTOM):
        if len(str(leaf.value)) > _LONGEST:
            continue  # no options that anybody wrote
        try:
            words = tuple(shlex.split(str(leaf.value)))
        except ValueError:
            yield _Custom(declared, leaf, None)
        else:
            yield _Custom(declared, leaf, words)


def _custom(text: str, more: str = "") -> str:
    return f"{CLUSTER}diskparams:\n  drbd:\n    {text}\n" + (f"    {more}\n" if more else "")


class CustomForm(Rule):
    info = RuleInfo(
        code="GP134",
        name="drbd-custom-form",
        severity=Severity.WARNING,
        summary="disk-custom or net-custom is not a list of options for drbdsetup.",
        rationale="Ganeti appends the text to the command. drbdsetup takes a word without dashes for an address or a"
        " device, and an open quote breaks the command: no disk can be activated.",
        source=_SOURCE,
        bad=_custom('net-custom: "max-buffers 8000"'),
        good=_custom('net-custom: "--max-buffers=8000 --sndbuf-size 1M"'),
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for custom in _strings(context):
            name = custom.leaf.path[-1]
            if custom.words is None:
                message = f"{name} has an open quote"
                yield self.hit(custom.declared, message, custom.leaf.span, hint="close the quote")
            elif custom.words and not custom.words[0].startswith("-"):
                message = f"{name} starts with {custom.words[0]!r}, which is not an option"
                hint = f"Did you mean `--{custom.words[0]}`?"
                yield self.hit(custom.declared, message, custom.leaf.span, hint=hint)


class CustomContradicts(Rule):
    info = RuleInfo(
        code="GP135",
        name="drbd-custom-contradicts",
        severity=Severity.WARNING,
        summary="disk-custom or net-custom sets an option that Ganeti sets itself.",
        rationale="Ganeti writes the option, mostly from a parameter, and appends the custom text. drbdsetup gets both;"
        " the later one wins, or drbdsetup refuses the command. Plans, reports and `gnt-cluster info` show the other"
        " value.",
        source=_SOURCE,
        bad=_custom('disk-custom: "--c-max-rate=100M"', "c-max-rate: 60M"),
        good=_custom('disk-custom: "--al-extents=1237"', "c-max-rate: 100M"),
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for custom in _strings(context):
            for option in dict.fromkeys(custom.options):
                if option not in _OF_GANETI:
                    continue
                own = _OF_GANETI[option]
                leaf = context.effective(custom.declared, ("diskparams", "drbd", own))
                related = (Related(leaf.span, f"{own} is here"),) if leaf else ()
                message = (
                    f"{custom.leaf.path[-1]} sets --{option}, which Ganeti sets itself{f' from {own}' if own else ''}"
                )
                hint = f"set {own}, and remove --{option}" if own else f"remove --{option}"
                yield self.hit(custom.declared, message, custom.leaf.span, hint=hint, related=related)


class CustomUnknown(Rule):
    info = RuleInfo(
        code="GP156",
        name="drbd-custom-unknown",
        severity=Severity.WARNING,
        summary="disk-custom or net-custom has an option that looks like a misspelt one of drbdsetup.",
        rationale="drbdsetup refuses an unknown option: no disk can be activated. gpolicy does not know the options of"
        " every release of DRBD, and so reports only what is one slip away from an option that it knows.",
        source=_SOURCE,
        bad=_custom('net-custom: "--max-bufers=8000"'),
        good=_custom('net-custom: "--max-buffers=8000"'),
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for custom in _strings(context):
            for option in dict.fromkeys(custom.options):
                near = None if option in _DISK | _NET else surely_meant(option, _DISK | _NET)
                if near is not None:
                    message = f"{custom.leaf.path[-1]} holds --{option}, which drbdsetup does not know"
                    yield self.hit(custom.declared, message, custom.leaf.span, hint=f"Did you mean `--{near}`?")


class CustomSection(Rule):
    info = RuleInfo(
        code="GP136",
        name="drbd-custom-section",
        severity=Severity.WARNING,
        summary="disk-custom has a network option, or net-custom has a disk option.",
        rationale="Ganeti appends each text to its own command. drbdsetup refuses an option that the command does not"
        " have: no disk can be activated.",
        source=_SOURCE,
        bad=_custom('disk-custom: "--max-buffers=8000"'),
        good=_custom('net-custom: "--max-buffers=8000"'),
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for custom in _strings(context):
            here, other = (_DISK, _NET) if custom.leaf.path[-1] == "disk-custom" else (_NET, _DISK)
            right = "net-custom" if here is _DISK else "disk-custom"
            for option in dict.fromkeys(custom.options):
                if option in other and option not in here and option not in _OF_GANETI:
                    message = f"{custom.leaf.path[-1]} holds --{option}, which belongs to {right}"
                    yield self.hit(custom.declared, message, custom.leaf.span, hint=f"move it to {right}")
