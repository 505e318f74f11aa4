"""The guards that a policy begins with: what no change may cost, until somebody relaxes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from gpolicy.writing.documents import SCHEMA_FILE, file_text, head, modelines
from gpolicy.writing.yaml_text import Node, comment_lines, flow

GUARDS_FILE: Final = "guards.yaml"


@dataclass(frozen=True, slots=True)
class FirstGuard:
    """One guard of a new policy: `measure` is its key with the limit, `comment` what it demands, in words."""

    name: str
    measure: tuple[str, Node]
    comment: str
    group: str | None = None

    @property
    def lines(self) -> list[str]:
        """The entry of the guard in a Guards document."""
        group: dict[str, Node] = {} if self.group is None else {"group": self.group}
        return [f"  - {flow({'name': self.name, **group, self.measure[0]: self.measure[1]})}"]


FIRST_GUARDS: Final = (
    FirstGuard("nothing-newly-violates", ("newly_violating", 0), "No instance may begin to violate the policy."),
    FirstGuard("keep-capacity", ("capacity_loss", {"at_most": "10%"}), "A change may cost a tenth of what fits."),
    FirstGuard("survive-one-node", ("node_failures", 1), "Any one node of a group may fail afterwards."),
)
_ABOUT: Final = (
    "What a change of this policy may cost: a plan that fails a guard is shown, and not applied. These guards are yours"
    " to relax or to remove. `gpolicy explain Guards` lists what a guard can limit."
)


def guards_document(guards: Sequence[FirstGuard], left_out: Iterable[str] = ()) -> str:
    """Return the document of `guards`, those of one measure below its comment; `left_out` says why others are not.

    Without guards it holds comments only.
    """
    lines = [*modelines(SCHEMA_FILE), *comment_lines(_ABOUT)]
    reasons = [line for text in left_out for line in comment_lines(f"- {text}", hanging="  ")]
    lines += ["# Left out, since the cluster does not pass it as it is, or was not asked:", *reasons] if reasons else []
    lines += [*head("Guards"), "guards:"] if guards else []
    for number, guard in enumerate(guards):
        if number == 0 or guards[number - 1].comment != guard.comment:
            lines += comment_lines(guard.comment, indent=2)
        lines += guard.lines
    return file_text(lines)
