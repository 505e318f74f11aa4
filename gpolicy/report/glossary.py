"""Plain definitions of the terms that an answer uses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from gpolicy.analysis.binding import Cause
from gpolicy.report.answer import Answer, Entries, Picture, Section, Table, with_content

_NAMES: Final = {
    "(cluster)": "all groups at once; not the sum of the groups, each of which is counted alone."
    " A tiered run shrinks sizes by what most nodes of all groups lack, so it may end sooner than that of one group."
    " Nodes are chosen by the score of all nodes, so a few more or fewer may fit",
    "hspace": "the same as hspace counts it, which keeps room for the loss of a node otherwise than hail",
    "other sizes": "instances of other sizes than before: more or fewer is neither better nor worse. Compare the rows"
    " of sizes, and what is stranded",
    "pair": "a minimum and a maximum size of ipolicy.minmax, between which an instance must lie; also called a size",
    "old size": "today's size, counted under the policy after the plan",
    "spec": "a pair of a minimum and a maximum size, of which the maximum is counted",
    "standard": "instances of the size that the cluster's std declares",
    "then": "after the plan",
    "tiered": "all sizes in turn, the largest first, each shrunk until it fits",
}
"""Terms that are meant where they are a whole cell or heading."""

CAUSES: Final = {cause.key: cause.sentence for cause in Cause}
"""Terms in a column "bound by": `memory (was disk)`."""

FAILURES: Final = {
    "FailMem": "htools' word for each refusal by memory (no such size is allowed, too little is free, or failovers"
    " reserve it); a cause beside it says which. Ask for another size, or make room",
    "FailDisk": "htools' word for each refusal by disk (no such size or template is allowed, too little is free, or the"
    " spindle-ratio is used up); a cause beside it says which. Ask for another size or template, or make room",
    "FailCPU": "htools' word for each refusal by virtual CPUs (no such number is allowed, or the vcpu-ratio is used"
    " up); a cause beside it says which. Ask for fewer, or make room",
    "FailN1": "the loss of a node could not be absorbed any more. Ask for less, or make room on other nodes",
    "FailTags": "an instance with the same exclusion tag is there. Choose another node, or another tag",
    "FailMig": "migration tags forbid moves between the nodes. Choose another node, or allow them",
    "FailDiskCount": "no size allows the number of disks. Ask for another number, or change ipolicy.minmax",
    "FailSpindles": "too few spindles are free, or no size allows their number. Ask for another number",
    "FailInternal": "an error inside of htools",
}
"""What the reasons of htools stand for, and what to do."""

_BASES: Final = {
    "basis": "what figures rest on: measured, declared or mixed",
    "declared": "figures follow from hv_state, disk_state or the hardware that the policy promises",
    "measured": "figures are as the nodes report them",
    "mixed": "figures are measured where nodes report them, and declared elsewhere",
}

_PHRASES: Final = {
    "absorbed": "each instance of the nodes that are lost finds room on other nodes of its group; one without a mirror"
    " (plain, file) needs its data from a backup",
    "against the policy": "their exclusion tags or the vcpu-ratio do not allow it; the nodes have the room",
    "bound by": "what keeps out the next instance on most nodes of those that may take its size, with htools' word",
    "cluster score": "how unevenly the nodes are used; smaller is better balanced",
    "exclusive storage": "each physical volume of a node belongs to at most one disk",
    "failure domain": "nodes that may fail together, such as those of one rack",
    "fault": "what moves of instances could cure, such as a conflict of tags or a loss that is not absorbed. An"
    " exclusion tag that cannot be satisfied does not count by itself",
    "guards": "what makes a plan unsafe; --allow NAME overrides one that may be overridden",
    "lost allocations": "instances of the smallest size of a size for which there is room before, but not after",
    "N+1 redundancy": "after the loss of any one node its group still has room for the instances of that node, as"
    " hspace counts",
    "policy-violating nodes": "nodes with more virtual CPUs than their CPUs times vcpu-ratio, or with more spindles in"
    " use than their spindle_count times spindle-ratio (exactly as many are allowed). hail and hbal put no more of them"
    " there, and hbal says how many such nodes there are: offline ones, too (the CPUs of one that does not answer count"
    " as 0), but not those that fail N+1",
    "stranded": "what is left of the free resources when nothing more fits",
    "theoretical minimum": "the best score that hbal could reach",
}
"""Terms that are meant wherever they stand in our own words."""

WORDS: Final = {**_NAMES, **CAUSES, **FAILURES, **_BASES, **_PHRASES}
"""All words of reports that have a meaning of their own."""

_PATTERNS: Final = {term: re.compile(rf"\b{re.escape(term.rstrip('s'))}s?\b", re.IGNORECASE) for term in _PHRASES}
_CAUSE: Final = re.compile(r"[\w.-]+")
_FAILURE: Final = re.compile(r"\bFail[A-Z]\w*")


def terms_of(answer: Answer, page: str | None = None) -> dict[str, str]:
    """Return the terms that `answer` uses and their definitions, by name. Those of the answer itself come first.

    `page` is what a form shows of the answer, if that is less than all: then terms that are not there are left out.
    """
    text, tables = "\n".join(_texts(answer)), list(_tables(with_content(answer.sections)))
    cells = {
        cell.removeprefix("· ") for table in tables for row in (table.headings, *table.rows) for cell in map(str, row)
    }
    causes = {word for table in tables for cell in _bound_by(table) for word in _CAUSE.findall(cell)}
    found = ((_NAMES, cells), (CAUSES, causes), (FAILURES, set(_FAILURE.findall(text))))
    used = {term: known[term] for known, words in found for term in known.keys() & words}
    used |= {basis: meaning for basis, meaning in _BASES.items() if f"({basis})" in text}
    used |= {term: meaning for term, meaning in _PHRASES.items() if _PATTERNS[term].search(text)}
    if page is not None:
        shown = {term: _PATTERNS.get(term, re.compile(re.escape(term))) for term in used}
        used = {term: meaning for term, meaning in used.items() if shown[term].search(page)}
    own = dict(answer.terms)
    return own | {term: used[term] for term in sorted(used.keys() - own.keys(), key=lambda term: term.strip("("))}


def _tables(sections: Iterable[Section]) -> Iterator[Table]:
    for section in sections:
        yield from section.tables
        yield from _tables(section.sections)


def _bound_by(table: Table) -> Iterator[str]:
    places = [place for place, heading in enumerate(table.headings) if heading == "bound by"]
    return (str(row[place]) for row in table.rows for place in places)


def _texts(answer: Answer) -> Iterator[str]:
    yield from (answer.first_line, *(text for figure in answer.figures for text in (figure.name, figure.detail)))
    yield from _of_sections(with_content(answer.sections))


def _of_sections(sections: Iterable[Section]) -> Iterator[str]:
    for section in sections:
        is_drawn = all(isinstance(part, Picture) for part in section.parts) and section.parts
        yield from ("" if is_drawn else section.title, section.summary, *section.notes)
        for part in section.parts:
            if isinstance(part, Table):
                yield from (part.title, *part.headings)
            elif isinstance(part, Entries):
                yield part.of
        yield from _of_sections(section.sections)
