"""An evacuation as an answer and as JSON (`schemas/output/evacuate.json`): what moves where, and what stays."""

import re
from collections.abc import Iterator
from typing import Any, Final

from gpolicy.allocator.evacuation import EvacuationMode
from gpolicy.analysis.basis import StateReport
from gpolicy.analysis.place_report import Candidate
from gpolicy.evacuate import evacuation
from gpolicy.ganeti.commands import shell_line
from gpolicy.json_values import COUNT, FROM_ONE, LENGTH, TEXTS, Document, Key, Many, Shape
from gpolicy.printable import Tone, count, some
from gpolicy.remedy.saved_remedy import MOVE, REMEDY_FILE, SAVED, SavedRemedy
from gpolicy.report import answer
from gpolicy.report.capacity_json import head
from gpolicy.report.glossary import FAILURES, REFUSALS
from gpolicy.report.pictures import memory_section
from gpolicy.report.place_answer import CANDIDATE
from gpolicy.report.remedy_answer import duration

_OF: Final = {
    EvacuationMode.ALL: "",
    EvacuationMode.PRIMARY: " of what runs there",
    EvacuationMode.SECONDARY: " of the copies there",
}
_TRIED: Final = re.compile(r"Group (\S+)(?: \(\w+\))?: (?:error |No valid allocation solutions, failure reasons: )")
"""How hail begins what it says of a group."""
_COUNTED: Final = re.compile(rf"({'|'.join(REFUSALS)}): (\d+)")
"""How hail counts refused candidates."""
_STOPPED: Final = "the search ended early, by --seconds or Ctrl-C: what was not looked at may move, too"
_TO_APPLY: Final = "next: add --save FILE for gpolicy apply, or --script FILE"
_MANY: Final = 3  # instances with one reason that share a row


def evacuate_answer(report: evacuation.EvacuationReport, *, is_kept: bool = False) -> answer.Answer:
    """Return how nodes or a group are emptied. `is_kept`: the moves are written to a file."""
    bad = report.stays or report.objections
    said = "\n".join(map(_why, report.stays))  # in htools' words
    is_new = bool(report.moved) and not report.objections and not is_kept
    rate = f"time: {answer.size(report.asked.rate)} of disk a second for each job (--rate)"
    return answer.Answer(
        verb="evacuate",
        title="How nodes are emptied on cluster",
        **answer.about(report, rate if report.copied and not report.stays else ""),
        verdict=f"{answer.supposing(report.what_if)}{_verdict(report)}",
        tone=Tone.BAD if bad else Tone.CAREFUL if report.breaks else Tone.GOOD,
        figures=(
            *_reboot(report),
            *_in_turn(report),
            answer.Figure("jobs", f"{len(report.moved):,}", about="moves"),
            answer.Figure(
                "stay", f"{len(report.stays):,}", tone=Tone.BAD if report.stays else Tone.PLAIN, about="stays"
            ),
            answer.Figure("to copy", answer.rough_size(report.copied), about="moves"),
            answer.Figure("time", duration(report.seconds), about="moves"),
            answer.Figure("sets of jobs", f"{report.job_sets:,}", about="commands"),
        ),
        sections=(_stays(report), _moves(report), memory_section(report), _commands(report), _candidates(report)),
        notes=(
            *(f"hail, {_request_words(item)}: {item.info}" for item in report.requests),
            "" if report.exhaustive else _STOPPED,
            *report.objections,
            *(f"the moves break what held before: {text}" for text in report.breaks),
            *_short(report),
            *_first(report),
            *report.notes,
        ),
        next=(*_more(report), *_first(report), _TO_APPLY if is_new else ""),
        terms=tuple((word, meaning) for word, meaning in FAILURES.items() if word in said),
        rows_with="with --all-candidates, or in --format json",
    )


