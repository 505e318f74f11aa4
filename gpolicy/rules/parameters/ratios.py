"""GP114, GP115 and GP223: how many times over a node may be used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import Context, number
from gpolicy.checking.pairs import comparable
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import Related, RuleInfo, RuleParameter, Severity
from gpolicy.ganeti.parameter import Path
from gpolicy.rules.parameters.values import GROUP, dotted
from gpolicy.rules.specs.overlap import bounds

_SPINDLES: Final[Path] = ("ipolicy", "spindle-ratio")
_USED: Final[dict[Path, str]] = {("ipolicy", "vcpu-ratio"): "CPUs", _SPINDLES: "spindles"}


class RatioBelowOne(Rule):
    """A ratio with which a node is never used once."""

    info = RuleInfo(
        code="GP114",
        name="ratio-below-one",
        severity=Severity.WARNING,
        summary="vcpu-ratio or spindle-ratio is below 1.",
        rationale="It is the number of virtual CPUs, or of instances' spindles, to each of the node's own. Below 1 a"
        " node refuses instances before its own are used once. Ganeti accepts it.",
        source="Resource model, Instance policies; Ganeti 3.0 does not check it",
        bad=f"{GROUP}ipolicy: {{vcpu-ratio: 0.25}}\n",
        good=f"{GROUP}ipolicy: {{vcpu-ratio: 4}}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared, leaf in context.explicit_at(*_USED):
            ignored = leaf.path == _SPINDLES and context.exclusive(declared)
            if number(leaf) < 1 and not ignored:
                what = _USED[leaf.path]
                message = f"{dotted(leaf)} is {number(leaf):g}: a node is full before its {what} are used once"
                hint = f"write 1 to use the {what} once; 4 means four times over"
                yield self.hit(declared, message, leaf.span, hint=hint)


class RatioUnlikely(Rule):
    """A ratio that is no limit any more."""

    info = RuleInfo(
        code="GP115",
        name="ratio-without-limit",
        severity=Severity.INFO,
        summary="vcpu-ratio or spindle-ratio is so high that it limits nothing.",
        rationale="Some switch a limit off that way, since Ganeti has no other; others have typed a digit too many.",
        source="Resource model, Instance policies",
        bad=f"{GROUP}ipolicy: {{vcpu-ratio: 400}}\n",
        good=f"{GROUP}ipolicy: {{vcpu-ratio: 4}}\n",
        parameters=(
            RuleParameter(name="vcpu-ratio", default=64, summary="The greatest vcpu-ratio that is a limit.", least=1),
            RuleParameter(
                name="spindle-ratio", default=1024, summary="The greatest spindle-ratio that is a limit.", least=1
            ),
        ),
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared, leaf in context.explicit_at(*_USED):
            most = context.settings.parameter(self.info, leaf.path[1])
            if number(leaf) > most:
                message = f"{dotted(leaf)} is {number(leaf):g}: that limits nothing"
                yield self.hit(declared, message, leaf.span)


class SpindleUseBeyondRatio(Rule):
    """A spec whose smallest instance the spindle ratio keeps from every node."""

    info = RuleInfo(
        code="GP223",
        name="spindle-use-beyond-ratio",
        severity=Severity.WARNING,
        summary="A spec asks for more spindle-use than spindle-ratio lets a node have.",
        rationale="A node takes instances up to spindle-ratio times its spindle_count, all together. hail and hspace"
        " then refuse even the first one, and call it FailDisk, whatever disk is free.",
        source="Resource model, Instance policies; allocation of Ganeti 3.0",
        bad=f"{GROUP}ndparams: {{spindle_count: 2}}\nipolicy:\n  spindle-ratio: 2\n  minmax:\n    - name: busy\n      "
        + bounds("1G 12G", "1 3", "10G 90G", "6 8"),
        good=f"{GROUP}ndparams: {{spindle_count: 2}}\nipolicy:\n  spindle-ratio: 4\n  minmax:\n    - name: busy\n      "
        + bounds("1G 12G", "1 3", "10G 90G", "6 8"),
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared in context.cluster_and_groups:
            ratio = context.effective(declared, _SPINDLES)
            count = context.effective(declared, ("ndparams", "spindle_count"))
            if ratio is None or count is None or context.exclusive(declared):
                continue
            limit = number(ratio) * number(count)
            for pair in comparable(context.pairs(declared)):
                least = pair.minimum["spindle-use"]
                if least > limit:
                    message = (
                        f"{pair.title} asks for a spindle-use of {least}; a node takes {limit:g}"
                        f" ({number(count):g} spindles, ratio {number(ratio):g})"
                    )
                    related = (
                        Related(ratio.span, "spindle-ratio is here"),
                        Related(count.span, "spindle_count is here"),
                    )
                    hint = "raise spindle-ratio or spindle_count, or lower the bound"
                    yield self.hit(declared, message, pair.at("min", "spindle-use"), hint=hint, related=related)


RATIO_RULES: Final = (RatioBelowOne(), RatioUnlikely())
SPINDLE_RATIO_RULES: Final = (SpindleUseBeyondRatio(),)
