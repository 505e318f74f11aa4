"""Policy as code for Ganeti clusters.

The names below are the public Python interface (docs/reference/python.md); each is imported when it is used.
"""

__version__ = "1.0.0"

HOMEPAGE = "https://git.example.org/gpolicy"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gpolicy.adopt.adopting import (
        Addition as Addition,
        Adopted as Adopted,
        adopt_cluster as adopt_cluster,
        adopt_new as adopt_new,
    )
    from gpolicy.analysis.capacity import CapacityReport as CapacityReport
    from gpolicy.analysis.place_report import PlaceReport as PlaceReport
    from gpolicy.apply.carrying import ApplyError as ApplyError
    from gpolicy.apply.jobs import SharedStopRequests as SharedStopRequests, StopRequests as StopRequests
    from gpolicy.apply.plan_run import Intention as Intention
    from gpolicy.apply.work import FinalLook as FinalLook
    from gpolicy.checking.fixing import FixedPolicy as FixedPolicy
    from gpolicy.checking.settings_tables import Overrides as Overrides
    from gpolicy.cluster.sources import SourceOptions as SourceOptions, read_state as read_state
    from gpolicy.cluster.state import ClusterState as ClusterState
    from gpolicy.cluster.state_files import dump_snapshot as dump_snapshot, write_snapshot as write_snapshot
    from gpolicy.cluster.terms import Limits as Limits
    from gpolicy.drift.comparing import DriftReport as DriftReport
    from gpolicy.drift.write_back import WriteBack as WriteBack, write_back as write_back
    from gpolicy.errors import GpolicyError as GpolicyError
    from gpolicy.evacuate.evacuation import (
        EvacuationReport as EvacuationReport,
        EvacuationRequest as EvacuationRequest,
        WavesReport as WavesReport,
    )
    from gpolicy.findings import Finding as Finding
    from gpolicy.fleet.choosing import other_policies as other_policies
    from gpolicy.fleet.named_clusters import RolloutWave as RolloutWave
    from gpolicy.formatting.formatting import Formatted as Formatted, format_text as format_text
    from gpolicy.growth.filling_up import GrowthReport as GrowthReport
    from gpolicy.plan.part import Part as Part
    from gpolicy.plan.plan import Plan as Plan
    from gpolicy.plan.plan_file import dump_plan as dump_plan, read_plan as read_plan
    from gpolicy.plan.step import Procedure as Procedure
    from gpolicy.plan.trust import Signers as Signers
    from gpolicy.policy.kinds import Policy as Policy
    from gpolicy.policy.loading import load_policy as load_policy
    from gpolicy.printable import Tone as Tone
    from gpolicy.progress import Stop as Stop, after as after, after_work as after_work
    from gpolicy.remedy.remedy import RemedyReport as RemedyReport
    from gpolicy.render.script import render_script as render_script
    from gpolicy.show.effective_policy import EffectivePolicy as EffectivePolicy
    from gpolicy.suggest.suggestion import SuggestReport as SuggestReport, SuggestRequest as SuggestRequest
    from gpolicy.testing.outcome import Outcome as Outcome
    from gpolicy.use_cases.carrying_out import ApplyRequest as ApplyRequest, apply_plan as apply_plan
    from gpolicy.use_cases.changes import (
        PlannedChange as PlannedChange,
        PlanRequest as PlanRequest,
        plan_change as plan_change,
    )
    from gpolicy.use_cases.policy_texts import (
        FormattedFile as FormattedFile,
        fix_policies as fix_policies,
        format_policies as format_policies,
        write_formatted as write_formatted,
    )
    from gpolicy.use_cases.questions import (
        CheckedPolicy as CheckedPolicy,
        OpenedCluster as OpenedCluster,
        PolicyError as PolicyError,
        check_policy as check_policy,
        count_capacity as count_capacity,
        fill_group as fill_group,
        find_drift as find_drift,
        find_evacuation as find_evacuation,
        find_remedy as find_remedy,
        find_waves as find_waves,
        forecast_capacity as forecast_capacity,
        open_cluster as open_cluster,
        place_instance as place_instance,
        run_tests as run_tests,
        show_policy as show_policy,
        size_group as size_group,
        suggest_sizes as suggest_sizes,
    )
    from gpolicy.use_cases.rolling_out import (
        ClusterPlan as ClusterPlan,
        Preview as Preview,
        RolloutRequest as RolloutRequest,
        RolloutResult as RolloutResult,
        roll_out as roll_out,
    )
    from gpolicy.what_if.filling import FullReport as FullReport
    from gpolicy.what_if.sizing import NodeOffer as NodeOffer, SizeReport as SizeReport, SizeRequest as SizeRequest
    from gpolicy.what_if.supposing import More as More, WhatIf as WhatIf
    from gpolicy.writing.documents import starter_files as starter_files
    from gpolicy.writing.new_files import write_policy as write_policy, write_texts as write_texts