def _reboot(report: evacuation.EvacuationReport) -> Iterator[answer.Figure]:
    """Yield what a reboot takes, where more was asked for: only what runs on the nodes leaves them."""
    if (reboot := report.for_a_reboot) is not None:
        stay, leave = len(reboot.stays), len({item.instance for item in reboot.moved})
        copied = f"{answer.rough_size(reboot.copied)} to copy" if reboot.copied else "no disk to copy"
        said = ("even with --primary-only", Tone.BAD) if stay else (f"--primary-only is enough; {copied}", Tone.GOOD)
        value = f"{stay:,} of {stay + leave:,} stay" if stay else f"{leave:,} move"
        yield answer.Figure("for a reboot", value, *said, "moves")


def _in_turn(report: evacuation.EvacuationReport) -> Iterator[answer.Figure]:
    """Yield what is so if several nodes are emptied one after the other, each filled again before the next."""
    if report.in_turn:
        stuck = {item.leaving[0]: len(item.stays) for item in report.in_turn if item.stays}
        said = f"{some([f'{number} stay on {name}' for name, number in stuck.items()], 3)}" if stuck else "none stays"
        value = f"{len(report.in_turn) - len(stuck):,} of {len(report.in_turn):,}"
        yield answer.Figure("one by one", value, f"can be emptied: {said}", Tone.BAD if stuck else Tone.GOOD, "stays")


def _first(report: evacuation.EvacuationReport) -> Iterator[str]:
    """Yield what to do before the moves, or beside them."""
    if report.master:
        yield f"{report.master} is the master: run gnt-cluster master-failover on another node first"
    elif report.group is None and report.asked.mode is EvacuationMode.ALL and report.leaving:
        yield f"gnt-node modify --drained yes {report.leaving[0]} keeps new instances away"


def _verdict(report: evacuation.EvacuationReport) -> str:
    what = f"Group {report.group}" if report.group is not None else some(report.leaving)
    of_what = _OF[report.asked.mode]
    leave, stay = {item.instance for item in report.moved}, {item.instance for item in report.stays}
    if not leave and not stay:
        several = report.group is None and len(report.leaving) > 1
        return f"{what} {'have' if several else 'has'} no instances to move"
    more = f", and {len(report.breaks) - 2} more" if len(report.breaks) > 2 else ""
    broken = f"{count(len(report.breaks), 'new conflict')}: {'; '.join(report.breaks[:2])}{more}"
    worse = f"; but worse: {broken}" if report.breaks else ""
    if stay:
        verb = "stays" if len(stay) == 1 else "stay"
        together = count(len(leave | stay), "instance")
        return f"{what} cannot be emptied{of_what}: {len(stay):,} of {together} {verb}{worse}"
    verb = "moves" if len(leave) == 1 else "move"
    jobs = f"{count(len(leave), 'instance')} {verb} in {count(len(report.moved), 'job')}"
    copied = f"{answer.rough_size(report.copied)} of disk to copy in {duration(report.seconds)}"
    copied = copied if report.copied else "no disk to copy"
    refused = f"; but Ganeti would refuse it: {report.objections[0]}" if report.objections else worse
    return f"{what} can be emptied{of_what}: {jobs}, {copied}{refused}"


def _moves(report: evacuation.EvacuationReport) -> answer.Section:
    rows = [(str(item.job_set), *cells_of(item)) for item in report.moved]
    headings = (answer.Number("set"), *JOB_HEADINGS)
    table = answer.Table(
        "In this order; jobs of one set may run side by side", "moves", headings, rows, most=40, brief=12
    )
    return answer.Section("moves", "Moves", [table], never_cut=True)


JOB_HEADINGS: Final = ("instance", "from", "to", "how", answer.Number("to copy"))


def cells_of(job: evacuation.Job) -> tuple[answer.Cell, ...]:
    """Return the cells of a job: its instance, from which nodes to which, how, and what is copied."""
    names = (answer.Name(" / ".join(words)) for words in ((job.instance,), job.nodes_before, job.nodes_after))
    return (*names, ", ".join(job.does), answer.rough_size(job.copied) if job.copied else answer.NOTHING)


