"""The rooms that `mutations.py` knows, and the mutants of them that are equivalent."""

from __future__ import annotations

from typing import Final

_VERBS: Final = [
    f"cli/test_{verb}_verb.py" for verb in ("capacity", "evacuate", "place", "remedy", "size", "suggest", "test")
]
_ENGINE: Final = ["native/*", "engines", "compiled_allocation"]
ROOMS: Final[dict[str, tuple[list[str], list[str]]]] = {
    "plan": (["plan/*"], ["plan", "render"]),
    "apply": (["apply/*"], ["apply"]),
    "cluster": (["cluster/*"], ["cluster"]),
    "render": (["render/*"], ["render"]),
    "report": (["report/*"], ["report", "drift/test_drift_reports.py", "evacuate", "show", "suggest", *_VERBS]),
    "impact": (["impact/*"], ["impact", "plan/test_projected_measurements.py"]),
    "resolve": (["resolve/desired"], ["resolve", "plan/test_terms.py", "plan/test_diff.py"]),
    "drift": (["drift/*"], ["drift"]),
    "engine": ([f"allocator/{name}" for name in _ENGINE], ["allocator"]),
}
"""The modules of each room, below gpolicy/, and its tests: those that mirror it, and others that are about it."""

_LEFT: Final = "it changes a count of the node that is left, by the same for all candidates"
EQUIVALENT: Final = {
    "impact/capacity_change.py matched_pairs: number - place → (place - number)": "only the distance counts",
    "impact/impact.py location_change: match.before → True": "nobody asks for the name of no group",
    "drift/write_back.py UnitWriter.write: min → max": "any object of the unit serves",
    "drift/write_back.py (module): 200 → 201": "a bound on work",
    "cluster/volume_pools.py VolumePool.differs: 0 → 1": "without volumes the largest has 0",
    "cluster/sources.py (module): 60.0 → 59.0": "a time limit",
    "cluster/master.py (module): 60.0 → 59.0": "a time limit",
    "allocator/engines.py Narrowing.narrow: 2 → 3": "the law tries one pair more, and names the last one",
    "allocator/engines.py Narrowing.narrow: unlisted |= Unlisted.SECONDARY → pass": _LEFT,
    "allocator/engines.py Narrowing.narrow: instance.index not in secondary.secondaries"
    " → (instance.index in secondary.secondaries)": _LEFT,
    "allocator/engines.py Narrowing.narrow: secondary is not None and instance.index not in secondary.secondaries"
    " → (secondary is not None or instance.index not in secondary.secondaries)": _LEFT,
    "allocator/engines.py loaded_library: 3 → 2": "the line that a warning names",
    "allocator/native/library.py NativeEngine._call: True → False": "the work has ended before its process does",
    "apply/plan_run.py PlanRun.go: 4 → 5": "the length of a random name",
    "apply/job_runners.py open_runner: 20 → 21": "how much of a wrong address is shown, or compared",
    "apply/plan_run.py PlanRun._settle: continue → break": "behind a step that was not tried no other was",
    "apply/journals.py _take_place: False → True": "the file is our own, and no link",
    "apply/jobs.py SharedStopRequests.__init__: 1 → 2": "the size of the shared memory",
    "report/forms.py (module): 65_536 → 65537": "GitHub's own limit: a test could only repeat it",
    "report/forms.py (module): 65_536 → 65535": "GitHub's own limit: a test could only repeat it",
    "report/answer_markdown.py (module): 10 → 11": "only the order of the numbers counts",
    "report/prometheus.py _sample_value: value > 0 → (value >= 0)": "the value is infinite",
}
"""Mutants below gpolicy/ that no test can notice, or need not, and why."""
