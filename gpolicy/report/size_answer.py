"""How many nodes it takes, as an answer and as JSON (`schemas/output/size.json`): what to buy, and what fits then."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from gpolicy.allocator.cluster_data import Instance
from gpolicy.analysis.binding import Binding, Cause
from gpolicy.analysis.size_words import with_bound
from gpolicy.ganeti.amounts import exact_size
from gpolicy.json_values import COUNT, Document, Key, Many, Shape
from gpolicy.printable import count
from gpolicy.report.answer import Answer, Figure, Name, Number, Section, Table, about, digits, supposing
from gpolicy.report.capacity_json import BINDING, LIMITS, POLICY_LIMIT, head
from gpolicy.report.capacity_section import size_words
from gpolicy.report.pictures import memory_section
from gpolicy.what_if.filling import FullReport, MixPart
from gpolicy.what_if.sizing import FewerNodes, NodeOffer, Shortfall, SizeReport, WantedSize

_OUT_OF_TIME: Final = "stopped (--seconds, Ctrl-C) before all cheaper choices were tried and all was counted"


def size_answer(report: SizeReport, *instead: str) -> Answer:
    """Return the cheapest numbers of nodes that are enough; `instead` says what else is."""
    wanted = " and ".join(f"{item.count:,} {with_bound(item.title)}" for item in report.wanted)
    nodes = sum(report.nodes)
    priced = any(kind.cost != 1 for kind in report.kinds)
    money = ("cost", "together") if priced else ()
    rows = []
    for kind, bought in zip(report.kinds, report.nodes, strict=True):
        costs = (f"{kind.cost:,g}", f"{kind.cost * bought:,g}")
        rows.append((Name(kind.like), str(bought), *(costs if priced else ())))
    to_buy = Table("Nodes to buy", "kinds", ("like", *map(Number, ("nodes", *money))), rows, brief=8)
    words = _all_words([item.instance for item in report.wanted])
    wanted_rows = [
        (Name(with_bound(item.title)), size, item.instance.template.value, digits(item.count), digits(more))
        for item, size, more in zip(report.wanted, words, report.more, strict=True)
    ]
    headings = ("size", "instance", "template", Number("wanted"), Number("still fit after"))
    sizes = Table("What is wanted, and how much more fits after", "sizes", headings, wanted_rows, brief=8)
    missing = report.shortage
    fewer = f"with {count(sum(missing.nodes), 'more node')}" if missing and sum(missing.nodes) else "without more nodes"
    short = ""
    if missing:
        of = next(f"{item.count:,} {with_bound(item.title)}" for item in report.wanted if item.title == missing.title)
        short = f"{fewer}, {missing.fits:,} of {of} would fit; {_limit(missing.binding)}"
    other = f"; with {report.instead.other.words} it {_needs(report, report.instead.nodes)}" if report.instead else ""
    return Answer(
        verb="size",
        title="How many nodes it takes on cluster",
        **about(report),
        verdict=f"{supposing(report.what_if)}Group {report.group} {_needs(report, report.nodes)} for {wanted}"
        f"{_absorbed(report.failures)}{other}",
        figures=(
            Figure("more nodes", f"{nodes:,}", about="nodes"),
            *((Figure("cost", f"{report.cost:,g}", about="nodes"),) if priced else ()),
            Figure("trials", f"{report.trials:,}"),
        ),
        sections=(
            Section("nodes", "Nodes to buy", (to_buy,), (short,), never_cut=True),
            Section("instances", "Wanted instances", (sizes,)),
            memory_section(report),
        ),
        notes=("" if report.exhaustive else _OUT_OF_TIME,),
        next=instead,
        terms=(("still fit after", "how many more of this size alone fit beside all the wanted ones"),),
    )


def _needs(report: SizeReport, nodes: Sequence[int]) -> str:
    used = [f"{number} like {kind.like}" for kind, number in zip(report.kinds, nodes, strict=True) if number]
    return f"needs {count(sum(nodes), 'more node')} ({', '.join(used)})" if used else "needs no more nodes"


def _absorbed(failures: int) -> str:
    """Return which failures of nodes the answer leaves room for; empty where it is asked for none."""
    one, several = ", with N+1 redundancy", f", and any {failures} nodes may fail at once"
    return "" if not failures else one if failures == 1 else several


def _limit(binding: Binding) -> str:
    said = binding.detail if binding.cause is Cause.BROKEN else ""
    return f"the limit is {binding.cause.key}: {said or binding.cause.sentence}"


def _all_words(instances: Sequence[Instance]) -> list[str]:
    """Return each size in words, with what tells it from others where these words are the same."""
    plain = [size_words(item.burst, item.vcpus, sum(disk.size for disk in item.disks)) for item in instances]
    alike = Counter(zip(plain, (item.template for item in instances), strict=True))
    return [
        f"{words} ({_details(item)})" if alike[words, item.template] > 1 else words
        for words, item in zip(plain, instances, strict=True)
    ]


def _details(instance: Instance) -> str:
    disks = " + ".join(exact_size(disk.size) for disk in instance.disks) or "no disk"
    spindles = instance.total_spindles
    on = f" on {count(spindles, 'spindle')}" if spindles else ""
    return f"{disks}{on}, spindle use {instance.spindle_use}"


def full_answer(report: FullReport) -> Answer:
    """Return how many more fit at today's mix."""
    more, now = sum(part.more for part in report.parts), sum(part.now for part in report.parts)
    takes = f"takes {count(more, 'more instance')} like its {now:,}"
    words = _all_words([part.instance for part in report.parts])
    rows = [
        (size, part.instance.template.value, digits(part.now), digits(part.more))
        for size, part in zip(words, report.parts, strict=True)
    ]
    mix = Table("Today's mix of sizes", "sizes", ("size", "template", Number("today"), Number("more")), rows, brief=15)
    notes = [_limit(report.binding) if report.binding else f"counting stopped at {more:,}: more may fit"]
    notes += [report.policy_limit.sentence] if report.policy_limit else []
    if report.left_out:
        notes.append(f"left out: {count(report.left_out, 'instance')} whose size or template the policy does not allow")
    return Answer(
        verb="size",
        title="How many more fit at today's mix on cluster",
        **about(report),
        verdict=f"{supposing(report.what_if)}Group {report.group} {takes}{_absorbed(report.failures)}",
        figures=(Figure("more instances", f"{more:,}", about="mix"), Figure("instances now", f"{now:,}")),
        sections=(Section("mix", mix.title, (mix,), tuple(notes), never_cut=True), memory_section(report)),
    )