def _stays(report: evacuation.EvacuationReport) -> answer.Section:
    alike: dict[tuple[str, str], list[evacuation.StayingInstance]] = {}
    for item in report.stays:
        alike.setdefault((item.template, _why(item)), []).append(item)
    rows = []
    for (template, why), items in alike.items():
        for together in [items] if len(items) > _MANY else [[item] for item in items]:
            nodes = dict.fromkeys(node for item in together for node in item.nodes)
            rows.append((answer.names(item.instance for item in together), template, answer.names(nodes), why))
    headings = ("instances", "template", "nodes", "why")
    table = answer.Table(
        "What stays, and why", "reasons", headings, rows, weight=answer.Weight.WORSE, last_apart=True, brief=5
    )
    refused = "`gpolicy place` with the size of an instance and group=NAME says in figures why a group refuses it"
    notes = (refused,) if report.group is not None and report.stays else ()
    return answer.Section("stays", "Stays", [table], (*notes, *_more(report)))


def _more(report: evacuation.EvacuationReport) -> Iterator[str]:
    """Yield what moves more than hail moves with this request."""
    if (without := report.without_soft_errors) and len(without.stays) < len(report.stays):
        left = f"{count(len(without.stays), 'instance')} would stay" if without.stays else "nothing would stay"
        yield f"with --ignore-soft-errors {left} (against exclusion tags, ratios and N+1)"
    if report.to_other_nodes and any(item.template in ("plain", "file") for item in report.stays):
        yield "hail moves no plain and no file instances: gnt-instance move -n NODE INSTANCE does, and stops them"


def _why(item: evacuation.StayingInstance) -> str:
    """Return hail's reason, shortened by the words that all of its reasons share; of a single candidate in figures."""
    match item.candidates:
        case (only,):
            return _refusal(only)
    of_groups = _TRIED.sub(r"group \1: ", item.reason)
    return _COUNTED.sub(lambda found: f"{found[2]} refused by {REFUSALS[found[1]]} ({found[1]})", of_groups)


def _refusal(item: Candidate) -> str:
    return f"{item.reason}: {item.detail} [{item.htools_reason}]"


def _commands(report: evacuation.EvacuationReport) -> answer.Section:
    entries = []
    for item in report.moved:
        lost = (answer.Line(f"cannot be undone: {item.no_way_back}", tone=Tone.CAREFUL),) if item.no_way_back else ()
        below = (*map(answer.command_line, item.commands), *lost)
        what = ", ".join(what for what, _ in item.steps)
        entries.append(answer.Entry(f"{item.instance}: {what}", mark=f"{item.job_set:>2}.", below=below))
    asked = tuple(
        f"`{shell_line(item.by_ganeti)}` asks hail the same ({_request_words(item)})"
        for item in report.requests
        if item.by_ganeti is not None
    )
    unasked = ("Ganeti's own commands for it move nothing, since some instances stay",) if report.stays else ()
    notes = (*asked, *unasked) if entries else ()
    return answer.Section(
        "commands",
        "Commands",
        [answer.Entries("command", entries, answer.Style.COMMANDS)],
        notes,
        weight=answer.Weight.DETAIL,
    )


def _request_words(request: evacuation.RequestToHail) -> str:
    kind = request.kind if request.mode is None else f"{request.kind} {request.mode.value}"
    told = f", with {some(request.drained, 3)} drained" if request.drained else ""
    return f"{kind}{told}"


def _candidates(report: evacuation.EvacuationReport) -> answer.Section:
    all_of_them: tuple[evacuation.MovedInstance | evacuation.StayingInstance, ...] = (*report.moved, *report.stays)
    hidden = [item.instance for item in all_of_them if item.candidates is None]
    fixed = [
        item.instance for item in report.moved if item.template == "drbd" and len(item.steps) == 1 and not item.copied
    ]
    said = {
        "a mirrored instance fails over to its secondary node, without a choice": fixed,
        "too many candidates to list them": hidden,
    }
    return answer.Section(
        "candidates",
        "Candidates",
        [table for item in all_of_them for table in _tables(item.instance, item.candidates)],
        tuple(f"{text}: {some(instances)}" for text, instances in said.items() if instances),
        weight=answer.Weight.DETAIL,
    )


