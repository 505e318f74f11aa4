"""When and from which commit of a policy something was made. Only the command line reads the clock and asks git."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

from gpolicy.printable import count

FORM: Final = "%Y-%m-%dT%H:%M:%SZ"
_LENGTH: Final = 20  # characters of a time
_LIVE: Final = ("local:", "ssh://", "rapi://")
_UNITS: Final = ((86_400, "day"), (3_600, "hour"), (60, "minute"))


class Taken(Protocol):
    """A file with a state that was read at some time."""

    @property
    def taken_at(self) -> str | None:
        """When, YYYY-MM-DDThh:mm:ssZ; None if the file does not say."""


Asked = tuple[str, str, str]
"""Who asks for a change and why, as a commit or merge request has it, and its address (may be empty)."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """When a plan or page was made (YYYY-MM-DDThh:mm:ssZ), the git commit of its policy, and who asks for it.

    None for what is not known. `dirty` says whether the policy's files differ from the commit.
    """

    made_at: str | None = None
    commit: str | None = None
    dirty: bool | None = None
    asked: Asked | None = None

    def state_read_at(self, source: str, snapshot: Taken | None) -> str | None:
        """Return when the state was read: now from a cluster; None from a file that does not say."""
        if snapshot is not None:
            return snapshot.taken_at
        return self.made_at if source.startswith(_LIVE) else None

    def words(self, source: str, snapshot: Taken | None) -> list[str]:
        """Return when it was made, the commit of the policy, and the age of the state, as far as known."""
        if self.made_at is None:
            return []
        words = [f"made {self.made_at.removesuffix('Z').replace('T', ' ')} UTC"]
        if self.commit:
            words.append(f"policy at commit {self.commit[:12]}{' with uncommitted changes' if self.dirty else ''}")
        if source and not source.startswith("sim:"):
            words.append(age_words(self.state_read_at(source, snapshot), self.made_at))
        return words


UNKNOWN: Final = Provenance()


def is_time(text: str) -> bool:
    """Return whether a text is a time, YYYY-MM-DDThh:mm:ssZ."""
    try:
        datetime.strptime(text, FORM)  # noqa: DTZ007 (it is UTC)
    except ValueError:
        return False
    return text.isascii() and len(text) == _LENGTH


def age_words(read_at: str | None, made_at: str) -> str:
    """Return how old a state is, both times YYYY-MM-DDThh:mm:ssZ; None if the time is not known."""
    if read_at is None:
        return "age of the state not known"
    age = datetime.strptime(made_at, FORM) - datetime.strptime(read_at, FORM)  # noqa: DTZ007 (both are UTC)
    if age < timedelta(minutes=1):
        return "state read just before" if age >= timedelta(0) else f"state read at {read_at}, in the future"
    seconds = int(age.total_seconds())
    length, word = next((length, word) for length, word in _UNITS if seconds >= length)
    return f"state {count(seconds // length, word)} old"
