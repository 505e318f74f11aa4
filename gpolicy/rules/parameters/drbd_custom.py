"""GP134 to GP136, GP156 and GP158: the free strings that Ganeti hands on to drbdsetup.

The resource model has them as disk-custom and net-custom.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import Related, warning_rule
from gpolicy.ganeti.drbd_options import FLAGS, OPTIONS
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
_ONE_DASH: Final = re.compile("-[a-z][a-z0-9]*-?[a-z]")
_TENTHS: Final = 10


@dataclass(frozen=True, slots=True)
class _Custom:
    """A free string: its words, None where the quotes do not match; and its options, by the names of drbdsetup."""

    declared: Declared
    leaf: Leaf
    words: tuple[str, ...] | None

    @property
    def options(self) -> tuple[str, ...]:
        return tuple(word.lstrip("-").partition("=")[0] for word in self.words or () if word.startswith("--"))

    @property
    def values(self) -> Iterator[tuple[str, str | None]]:
        """The options in order, each with its value, None without one; a word that belongs to none has no option."""
        name = ""
        for word in self.words or ():
            if word.startswith("-") and not word[1:].isdecimal():
                if name:
                    yield name, None
                name, is_one, value = word.lstrip("-").partition("=")
                if is_one:
                    yield name, value
                    name = ""
            else:
                yield name, word
                name = ""
        if name:
            yield name, None


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
    info = warning_rule("GP134", "drbd-custom-form")(
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
            elif single := next((word for word in custom.words if _ONE_DASH.match(word)), ""):
                message = f"{name} has {single!r}: an option of more than one letter begins with two dashes"
                yield self.hit(custom.declared, message, custom.leaf.span, hint=f"Did you mean `-{single}`?")
            elif custom.words and not custom.words[0].startswith("-"):
                message = f"{name} starts with {custom.words[0]!r}, which is not an option"
                yield self.hit(custom.declared, message, custom.leaf.span, hint=f"Did you mean `--{custom.words[0]}`?")


class CustomContradicts(Rule):
    info = warning_rule("GP135", "drbd-custom-contradicts")(
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
    info = warning_rule("GP156", "drbd-custom-unknown")(
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
                near = None if option in OPTIONS else surely_meant(option, OPTIONS)
                if near is not None:
                    message = f"{custom.leaf.path[-1]} holds --{option}, which drbdsetup does not know"
                    yield self.hit(custom.declared, message, custom.leaf.span, hint=f"Did you mean `--{near}`?")


class CustomSection(Rule):
    info = warning_rule("GP136", "drbd-custom-section")(
        summary="disk-custom has a network option, or net-custom has a disk option.",
        rationale="Ganeti appends each text to its own command. drbdsetup refuses an option that the command does not"
        " have: no disk can be activated.",
        source=_SOURCE,
        bad=_custom('disk-custom: "--max-buffers=8000"'),
        good=_custom('net-custom: "--max-buffers=8000"'),
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for custom in _strings(context):
            name = custom.leaf.path[-1]
            for option in dict.fromkeys(custom.options):
                holders = OPTIONS[option].holders if option in OPTIONS and option not in _OF_GANETI else ()
                if holders and name not in holders:
                    message = f"{name} holds --{option}, which belongs to {holders[0]}"
                    yield self.hit(custom.declared, message, custom.leaf.span, hint=f"move it to {holders[0]}")


class CustomValue(Rule):
    info = warning_rule("GP158", "drbd-custom-value")(
        summary="disk-custom or net-custom gives an option a value that drbdsetup refuses, or twice, or has a word that"
        " belongs to no option.",
        rationale="Ganeti stores any text. drbdsetup refuses the whole command: no disk can be activated. Of an option"
        " that stands twice, nobody sees which one counts. A timeout (tenths of a second) must be below ping-int and"
        " connect-int (seconds), or DRBD gives a connection up before it has asked.",
        source=_SOURCE,
        bad=_custom('net-custom: "--max-buffers=800000"'),
        good=_custom('net-custom: "--max-buffers=80k --timeout 60 --verify-alg=sha1"'),
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for custom in _strings(context):
            given: dict[str, str | None] = {}
            starts_with_word = bool(custom.words) and not (custom.words or ("",))[0].startswith("-")  # GP134
            for option, value in custom.values:
                message, hint = _wrong(option, value)
                if option in given and option not in _OF_GANETI:
                    message, hint = f"sets --{option} twice", "leave one of them"
                if message and not (starts_with_word and not option):
                    yield self.hit(custom.declared, f"{custom.leaf.path[-1]} {message}", custom.leaf.span, hint=hint)
                given[option] = value
            late = _too_late(given)
            if late:
                message = f"{custom.leaf.path[-1]} has a timeout of {given['timeout']} tenths of a second, but {late}"
                yield self.hit(custom.declared, message, custom.leaf.span, hint="write a shorter timeout")


def _wrong(option: str, value: str | None) -> tuple[str, str]:
    """Return what is wrong with the value of an option, and what to write; nothing if it is right, or not known."""
    if not option:
        return f"has the word {value!r}, which belongs to no option", "write options only, each with --"
    known = OPTIONS.get(option)
    if known is None or option in _OF_GANETI:
        return "", ""  # GP156 and GP135
    if value is None:
        needs = option not in FLAGS and (known.words or known.numbers)
        return (f"gives --{option} no value", f"write {known.refuses('')}") if needs else ("", "")
    wanted = known.refuses(value)
    return (f"gives --{option} the value {value!r}, which it does not take", f"write {wanted}") if wanted else ("", "")


def _too_late(given: dict[str, str | None]) -> str:
    """Return which interval a timeout is not below; nothing where it is, or the option is not there."""
    timeout = given.get("timeout") or ""
    for name in ("ping-int", "connect-int"):
        interval = given.get(name) or ""
        if timeout.isdecimal() and interval.isdecimal() and int(timeout) >= int(interval) * _TENTHS:
            return f"{name} is {interval} s"
    return ""