def _tables(instance: str, candidates: tuple[Candidate, ...] | None) -> Iterator[answer.Table]:
    if not candidates or (len(candidates) == 1 and candidates[0].ok):
        return
    rows = []
    for item in candidates:
        why = answer.NOTHING if item.ok else _refusal(item)
        left = answer.known_rough_size(item.disk_left)
        rows.append((answer.Name(" / ".join(item.nodes)), answer.Name(item.group), item.shown_score, left, why))
    headings = ("nodes", "group", answer.Number("score"), answer.Number("disk left"), "why not")
    title = f"{instance}: best first; the smaller the score, the better"
    yield answer.Table(title, "candidates", headings, rows, weight=answer.Weight.DETAIL, most=5)


def _short(report: evacuation.EvacuationReport) -> Iterator[str]:
    newly = [name for name in report.short_after if name not in report.short_before]
    if newly:
        yield (
            f"afterwards {some(newly)} cannot take over all the instances that"
            f" {'they mirror' if len(newly) > 1 else 'it mirrors'} (N+1): hail does not look at that here"
        )


_STEP: Final = Shape(tuple).with_keys(what=Key({"enum": ["migrate", "fail over", "copy disks"]}, 0), argv=Key(TEXTS, 1))
JOB_KEYS: Final[dict[str, Any]] = {
    "job_set": FROM_ONE,
    "before": "nodes_before",
    "after": "nodes_after",
    "copied": COUNT,
    "steps": Key(Many(_STEP), lambda item: list(item.steps)),
}
"""The forms of what each job has."""
_MOVED: Final = Shape(evacuation.MovedInstance).with_keys(
    "instance template request job_set group before after copied steps candidates",
    request=FROM_ONE,
    candidates=CANDIDATE,
    **JOB_KEYS,
)
EVACUATE_DOCUMENT: Final = Document(
    "gpolicy evacuate --format json",
    head("1.2"),
    Shape(evacuation.EvacuationReport).with_keys(
        "basis what_if unknown ok leaving group mode ignore_soft_errors requests moved stays copied job_sets exhaustive"
        " short_before short_after in_turn notes",
        unknown="reasons",
        ok=Key(bool, lambda report: not report.stays),
        mode="asked.mode",
        ignore_soft_errors="asked.ignore_soft_errors",
        requests=Shape(evacuation.RequestToHail).with_keys(
            "kind mode instances targets drained info by_ganeti", kind={"enum": ["node-evacuate", "change-group"]}
        ),
        moved=_MOVED,
        stays=Shape(evacuation.StayingInstance).with_keys(
            "instance template request nodes reason candidates", request=FROM_ONE, candidates=CANDIDATE
        ),
        copied=COUNT,
        job_sets=COUNT,
        in_turn=Shape(evacuation.OtherRequest).with_keys(
            node=Key(str, lambda report: report.leaving[0]),
            jobs=Key(LENGTH, "moved"),
            copied=COUNT,
            stays=Key(TEXTS, lambda report: [item.instance for item in report.stays]),
        ),
        notes=Key(TEXTS, lambda report: [*report.objections, *report.parameters, *report.notes]),
    ),
)


def saved_evacuation(report: StateReport, saved: SavedRemedy) -> dict[str, Any]:
    """Return what `gpolicy apply` needs of the moves, as the file of a remedy has it."""
    moves = [MOVE(item) for item in saved.moves]
    return {**head(REMEDY_FILE.version)(report), **SAVED(saved), "what_if": list(report.what_if), "steps": moves}
