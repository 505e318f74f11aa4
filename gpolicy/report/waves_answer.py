"""Waves of nodes as an answer and as JSON (`schemas/output/evacuate-in-turn.json`): who goes when, and what stops."""

from collections.abc import Iterator
from typing import Final

from gpolicy.evacuate.evacuation import HaltedInstance, Job, Upgrade, Wave, WavesReport, seconds_of
from gpolicy.json_values import COUNT, Document, Key, Shape
from gpolicy.printable import Tone, count
from gpolicy.report import answer
from gpolicy.report.capacity_json import head
from gpolicy.report.evacuate_answer import JOB_HEADINGS, JOB_KEYS, cells_of
from gpolicy.report.remedy_answer import duration

_FEW: Final = 6
"""How many nodes of a wave a short text names."""


def waves_answer(report: WavesReport, *, is_kept: bool = False) -> answer.Answer:
    """Return in which order nodes go. `is_kept`: the moves are written to files."""
    rate = f"time: {answer.size(report.asked.rate)} of disk a second for each job (--rate)" if report.copied else ""
    no_groups = f"has no groups: {report.hroller_fails}"
    return answer.Answer(
        verb="evacuate",
        title="In which order nodes go on cluster",
        **answer.about(report, _upgrade(report), rate),
        verdict=f"{answer.supposing(report.what_if)}{_verdict(report)}",
        tone=Tone.BAD if report.halted else Tone.GOOD,
        figures=(
            answer.Figure("waves", f"{len(report.waves):,}", about="waves"),
            answer.Figure(
                "hroller",
                str(report.hroller or answer.NOTHING),
                "groups, by fewer rules" if report.hroller else no_groups,
            ),
            answer.Figure("shut down", f"{len(report.halted):,}", about="halted"),
            answer.Figure("to copy", answer.rough_size(report.copied), about="waves"),
        ),
        sections=(_waves(report), _halted(report), _moves(report)),
        notes=(
            "" if report.exhaustive else "the search ended early, by --seconds: fewer waves or shutdowns may be enough",
            *report.notes,
        ),
        next=tuple(_next(report, is_kept=is_kept)),
    )


def _verdict(report: WavesReport) -> str:
    if not report.waves:
        return "There is no node that could go: none of them is online"
    halted = len({item.instance for item in report.halted})
    stops = f"{count(halted, 'instance')} must be shut down" if halted else "nothing stops"
    waves, nodes = count(len(report.waves), "wave"), count(len(report.leaving), "node")
    if report.upgrade is None:
        return f"{nodes} in {waves}: {stops}"
    copied = f"{answer.rough_size(report.copied)} to copy" if report.copied else "no disk to copy"
    return f"Upgrade {report.upgrade.old} to {report.upgrade.new} in {waves}: {stops}; {nodes}, {copied}"


def _upgrade(report: WavesReport) -> str:
    if report.upgrade is None:
        return report.hint
    old, new = report.upgrade.old, report.upgrade.new
    return f"this is an upgrade of the nodes tagged {old}: tags let instances go to {new}, not back"


def _next(report: WavesReport, *, is_kept: bool) -> Iterator[str]:
    softly = report.halted_softly
    if softly is not None and softly < len(report.halted):
        left = f"{count(softly, 'instance')} must be shut down" if softly else "nothing stops"
        yield f"with --ignore-soft-errors {left} (against exclusion tags, ratios and N+1)"
    if any(wave.moves for wave in report.waves) and not is_kept:
        yield "next: add --save DIRECTORY for gpolicy apply, wave by wave, or --script FILE"


def _waves(report: WavesReport) -> answer.Section:
    rows: list[tuple[answer.Cell, ...]] = []
    for number, wave in enumerate(report.waves, 1):
        seconds = duration(seconds_of(wave.out, report.asked.rate))
        cost = (answer.rough_size(wave.copied), seconds) if wave.copied else (answer.NOTHING, answer.NOTHING)
        stay = len(wave.out) - len(wave.back)
        moves = f"{len(wave.out):,}, {stay:,} of them only out" if stay else f"{len(wave.out):,}"
        nodes = answer.names(wave.nodes) if len(wave.nodes) > _FEW else ", ".join(wave.nodes)
        rows.append((str(number), nodes, moves, *(cost if report.copied else ()), wave.waits or answer.NOTHING))
    costs = (answer.Number("to copy"), answer.Number("time")) if report.copied else ()
    headings = (answer.Number("wave"), "nodes", answer.Number("out and back"), *costs, "not earlier because")
    table = answer.Table("In this order", "waves", headings, rows, most=40, brief=15)
    live = () if report.copied or not rows else ("no disk is copied: only live migrations and reboots take time",)
    return answer.Section("waves", "Waves", [table], live, never_cut=True)


def _halted(report: WavesReport) -> answer.Section:
    alike: dict[tuple[str, str], list[HaltedInstance]] = {}
    for item in report.halted:
        alike.setdefault((item.template, item.reason), []).append(item)
    rows = [
        (
            answer.names(item.instance for item in items),
            template,
            answer.names(dict.fromkeys(item.node for item in items)),
            reason,
        )
        for (template, reason), items in alike.items()
    ]
    headings = ("instances", "template", "nodes", "why")
    title = "What is shut down and started in its wave, and why"
    table = answer.Table(title, "reasons", headings, rows, weight=answer.Weight.WORSE, brief=8)
    return answer.Section("halted", "Must be shut down", [table])


def _moves(report: WavesReport) -> answer.Section:
    rows = [
        (f"{number} {way}", *cells_of(job))
        for number, wave in enumerate(report.waves, 1)
        for way, jobs in (("out", wave.out), ("back", wave.back))
        for job in jobs
    ]
    table = answer.Table("Moves", "moves", ("wave", *JOB_HEADINGS), rows, weight=answer.Weight.DETAIL, most=400)
    return answer.Section("moves", "Moves", [table], weight=answer.Weight.DETAIL)


_JOB: Final = Shape(Job).with_keys("instance template job_set before after copied steps", **JOB_KEYS)
WAVES_DOCUMENT: Final = Document(
    "gpolicy evacuate --in-turn --format json",
    head("1.0"),
    Shape(WavesReport).with_keys(
        "basis what_if unknown ok ignore_soft_errors upgrade waves copied master hroller exhaustive notes",
        unknown="reasons",
        ok=Key(bool, lambda report: not report.halted),
        ignore_soft_errors="asked.ignore_soft_errors",
        upgrade=Shape(Upgrade).with_keys("old new"),
        waves=Shape(Wave).with_keys(
            "nodes out back halted copied waits",
            out=_JOB,
            back=_JOB,
            halted=Shape(HaltedInstance).with_keys("instance template node reason"),
            copied=COUNT,
        ),
        copied=COUNT,
    ),
)
