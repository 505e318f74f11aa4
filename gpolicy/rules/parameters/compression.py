"""GP1xx: the compression tools of instance moves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import Context, texts
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import REFUSED, Fix, error_rule, warning_rule
from gpolicy.policy.edits import fix, replace_value
from gpolicy.policy.misspelt import is_one_slip
from gpolicy.policy.model import Leaf
from gpolicy.rules.examples import CLUSTER

_SOURCE: Final = "Ganeti 3.0, gnt-cluster(8) and the checks of its modify command"


class CompressionWithoutGzip(Rule):
    info = error_rule("GP105", "compression-without-gzip", REFUSED)(
        summary="compression_tools does not name gzip.",
        rationale="Both ends of an instance move rely on gzip. Ganeti refuses a list without it.",
        source=_SOURCE,
        bad=f"{CLUSTER}compression_tools: [lzop]\n",
        good=f"{CLUSTER}compression_tools: [gzip, lzop]\n",
        fix="Adds gzip to the list.",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, leaf in context.explicit_at(("compression_tools",)):
            if "gzip" not in texts(leaf):
                message = "compression_tools lacks gzip"
                yield self.hit(declared, message, leaf.span, hint="add gzip", fix=self._with_gzip(leaf))

    def _with_gzip(self, leaf: Leaf) -> Fix | None:
        tools = ["gzip", *texts(leaf)]
        if not all(re.fullmatch(r"[a-z][a-z0-9-]*", tool) for tool in tools):
            return None
        edits = replace_value(leaf.document, leaf.pointer, f"[{', '.join(tools)}]")
        return fix("add gzip", edits)


_TOOLS: Final = frozenset(
    {
        *("gzip", "gzip-fast", "gzip-slow", "bzip2", "lbzip2", "lz4", "lzop", "pbzip2", "pigz", "xz", "pixz"),
        *("zstd", "zstdmt", "lzip", "plzip", "pxz", "lzma", "brotli"),
    }
)


class CompressionToolMisspelt(Rule):
    info = warning_rule("GP187", "compression-tool-misspelt")(
        summary="A compression tool has almost the name of a usual one.",
        rationale="Ganeti takes any name, and looks for the program only when an instance moves.",
        source=_SOURCE,
        bad=f"{CLUSTER}compression_tools: [gzip, gzipfast]\n",
        good=f"{CLUSTER}compression_tools: [gzip, gzip-fast, our-own]\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, leaf in context.explicit_at(("compression_tools",)):
            for index, tool in enumerate(texts(leaf)):
                near = [known for known in _TOOLS if len(tool) > 2 and is_one_slip(tool, known)]
                if len(near) == 1 and tool not in _TOOLS:
                    message = f"{tool} is no usual compression tool"
                    yield self.hit(declared, message, leaf.at(index), hint=f"Did you mean `{near[0]}`?")


class CompressionToolName(Rule):
    info = error_rule("GP165", "compression-tool-name", REFUSED)(
        summary="A name in compression_tools is not a plain program name.",
        rationale="Ganeti accepts letters, digits, dashes and underscores: the name of a program in the search path of"
        " both ends, without path or options. `none` means no compression.",
        source="Ganeti 3.0.2, run",
        bad=f"{CLUSTER}compression_tools: [gzip, /usr/bin/zstd]\n",
        good=f"{CLUSTER}compression_tools: [gzip, zstd]\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, leaf in context.explicit_at(("compression_tools",)):
            for index, tool in enumerate(texts(leaf)):
                place = leaf.document.value_span((*leaf.pointer, index))
                if tool == "none":
                    message = "none means no compression: it is not a tool"
                    yield self.hit(declared, message, place, hint="leave it out: it can always be chosen")
                elif not re.fullmatch(r"[A-Za-z0-9_-]+", tool):
                    message = f"{tool!r} cannot be the name of a compression tool"
                    hint = "write the program's name: letters, digits, - and _"
                    yield self.hit(declared, message, place, hint=hint)