_SIZE_KEY: Final = Key(
    Shape(Instance).with_keys(
        "memory vcpus disks template spindle_use",
        memory="burst",
        disks=Key(Many(int), lambda item: [disk.size for disk in item.disks]),
    ),
    "instance",
    inline=True,
)
_KIND: Final = Shape(tuple).with_keys(
    kind=Key(Shape(NodeOffer).with_keys("like cost"), 0, inline=True),
    nodes=Key(COUNT, 1),
)
_WANTED: Final = Shape(tuple).with_keys(
    wanted=Key(Shape(WantedSize).with_keys("spec size count", spec="title", size=_SIZE_KEY), 0, inline=True),
    more=Key(int | None, 1),
)
SIZE_DOCUMENT: Final = Document(
    "gpolicy size --format json",
    head("1.0"),
    Shape(SizeReport).with_keys("basis group what_if limits", limits=LIMITS),
    (
        Shape(SizeReport).with_keys(
            "kinds cost wanted shortage instead trials exhaustive",
            kinds=Key(Many(_KIND), lambda report: list(zip(report.kinds, report.nodes, strict=True))),
            wanted=Key(Many(_WANTED), lambda report: list(zip(report.wanted, report.more, strict=True))),
            shortage=Shape(Shortfall).with_keys("nodes spec fits", spec="title", binding=Key(BINDING, inline=True)),
            instead=Shape(FewerNodes).with_keys("number nodes", number="other.words"),
        ),
        Shape(FullReport).with_keys(
            "mix more binding policy_limit left_out stopped",
            mix=Key(Shape(MixPart).with_keys("size now more", size=_SIZE_KEY), "parts"),
            more=Key(int, lambda report: sum(part.more for part in report.parts)),
            binding=Key(BINDING, inline=True, sparse=True),
            policy_limit=POLICY_LIMIT,
            stopped=Key(bool, lambda report: report.binding is None),
        ),
    ),
)