_BY_MODULE = {
    "adopt.adopting": "Addition Adopted adopt_cluster adopt_new",
    "analysis.capacity": "CapacityReport",
    "analysis.place_report": "PlaceReport",
    "apply.carrying": "ApplyError",
    "apply.jobs": "SharedStopRequests StopRequests",
    "apply.plan_run": "Intention",
    "apply.work": "FinalLook",
    "checking.fixing": "FixedPolicy",
    "checking.settings_tables": "Overrides",
    "cluster.sources": "SourceOptions read_state",
    "cluster.state": "ClusterState",
    "cluster.state_files": "dump_snapshot write_snapshot",
    "cluster.terms": "Limits",
    "drift.comparing": "DriftReport",
    "drift.write_back": "WriteBack write_back",
    "errors": "GpolicyError",
    "evacuate.evacuation": "EvacuationReport EvacuationRequest WavesReport",
    "findings": "Finding",
    "fleet.choosing": "other_policies",
    "fleet.named_clusters": "RolloutWave",
    "formatting.formatting": "Formatted format_text",
    "growth.filling_up": "GrowthReport",
    "plan.part": "Part",
    "plan.plan": "Plan",
    "plan.plan_file": "dump_plan read_plan",
    "plan.step": "Procedure",
    "plan.trust": "Signers",
    "policy.kinds": "Policy",
    "policy.loading": "load_policy",
    "printable": "Tone",
    "progress": "Stop after after_work",
    "remedy.remedy": "RemedyReport",
    "render.script": "render_script",
    "show.effective_policy": "EffectivePolicy",
    "suggest.suggestion": "SuggestReport SuggestRequest",
    "testing.outcome": "Outcome",
    "use_cases.changes": "PlanRequest PlannedChange plan_change",
    "use_cases.carrying_out": "ApplyRequest apply_plan",
    "use_cases.policy_texts": "FormattedFile fix_policies format_policies write_formatted",
    "use_cases.questions": "CheckedPolicy OpenedCluster PolicyError check_policy count_capacity fill_group find_drift"
    " find_evacuation find_remedy find_waves forecast_capacity open_cluster place_instance run_tests show_policy"
    " size_group suggest_sizes",
    "use_cases.rolling_out": "ClusterPlan Preview RolloutRequest RolloutResult roll_out",
    "what_if.filling": "FullReport",
    "what_if.sizing": "NodeOffer SizeReport SizeRequest",
    "what_if.supposing": "More WhatIf",
    "writing.documents": "starter_files",
    "writing.new_files": "write_policy write_texts",
}
PUBLIC = {name: module for module, names in _BY_MODULE.items() for name in names.split()}
"""The public names, and the modules that they are in."""


def __getattr__(name: str) -> object:
    """Return a name of the public interface."""
    if name not in PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    return getattr(import_module(f"{__name__}.{PUBLIC[name]}"), name)


def __dir__() -> list[str]:
    """Return the public names, for people who look around."""
    return sorted({*globals(), *PUBLIC})
