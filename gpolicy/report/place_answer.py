"""A placement as an answer and as JSON (`schemas/output/place.json`): where the instance goes, and each candidate."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Final

from gpolicy.allocator.cluster_data import AllocPolicy, Disk, Instance
from gpolicy.analysis.binding import UNKNOWN_SPINDLES, Cause
from gpolicy.analysis.place_report import Candidate, GroupTrial, Instead, PlaceReport
from gpolicy.analysis.size_words import pair_title
from gpolicy.json_values import COUNT, NUMBER, TEXTS, Document, Key, Shape
from gpolicy.printable import Tone, count
from gpolicy.report import answer
from gpolicy.report.capacity_json import LIMITS, head

_HARD_TO_READ: Final = 10_000  # MiB: larger numbers of MiB are hard to read
_MOST_BEST: Final = 20
_MOST_ALL: Final = 30  # candidates that are all shown at once
_AFTER_LOSS: Final = {cause.key for cause in (Cause.REDUNDANCY, Cause.NODE_FAILURES, Cause.CPUS_AFTER_FAILURE)}
_UNKNOWN_SPINDLES: Final = (
    (
        UNKNOWN_SPINDLES,
        "the nodes have exclusive storage, so each disk needs a number of spindles: write disk=SIZE:SPINDLES",
    ),
)


def place_answer(report: PlaceReport, *then: str) -> answer.Answer:
    """Return where the instance goes, with every candidate and its reason; `then` are commands that help."""
    what = f"{report.size or report.instance.name} ({_instance_words(report.instance)})"
    goes = f"goes nowhere: {report.reason}"
    if report.ok:
        goes = f"goes to {' / '.join(report.nodes)} in group {report.group}"
    others = [item.words for item in report.instead or ()]
    smaller = any(not words.startswith("without ") for words in others)
    if others:
        goes += f"; it would fit {others[0]}" if others[0].startswith("without ") else f"; {others[0]} would fit"
    if not (report.ok or smaller) and any(UNKNOWN_SPINDLES in (item.detail or "") for item in report.candidates):
        goes += "; each disk needs a number of spindles on exclusive storage: write disk=SIZE:SPINDLES"
    if report.ok and report.objections:
        goes += f", says hail, but Ganeti would refuse it: {report.objections[0]}"
    possible = [item for item in report.candidates if item.ok]
    refused = [item for item in report.candidates if not item.ok]
    several = len({item.group for item in refused}) > 1
    return answer.Answer(
        verb="place",
        title="Where an instance goes on cluster",
        **answer.about(report) | {"unknown": (*report.not_known, *report.unchecked)},
        verdict=f"{answer.supposing(report.what_if)}{what} {goes}",
        tone=Tone.GOOD if report.accepted else Tone.BAD,
        figures=(
            answer.Figure("possible", f"{len(possible):,}", tone=Tone.GOOD if possible else Tone.BAD, about="possible"),
            answer.Figure("refused", f"{len(refused):,}", about="refused"),
            answer.Figure("groups tried", f"{sum(group.tried for group in report.groups):,}"),
        ),
        sections=(
            *_instead(report),
            answer.Section("possible", "Possible", list(_possible(possible, report)), summary=_say_number(possible)),
            answer.Section(
                "refused",
                "Refused",
                list(_refused(refused, several=several, brief=0 if report.ok else 1 if smaller else 2)),
                summary=_say_number(refused),
            ),
        ),
        notes=(
            f"hail: {report.info}",
            *(  # hail's message may name the group once more
                f"group {group.group} was not tried: {group.message.removeprefix(f'Group {group.group}: ')}"
                for group in report.groups
                if not group.tried
            ),
            *report.objections,
            *report.notes,
        ),
        next=then,
        terms=_UNKNOWN_SPINDLES if any(UNKNOWN_SPINDLES in (item.detail or "") for item in refused) else (),
        rows_with="with --all-candidates, or in --format json",
    )


def _say_number(items: Sequence[Candidate]) -> str:
    return count(len(items), "candidate") if items else "no candidate"


def _instead(report: PlaceReport) -> Iterator[answer.Section]:
    """Yield the section of what would fit, if that was looked for, and if any node can be tried."""
    if report.instead is None or not report.candidates:
        return
    rows = [(item.words, answer.Name(" / ".join(item.nodes))) for item in report.instead]
    if rows:
        summary = "each line alone, the rest of the request as it is"
    elif any((item.detail or "").startswith(UNKNOWN_SPINDLES) for item in report.candidates):
        summary = "not known as long as the disks have no spindles: write disk=SIZE:SPINDLES"
    else:
        summary = "no smaller size" if report.instance.ignores_policy else "no size that the policy allows"
    table = answer.Table("", "requests", ("change", "goes to"), rows, brief=5)
    yield answer.Section("instead", "What would fit", [table], summary=summary, never_cut=True)


def _possible(items: Sequence[Candidate], report: PlaceReport) -> Iterator[answer.Table]:
    """Yield a table of the best candidates, and one of the others."""
    dedicated = report.metric == "lost-allocations"
    sizes = f" ({', '.join(map(pair_title, report.sizes))})" if report.sizes else ""
    metric = f"lost allocations{sizes}" if dedicated else answer.Number("score")
    rows = []
    for item in items:
        lost = item.lost_allocations
        shown = item.shown_score if lost is None else ", ".join(map(str, lost))
        rows.append((_hosts(item), answer.Name(item.group), shown, answer.known_rough_size(item.disk_left)))
    headings = ("nodes", "group", metric, answer.Number("disk left"))
    some, most = (len(rows), 10) if len(rows) <= _MOST_ALL else (_MOST_BEST, _MOST_BEST)
    yield answer.Table("Best first; the smaller the better", "candidates", headings, rows[:some], most=most, brief=5)
    others = "All the other candidates, best first"
    yield answer.Table(others, "candidates", headings, rows[some:], weight=answer.Weight.SAME, most=most)


def _refused(items: Sequence[Candidate], *, several: bool, brief: int) -> Iterator[answer.Table]:
    """Yield a table for each reason, the most frequent first, with one row for all candidates with the same lack.

    A short answer has the first `brief` rows of the first.
    """
    reasons: dict[str, list[Candidate]] = {}
    for item in items:
        reasons.setdefault(item.reason or answer.NOTHING, []).append(item)
    for reason, found in sorted(reasons.items(), key=lambda pair: -len(pair[1])):
        htools = sorted({item.htools_reason for item in found if item.htools_reason})
        alike: dict[tuple[str, str], list[answer.Name]] = {}
        for item in found:
            alike.setdefault((_detail(item), item.group), []).append(_hosts(item))
        named = f" [{', '.join(htools)}]" if htools else ""
        title = f"{reason} ({len(found):,}): {found[0].explanation or ''}{named}"
        first = 0 if several else 1
        most_first = sorted(alike.items(), key=lambda pair: -len(pair[1]))
        rows = [(answer.Name(group), detail, tuple(nodes))[first:] for (detail, group), nodes in most_first]
        headings = ("group", "figures", "nodes")[first:]
        yield answer.Table(
            title, "rows", headings, rows, weight=answer.Weight.DETAIL, most=3, last_apart=True, brief=brief
        )
        brief = 0


def _hosts(item: Candidate) -> answer.Name:
    return answer.Name(" / ".join(item.nodes))


def _detail(item: Candidate) -> str:
    """Return the detail of a refusal, without the node's name, which stands beside it."""
    if not item.detail or item.detail == item.explanation:
        return "not worked out for so many candidates" if item.reason in _AFTER_LOSS else answer.NOTHING
    return item.detail.removeprefix(f"{item.nodes[0]}: ") if len(item.nodes) == 1 else item.detail


