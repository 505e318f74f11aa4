"""A cluster on one page: what is wrong with it, its drift, what fits and when it is full; and many, a row each."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from gpolicy.analysis.capacity import CapacityReport
from gpolicy.analysis.health import ClusterHealth
from gpolicy.analysis.size_words import pair_title
from gpolicy.analysis.violations import PolicyJudge, node_verdicts
from gpolicy.cluster.state import ClusterState
from gpolicy.growth.filling_up import GrowthReport
from gpolicy.printable import Tone, named, some
from gpolicy.provenance import Provenance
from gpolicy.report.answer import Answer, Cell, Figure, Name, Picture, Section, Table, digits
from gpolicy.report.capacity_answer import capacity_answer, told_of
from gpolicy.report.fleet_report import ClusterReport, State, fleet_answer, words_of
from gpolicy.report.growth_section import full_words, with_growth
from gpolicy.report.violations_section import breach_words

_SOON: Final = 14  # days, as in monitoring/alerts.yml
CountedReports = tuple[CapacityReport, ClusterHealth, GrowthReport | None]
_Told = tuple[Figure, str]
"""A figure, and what is wrong with it in words; empty for nothing."""


def cluster_answer(
    name: str, state: ClusterState, age: str, counted: CountedReports | str, drift: Answer | str | None
) -> Answer:
    """Return all that is known of the cluster in `state`, which is as old as `age` says; `name` is in the settings.

    A text says why something is not known. Without a policy there is no `drift`.
    """
    is_old = age.endswith(("day old", "days old"))  # as in monitoring/alerts.yml
    of_age = Figure("age", age, tone=Tone.CAREFUL if is_old else Tone.PLAIN), f"the state is {age}" if is_old else ""
    bare = Answer(verb="", title="", name=name, verdict="", source=state.source, snapshot=state.snapshot)
    fits, compared, tables = bare, drift if isinstance(drift, Answer) else bare, list[Table]()
    if isinstance(counted, str):
        first, *others = (_tell_unknown(name, counted) for name in ("fits", "violations", "fatal losses"))
        told = [first, _tell_drift(drift), *others, of_age]
    else:
        capacity, health, growth = counted
        fits, wrong = with_growth(capacity_answer(capacity), growth), _find_wrong(state, health)
        told = [_tell_fits(capacity), _tell_drift(drift), *_tell_wrong(wrong, health), of_age]
        told += [_tell_growth(growth)] if growth else []
        tables = [Table(kind.capitalize(), kind, ("where", "what"), rows) for kind, rows in wrong.items()]
    tones = {figure.tone for figure, _ in told}
    return replace(
        fits,
        verb="clusters",
        title="Cluster",
        name=name,
        title_end="",
        verdict="; ".join(words for _, words in told if words) or "nothing is wrong",
        unknown=(*fits.unknown, *compared.unknown),
        tone=next((tone for tone in (Tone.BAD, Tone.CAREFUL) if tone in tones), Tone.GOOD),
        figures=tuple(figure for figure, _ in told),
        looked_at=compared.looked_at,
        basis=tuple(dict.fromkeys((*fits.basis, *compared.basis))),
        sections=(Section("wrong", "What is wrong", tables), *compared.sections, *fits.sections),
        notes=tuple(dict.fromkeys((*fits.notes, *compared.notes))),
    )


def _tell_unknown(name: str, why: str) -> _Told:
    return Figure(name, "not known", why, Tone.CAREFUL), f"{name} not known"


def _tell_fits(report: CapacityReport) -> _Told:
    told, sizes = told_of(report), Counter[str]()
    for item in told:
        sizes.update({pair_title(spec.name): spec.fits for spec in item.specs})
    empty = [item.group or "" for item in report.groups if item.refusal]
    number, detail = sum(item.standard.fits for item in told), ", ".join(f"{sizes[size]:,} of {size}" for size in sizes)
    figure = Figure("fits", f"{number:,}", detail, Tone.CAREFUL if empty else Tone.PLAIN, "capacity")
    return figure, f"nothing fits in {named('group', empty)}" if empty else ""


def _tell_drift(drift: Answer | str | None) -> _Told:
    if isinstance(drift, str):
        return _tell_unknown("drift", drift)
    if drift is None:
        return Figure("drift", "no policy", tone=Tone.QUIET), ""
    return replace(drift.figures[0], name="drift"), f"drift: {drift.verdict}" if drift.tone is Tone.BAD else ""


def _find_wrong(state: ClusterState, health: ClusterHealth) -> dict[str, list[tuple[Cell, ...]]]:
    """Return what is wrong by kind: where, and what."""
    judge = PolicyJudge(state, {})
    judged = [(item.name, judge.verdict(item).violation) for item in state.instances.values()]
    found = [(name, [*map(breach_words, item.breaches)]) for name, item in judged if item]
    found += [(name, [breach.sentence for breach in item.breaches]) for name, item in node_verdicts(state).items()]
    losses = [loss for item in health.groups.values() if item.redundancy for loss in item.redundancy.not_absorbed]
    lost = [
        (" and ".join(loss.nodes), [f"{item.instance}: {item.detail}" for item in loss.homeless]) for loss in losses
    ]
    return {
        "violations": [(Name(name), "; ".join(words)) for name, words in found if words],
        "fatal losses": [(Name(name), some(words)) for name, words in lost],
        "conflicts of tags": [(kind, digits(amount)) for kind, amount in health.conflicts.items() if amount],
    }


def _tell_wrong(wrong: Mapping[str, Sequence[tuple[Cell, ...]]], health: ClusterHealth) -> Iterator[_Told]:
    """Yield what violates the policy, and which losses of nodes are not absorbed."""
    groups = health.groups.values()
    undecided = sum(item.undecided + item.undecided_nodes for item in groups)
    for name, unknown in (("violations", undecided), ("fatal losses", sum(not item.redundancy for item in groups))):
        who, amount = some([str(where) for where, _ in wrong[name]], 3), len(wrong[name])
        tone = Tone.BAD if who else Tone.CAREFUL if unknown else Tone.GOOD
        detail = "; ".join(filter(None, (who, f"{unknown:,} not known" if unknown else "")))
        yield Figure(name, f"{amount:,}", detail, tone, "wrong"), f"{name}: {who}" if who else ""


def _tell_growth(growth: GrowthReport) -> _Told:
    first = next((item for item in growth.sizes if item.room), None)
    if first is None:
        return Figure("trend", "no forecast", "; ".join(growth.notes), Tone.QUIET, "growth"), ""
    when, where = full_words(first, growth.horizon), f"{pair_title(first.spec)} in group {first.group}"
    is_soon = first.low is not None and first.low <= _SOON
    tone = Tone.CAREFUL if is_soon else Tone.PLAIN
    return Figure("trend", when, where, tone, "growth"), f"{where} {when}" if is_soon else ""


def clusters_answer(reports: Sequence[ClusterReport], old: Mapping[str, str], provenance: Provenance) -> Answer:
    """Return all clusters as rows of figures, the worst first. Some have an `old` page: its age by their names."""
    rows, words = sorted(reports, key=lambda item: item.state), {each: words_of("clusters", each)[1] for each in State}
    headings = [*dict.fromkeys(figure.name for item in rows if item.answer for figure in item.answer.figures)]
    section = Section("clusters", "", [Picture("wall", lambda: (headings, rows, words, old))], never_cut=True)
    return replace(fleet_answer("clusters", reports, provenance, every=True), title="Clusters", sections=(section,))
