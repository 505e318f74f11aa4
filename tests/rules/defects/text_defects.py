"""Slips in the text of a file."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.rules.defects.seeding import Base, Seed, defect

_KEY_AND_WORD = re.compile(r"^( *)([A-Za-z_-]+): ([^ \[{#\"'][^#\[{]*?) *(#.*)?$")


@defect("text", "a brace or bracket not closed", "The rest of the file is read as part of it, or not at all.")
def _(base: Base) -> Iterator[Seed]:
    for file, index, line in base.lines():
        if re.search(r"[\]}] *(#.*)?$", line):
            yield base.replace_line(file, index, re.sub(r"[\]}]( *(#.*)?)$", r"\1", line))


@defect("text", "no blank behind a colon", "In YAML `cpu-count:4` is one word, no key with a value.")
def _(base: Base) -> Iterator[Seed]:
    for file, index, line in base.lines():
        if re.search(r"[a-z]: ?\S", line) and "name" not in line.split(":")[0]:
            yield base.replace_line(file, index, re.sub(r"([a-z]): ([^\[{])", r"\1:\2", line, count=1))


@defect("text", "a comma forgotten between two parameters", "The second parameter becomes part of the first's value.")
def _(base: Base) -> Iterator[Seed]:
    for file, index, line in base.lines():
        if re.search(r", [a-z-]+: ", line):
            yield base.replace_line(file, index, re.sub(r", ([a-z-]+: )", r" \1", line, count=1))


@defect("text", "a tab in the indentation", "YAML forbids it.")
def _(base: Base) -> Iterator[Seed]:
    for file, index, line in base.lines():
        if line.startswith("  ") and re.match(r" +[a-z_-]+:", line):
            yield base.replace_line(file, index, "\t" + line.lstrip())


@defect("text", "a key written twice", "Two values for one parameter; most readers take the last without a word.")
def _(base: Base) -> Iterator[Seed]:
    for file, index, line in base.lines():
        if _KEY_AND_WORD.match(line):
            yield base.replace_line(file, index, line, line)


@defect("text", "the line between two documents lost", "Two documents run into one.")
def _(base: Base) -> Iterator[Seed]:
    for file, index, line in base.lines():
        if line == "---" and index:
            yield base.replace_line(file, index)


@defect("text", "a value left out", "The language takes an empty value for a mistake, never for a reset.")
def _(base: Base) -> Iterator[Seed]:
    for file, index, line in base.lines():
        if match := _KEY_AND_WORD.match(line):
            yield base.replace_line(file, index, f"{match[1]}{match[2]}:")


@defect("text", "a line indented too far", "A mapping cannot stand inside of a plain value.")
def _(base: Base) -> Iterator[Seed]:
    previous: tuple[str, int, str] | None = None
    for file, index, line in base.lines():
        match = _KEY_AND_WORD.match(line)
        if match and previous == (file, index - 1, match[1]):
            yield base.replace_line(file, index, f"  {line}")
        previous = (file, index, match[1]) if match else None


@defect("text", "a line not indented far enough", "The parameter then stands at the document, which has none such.")
def _(base: Base) -> Iterator[Seed]:
    for file, index, line in base.lines():
        if re.match(r"  (vcpu-ratio|spindle-ratio|disk-templates|std|minmax|drbd|kvm|exclusive_storage):", line):
            yield base.replace_line(file, index, line[2:])


@defect(
    "text", "a list item without its dash", "The item runs into the one before, or the list becomes something else."
)
def _(base: Base) -> Iterator[Seed]:
    for file, index, line in base.lines():
        if re.match(r" +- name: ", line):
            yield base.replace_line(file, index, line.replace("- ", "  ", 1))


@defect("text", "the release without quotes", "3.0 is the number 3, and no release is called that.")
def _(base: Base) -> Iterator[Seed]:
    for file, index, line in base.lines():
        if line.startswith("ganeti_version:"):
            yield base.replace_line(file, index, line.replace('"', ""))


@defect("text", "a marker of an unfinished merge left behind", "Git's own text is no policy.")
def _(base: Base) -> Iterator[Seed]:
    for file, index, line in base.lines():
        if _KEY_AND_WORD.match(line):
            yield base.replace_line(file, index, "<<<<<<< HEAD", line, "=======", line, ">>>>>>> change")


@defect("text", "a blank that is none", "A no-break space, as pages on the web have them, does not end a key in YAML.")
def _(base: Base) -> Iterator[Seed]:
    for file, index, line in base.lines():
        if _KEY_AND_WORD.match(line):
            yield base.replace_line(file, index, line.replace(": ", ":\u00a0", 1))


@defect("text", "a template in typographic quotes", "The quotes become part of the word.")
def _(base: Base) -> Iterator[Seed]:
    for file, index, line in base.lines():
        if "disk" in line and re.search(r"[\[ ](drbd|plain)[\],]", line):
            yield base.replace_line(file, index, re.sub(r"\b(drbd|plain)\b(?=[\],])", "“\\1”", line, count=1))
