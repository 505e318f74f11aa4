"""When and from which commit of a policy something was made. Only the command line reads the clock and asks git."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from gpolicy.printable import count

FORM: Final = "%Y-%m-%dT%H:%M:%SZ"
_LENGTH: Final = 20  # characters of a time
_UNITS: Final = ((86_400, "day"), (3_600, "hour"), (60, "minute"))

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
