"""The fix of a word: another text in its place, in the quotes that it stands in."""

from __future__ import annotations

from gpolicy.checking.context import Context
from gpolicy.findings import Edit, Fix, Span


def retext(context: Context, span: Span | None, old: str, new: str) -> Fix | None:
    """Return the fix that writes `new` where `old` stands; None where the text at `span` is not just that word.

    For words that need no escapes in YAML; one that stands without quotes keeps to letters that need none.
    """
    file = context.policy.files.get(span.file) if span else None
    if file is None or span is None:
        return None
    written = file.written(span)
    for quote in ('"', "'", ""):
        if written == f"{quote}{old}{quote}" and (quote or _needs_no_quotes(new)):
            return Fix(f"write {new}", (Edit(span, f"{quote}{new}{quote}"),))
    return None


def _needs_no_quotes(word: str) -> bool:
    return all(letter.isalnum() or letter in ":-_./" for letter in word) and word[:1].isalpha() and word[-1:] != ":"