def _instance_words(instance: Instance) -> str:
    """Return the size of an instance in words."""
    disks = []
    for (amount, spindles), group in itertools.groupby((disk.size, disk.spindles) for disk in instance.disks):
        number = len(list(group))
        on = "" if spindles is None else f" on {count(spindles, 'spindle')}"
        disks.append(f"{'' if number == 1 else f'{number} times '}{_asked(amount)} disk{on}")
    cpus = count(instance.vcpus, "CPU")
    least = "" if instance.maximum_memory is None else f" ({_asked(instance.memory)} guaranteed)"
    return f"{_asked(instance.burst)} memory{least}, {cpus}, {', '.join(disks) or 'no disk'}, {instance.template.value}"


def _asked(amount: int) -> str:
    """Return the requested size exactly, with a rounded one if it is hard to read."""
    exact = answer.size(amount)
    return f"{exact} ≈ {answer.rough_size(amount)}" if exact.endswith("M") and amount >= _HARD_TO_READ else exact


_NODES: Final = Key({**TEXTS, "maxItems": 2}, lambda item: item.nodes)
_METRIC: Final = Shape(Candidate).with_keys(
    lost_allocations=Key(sparse=True), score=Key(NUMBER, sparse=True), disk_left=Key(sparse=True)
)
CANDIDATE: Final = Shape(Candidate, "candidate").with_keys(
    "group nodes ok reason explanation detail htools_reason",
    nodes=_NODES,
    metric=Key(_METRIC, inline=True),
)
_INSTANCE: Final = Shape(Instance).with_keys(
    "name memory vcpus disks disk spindle_use template tags",
    memory=Key(COUNT, "burst"),
    vcpus=COUNT,
    disks=Shape(Disk).with_keys("size spindles", size=COUNT),
    disk=COUNT,
    spindle_use=COUNT,
)
PLACE_DOCUMENT: Final = Document(
    "gpolicy place --format json",
    head("1.4"),
    Shape(PlaceReport).with_keys(
        "instance basis ok group nodes reason info metric instead groups candidates what_if unknown limits notes",
        instance=_INSTANCE,
        nodes=_NODES,
        metric=Shape(PlaceReport).with_keys(
            "name sizes",
            name=Key({"enum": ["score", "lost-allocations"]}, "metric"),
            chosen=Key(_METRIC, inline=True),
        ),
        instead=Shape(Instead).with_keys("words nodes", nodes=_NODES),
        groups=Shape(GroupTrial).with_keys(
            "group alloc_policy tried message", alloc_policy={"enum": [item.value for item in AllocPolicy]}
        ),
        candidates=CANDIDATE,
        unknown="reasons",
        limits=LIMITS,
        notes=Key(TEXTS, lambda report: [*report.objections, *report.unchecked, *report.parameters, *report.notes]),
    ),
)
