"""The invariants of roll-outs, judged by the processes that they begin, what these answer, and the journals."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpolicy.fleet.workers import Failed
from gpolicy.rollout.rollout_run import LookResult
from tests.simulator.ground_truth import is_there
from tests.simulator.simulated_machine import ApplyProcess
from tests.simulator.simulated_world import Ended
from tests.simulator.sites import Site


@dataclass(slots=True)
class Course:
    """What one run of a roll-out has heard so far."""

    back: bool
    trouble: bool = False
    looked_at: set[str] = field(default_factory=set)
    ended: dict[str, int] = field(default_factory=dict)  # exit codes of the runs of clusters
    refused: set[str] = field(default_factory=set)  # clusters with which nothing can be done
    looks: dict[str, bool] = field(default_factory=dict)  # whether a look found nothing wrong


@dataclass(slots=True)
class RolloutJudge:
    """Follows roll-outs of these sites, and checks their invariants."""

    sites: Mapping[str, Site]
    waves: Sequence[Sequence[str]]
    violations: list[str] = field(default_factory=list)
    damaged: bool = False  # the journal of the whole
    courses: dict[ApplyProcess, Course] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)  # clusters that the journal of the whole knows

    def blame(self, text: str) -> None:
        """Note a broken invariant."""
        self.violations.append(text)

    def _wave(self, site: str) -> int:
        return next(number for number, names in enumerate(self.waves) if site in names)

    # --- while it runs -----------------------------------------------------------------------------------------------

    def begins(self, process: ApplyProcess) -> None:
        """The plan of a cluster is about to be carried out, or taken back."""
        course, site = self.courses[process.root], process.site
        if process.root.stops:
            self.blame(f"{site} is begun after somebody had asked to stop")
        if self.damaged:
            self.blame(f"{site} is begun although the journal of the whole is damaged")
        if site not in self.begun:
            self.blame(f"{site} is begun, and the journal of the whole does not say so")
        mine = self._wave(site)
        if course.back:
            for name in [name for names in self.waves[mine + 1 :] for name in names]:
                if name not in course.ended and name not in course.refused and self.standing(name) == "done":
                    self.blame(f"{site} is taken back before {name}, which is in a later wave")
            return
        if course.trouble:
            self.blame(f"{site} is begun after trouble with another")
        for name in [name for names in self.waves[:mine] for name in names]:
            if not course.looks.get(name):
                self.blame(f"{site} is begun before {name}, which is in an earlier wave, was looked at")

    def answered(self, process: ApplyProcess, kind: str, answer: Any) -> None:
        """A roll-out has the answer of one of its processes."""
        course = self.courses[process.root]
        if kind == "preview_one" and (isinstance(answer, Failed) or answer.refusal is not None):
            course.refused.add(process.site)
            course.trouble = True
        if kind == "run_one":
            code = 1 if isinstance(answer, Failed) else answer.exit_code
            course.ended[process.site] = code
            course.trouble |= bool(code)
        elif kind == "look_at_one":
            good = isinstance(answer, LookResult) and not answer.troubles
            course.looks[process.site] = good
            course.trouble |= not good
            if good:
                self._rightly_good(process, answer)

    def _rightly_good(self, process: ApplyProcess, look: LookResult) -> None:
        """See that a look that finds nothing wrong was shown nothing wrong."""
        site = self.sites[process.site]
        for change in site.scenario.plan.changes:
            if not site.judge.shows(change.object, change.path) or is_there(change, process.seen):
                continue
            self.blame(
                f"a look at {site.name} finds nothing wrong, and {change.object} {'.'.join(change.path)} is not there"
            )
        for (name, path), value in site.scenario.declared.items():
            if site.judge.shows(name, path) and process.seen.get(name, {}).get(path) != value:
                self.blame(
                    f"a look at {site.name} finds nothing wrong, and the policy declares another {'.'.join(path)}"
                )
        first = min((job.number for job in site.judge.ours() if not job.archived), default=None)
        told = " ".join(look.notes)
        for job in site.ganeti.jobs.values():
            failed = job.status == "error" and not job.mark and not job.archived and job.submitted < process.begun
            if failed and first is not None and job.number > first and f"job {job.number} " not in told:
                self.blame(f"a look at {site.name} finds nothing wrong, and job {job.number} has failed")

    def wrote(self, process: ApplyProcess, event: Mapping[str, Any]) -> None:
        """A line got into the journal of the whole."""
        course = self.courses[process]
        match event["event"]:
            case "cluster-begun":
                self.begun.add(event["cluster"])
            case "cluster-ended" if event["exit_code"] == 0 != course.ended[event["cluster"]]:
                self.blame(f"the journal says that {event['cluster']} ended well, and it did not")
            case "cluster-looked" if not event["troubles"] and not course.looks[event["cluster"]]:
                self.blame(f"the journal says that a look at {event['cluster']} found nothing wrong, and it did")
            case "end" if event["outcome"] == "done":
                self._ended_well(course, "the journal of the whole")

    # --- after it ----------------------------------------------------------------------------------------------------

    def after(self, ended: Ended, *, tainted: bool) -> None:
        """Judge what a roll-out said at its end."""
        if ended.code is None:
            return
        course = self.courses[ended.process]
        if ended.code == 0:
            self._ended_well(course, "exit code 0")
        if "nothing was done: not every" in ended.text and course.ended:
            self.blame("it says that nothing was done, after a cluster was begun")
        for item in [] if tainted else _reports(ended.text):
            name, stage, standing = item["name"], item["report"]["stage"], self.standing(item["name"])
            fine = (
                stage,
                "unknown",
                *(("not begun",) if stage == "taken back" else ()),
            )  # all that it tried had failed
            if stage in ("done", "not begun", "taken back") and standing not in fine:
                self.blame(f"{name} is {stage}, it says, and is {standing}")

    def _ended_well(self, course: Course, where: str) -> None:
        if course.trouble:
            self.blame(f"{where} says that all went well, and there was trouble")
        for name in self.sites:
            if course.back and self.standing(name) == "done":
                self.blame(f"{where} says that all was taken back, and {name} was not")
            if not course.back and not course.looks.get(name):
                self.blame(f"{where} says that all is done, and nobody has looked at {name}")

    def standing(self, name: str) -> str:
        """Return how far a cluster is, as its jobs show: a stage of the report, `partly`, or `unknown`."""
        judge = self.sites[name].judge
        jobs = [job for job in judge.ours() if job.took_effect]
        if judge.foreign or any(job.error for job in jobs):  # a job that failed may have done its work
            return "unknown"
        last: dict[str, bool] = {}
        for job in jobs:
            task = judge.task_of(job)
            last[task.step] = task.key == task.step
        steps = [last.get(step.id) for step in judge.scenario.plan.steps]
        if all(steps):
            return "done"
        if any(steps):
            return "partly"
        return "taken back" if last else "not begun"


def _reports(text: str) -> list[dict[str, Any]]:
    """Return the reports by cluster in what a roll-out said, none if it was cut short."""
    begin = text.find('{\n  "')
    end = text.find("\n}\n", begin)
    if begin < 0 or end < 0:
        return []
    found: list[dict[str, Any]] = json.loads(text[begin : end + 3])["clusters"]
    return found
