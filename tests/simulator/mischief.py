"""The disturbances of a run and their times, drawn from the seed of a schedule one after another.

Each is due at the nth point (a wait, a request, an answer, a write) and happens at the first one that it fits.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from random import Random
from typing import Final

# ruff: noqa: S311 (chance is for finding mistakes here, not for secrets)

ANYWHERE: Final = frozenset({"open", "write", "written", "request", "submit", "answer", "wait", "say"})
_ON_THE_WAY: Final = frozenset({"request", "submit", "answer", "wait"})
_OUTSIDE: Final = frozenset({"request", "submit", "answer", "wait", "say"})
_WRITES: Final = frozenset({"open", "write"})

KINDS: Final[dict[str, tuple[int, frozenset[str]]]] = {
    # what happens: how often, and at which points
    "kill": (14, ANYWHERE),
    "torn kill": (4, frozenset({"write"})),
    "power cut": (3, ANYWHERE),
    "interrupt": (7, _ON_THE_WAY),
    "interrupt twice": (5, _ON_THE_WAY),
    "foreign change": (10, _OUTSIDE),
    "foreign twin": (9, _OUTSIDE),
    "foreign touch": (3, _OUTSIDE),
    "bad answers": (22, frozenset({"request", "submit"})),
    "bad submission": (0, frozenset({"submit"})),  # drawn apart: requests for jobs are few among all
    "daemon down": (6, _OUTSIDE),
    "fail over": (3, _OUTSIDE),
    "drain": (4, _OUTSIDE),
    "disk full": (5, _WRITES),
    "disk read-only": (3, _WRITES),
    "disk broken": (3, _WRITES),
    "short writes": (2, _WRITES),
    "folder gone": (2, _OUTSIDE),
    "slow jobs": (9, _OUTSIDE),
    "failing job": (8, _OUTSIDE),
    "half job": (4, _OUTSIDE),
    "job fails late": (4, _OUTSIDE),
    "late view": (3, _OUTSIDE),
    "archive": (5, _OUTSIDE),
    "cancel": (4, _ON_THE_WAY),
    "replaced": (3, _OUTSIDE),
    "renamed": (3, _OUTSIDE),
    "suspend": (3, frozenset({"wait", "say"})),
    "clock jumps": (3, _OUTSIDE),
    "second apply": (4, _ON_THE_WAY),
    "lock lost": (5, _OUTSIDE),
    "torn number": (3, _OUTSIDE),
    "silent submission": (5, _OUTSIDE),
    "bad journal": (4, frozenset({"between"})),
    "foreign failure": (8, _OUTSIDE),
    "other ends": (8, _OUTSIDE),
    "roll-out ends": (10, _ON_THE_WAY),
}
COMMANDS_ONLY: Final = frozenset({"torn number", "silent submission"})
ROLL_OUT_ONLY: Final = frozenset({"foreign failure", "other ends", "roll-out ends"})
APART: Final = (101, 102)
"""The counts of kinds that are drawn separately."""
BLOCKING: Final = frozenset(
    {
        "foreign change", "foreign twin", "foreign touch", "half job", "job fails late", "replaced", "renamed",
        "bad journal", "second apply", "folder gone", "power cut", "failing job", "foreign failure",
    }
)  # fmt: skip
"""After one of these a run may refuse for good. After all others, once it is quiet, it must come to its end."""


@dataclass(slots=True)
class Mischief:
    """One disturbance, from the `at`th point on."""

    number: int
    at: int
    kind: str
    random: Random

    @property
    def places(self) -> frozenset[str]:
        return KINDS[self.kind][1]

    @property
    def anywhere(self) -> bool:
        """Whether it can come to any of several clusters, not only to the one that is spoken to."""
        return not self.kind.startswith("bad ")


def drawn(seed: str, *, routes: AbstractSet[str], roll_out: bool = False) -> list[Mischief]:
    """Return the disturbances of a schedule, in the order of their points. A roll-out has more of them, and later."""
    random = Random(f"mischief {seed}")
    count = random.choice((0, 1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 7))
    kinds = [kind for kind in KINDS if routes != {"rapi"} or kind not in COMMANDS_ONLY]
    kinds = [kind for kind in kinds if roll_out or kind not in ROLL_OUT_ONLY]
    chosen = random.choices(kinds, [KINDS[kind][0] for kind in kinds], k=count)
    reach = random.choice((30, 80, 160, 400)) * (3 if roll_out else 1)
    dues = sorted(random.randint(1, reach) for _ in chosen)
    apart = [random.randint(1, reach) for _ in range(random.choice((0, 0, 0, 1, 1, 2)))]
    return [
        *(
            Mischief(number, at, kind, Random(f"{seed} {number} {kind}"))
            for number, (at, kind) in enumerate(zip(dues, chosen, strict=True), start=1)
        ),
        *(
            Mischief(number, at, "bad submission", Random(f"{seed} {number}"))
            for number, at in zip(APART, apart, strict=False)
        ),
    ]
