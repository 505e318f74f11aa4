"""GP191: texts that hold a word for "nothing", or a character more than their writer meant."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import Context, texts
from gpolicy.checking.rule import Explains, Hit, Rule
from gpolicy.findings import Span, warning_rule
from gpolicy.ganeti.parameter import Path, Reach, Type
from gpolicy.ganeti.parameters import PARAMETERS, kvm
from gpolicy.rules.examples import CLUSTER

_NOTHING: Final = frozenset(
    {"none", "null", "nil", "undef", "undefined", "unset", "empty", "n/a", "na", "no", "off", "false", "~", "-", '""'}
    | {"*", "todo", "tbd", "fixme", "changeme", "default", "inherit"}
)
_TEXTS: Final = tuple(
    parameter.path for parameter in PARAMETERS if parameter.type in (Type.STRING, Type.LIST, Type.SET)
)
_WITH_FORM: Final[frozenset[Path]] = frozenset(
    path
    for path in _TEXTS
    if path[-1]
    in (
        *("keymap", "vga", "soundhw", "usb_devices", "migration_caps", "root_path", "blockdev_prefix", "devices"),
        *("drop_capabilities", "mac_prefix", "compression_tools", "vlan", "enabled_disk_templates", "reserved_lvs"),
        *("enabled_hypervisors", "disk-templates"),
    )
) | {
    parameter.path
    for parameter in PARAMETERS
    if parameter.form or (parameter.reach in (Reach.FILE, Reach.PROGRAM) and parameter.path[-1] != "default_iallocator")
}
"""Texts that a rule of their own holds against a form or a list, in which there is no word for nothing."""
_OPEN: Final = frozenset(parameter.path for parameter in PARAMETERS if parameter.reach is Reach.ARGUMENTS) | frozenset(
    path for path in _TEXTS if path[-1] in ("kernel_args", "cpuid", "disk-custom", "net-custom", "reserved_lvs")
)
"""Texts of several words."""
_MARKS: Final = ":/=.-"
"""With what no tag ends on purpose."""
_WITH_COLON: Final = frozenset({kvm("vnc_bind_address"), kvm("spice_bind"), ("diskparams", "gluster", "host")})
"""IPv6 addresses (GP131 and GP174)."""
_WORDS_BESIDE: Final = {
    (*parameter.path[:-1], word): parameter.path[-1]
    for parameter in PARAMETERS
    for word in parameter.choices
    if len(parameter.path) > 1 and word and parameter.type is Type.CHOICE
}
"""The words that parameters of the same table take, by their place: nobody means them in a text."""
_BEHIND: Final = re.compile(r"[\s,;]*")


class TextSlip(Rule):
    info = warning_rule("GP191", "text-slip")(
        summary="A text or a name is a word for nothing, has blanks around it, or ends with a comma or a colon.",
        rationale="Ganeti takes every letter for a part of the text: `none` is then the name of a bridge, a pool or an"
        ' allocator, and "web " is not web. Write "" where nothing is meant, and leave out what is to stay as it is.',
        source="Ganeti 3.0.2, run: it stores any text",
        bad=f"{CLUSTER}default_iallocator: none\n",
        good=f'{CLUSTER}default_iallocator: ""\n',
    )
    explains = Explains(order=1)

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, leaf in context.explicit_at(*_TEXTS):
            is_one = isinstance(leaf.value, str)
            words = (
                [(str(leaf.value), leaf.span)] if is_one else [(text, leaf.at(i)) for i, text in enumerate(texts(leaf))]
            )
            for text, span in words:
                if text.lower() in _NOTHING and leaf.path not in _WITH_FORM:
                    message = f"{leaf.dotted} is {text!r}, which Ganeti takes for a name or a word"
                    yield self.hit(declared, message, span, hint='write "" for nothing, or leave the key out')
                elif (other := _WORDS_BESIDE.get((*leaf.path[:-1], text))) and leaf.path not in _WITH_FORM:
                    message = f"{leaf.dotted} is {text!r}, a word of {other}"
                    yield self.hit(declared, message, span, hint="correct the one that was copied")
                elif leaf.path not in _OPEN:
                    colon = text.endswith(":") and leaf.path not in _WITH_COLON
                    yield from self._ends(
                        declared.label, leaf.dotted, text.removesuffix(":") if colon else text, text, span
                    )
        for tag in context.tags:
            if tag.suffix.rstrip(":").lower() in _NOTHING or tag.text.lower() in _NOTHING:
                message = f"the tag is {tag.text!r}: no tag means nothing"
                yield self.hit(tag.label, message, tag.span, hint="leave it out")
            else:
                bare = tag.text.rstrip(_MARKS)
                meant = bare if ":" in bare and not tag.text.startswith("htools") else tag.text
                if tag.typed and tag.text.endswith(tuple(f"{mark}:" for mark in "/=.-")):
                    meant = f"{bare}:"
                yield from self._ends(tag.label, "the tag", meant, tag.text, tag.span)
        for what, label, name, span in _names(context):
            yield from self._ends(label, f"the name of the {what}", name, name, span)

    def _ends(self, label: str, title: str, meant: str, text: str, span: Span) -> Iterator[Hit]:
        behind = _BEHIND.match(meant[::-1])  # from the end, so that one pass is enough
        core = meant[: len(meant) - (behind.end() if behind else 0)].lstrip()
        if core and core != text:
            message = f"{title} is {text!r}: what stands around {core!r} belongs to it"
            yield self.hit(label, message, span, hint=f"write {core}")


def _names(context: Context) -> Iterator[tuple[str, str, str, Span]]:
    """Yield the names that people choose: what each is of, its label, it itself and its place."""
    for nodes in context.policy.node_sets:
        yield "node set", nodes.label, nodes.name, nodes.document.value_span(("name",))
    for guard in context.policy.guards:
        yield "guard", f"guard/{guard.name.value}", guard.name.value, guard.name.span
    for scenario in context.policy.scenarios:
        yield "test", f"test/{scenario.name.value}", scenario.name.value, scenario.name.span
    for declared, pair in context.each_pair():
        if pair.name:
            yield "spec", declared.label, pair.name, pair.span
