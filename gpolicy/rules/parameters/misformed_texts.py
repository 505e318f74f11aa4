"""Texts that must have a form: what rules about them share."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.ganeti.parameter import Path
from gpolicy.policy.model import Declared, Leaf

_LONGEST: Final = 4096


@dataclass(frozen=True, slots=True)
class Form:
    """What a text, or each word of it between separators, looks like; and the same in words."""

    pattern: str
    wanted: str
    between: str = ""


def misformed(context: Context, forms: Mapping[Path, Form]) -> Iterator[tuple[Declared, Leaf, str, str]]:
    """Yield the declared texts that do not have the form of their path, each with a message and a hint."""
    for declared, leaf in context.explicit_at(*forms):
        form, text = forms[leaf.path], str(leaf.value)[:_LONGEST]
        words = [word.strip() for word in text.split(form.between)] if form.between and text else [text]
        is_list = len(words) > 1
        wrong = next((word for word in words if not re.fullmatch(form.pattern, word) or (is_list and not word)), None)
        if wrong is not None:
            verb = "cannot be" if len(words) == 1 else "has"
            yield declared, leaf, f"{leaf.dotted} {verb} {wrong!r}", f"write {form.wanted}"
