"""The plan as JSON: what `gpolicy plan -o` writes and other programs rely on. `plan_file` reads it.

The form is a contract, described by `schemas/output/plan.json`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from gpolicy import __version__
from gpolicy.cluster.terms import Terms
from gpolicy.findings import Finding
from gpolicy.ganeti.commands import RapiCall
from gpolicy.json_shape import ANYTHING, COUNT, NOT_EMPTY, TEXTS, Key, Many, Maybe, Shape, version_key
from gpolicy.json_values import plain
from gpolicy.plan.built_in_guards import GuardResult
from gpolicy.plan.change import Change, NotCompared
from gpolicy.plan.effects import Effect, Observed
from gpolicy.plan.part import LeftOut, Part
from gpolicy.plan.plan import Plan
from gpolicy.plan.step import Inverse, PlannedCommand, Step
from gpolicy.policy.kinds import Guard

FORMAT_VERSION: Final = "1.7"
KIND: Final = "gpolicy-plan"
_VERSION_TEXT: Final = (
    "Version of this format. The number before the dot changes when a reader of the old one would go wrong."
)

_DIGEST: Final = {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"}
_OBJECT_NAME: Final = {"type": "string", "pattern": "^(cluster$|group/|node/)"}
_OBJECT: Final = Key("cluster, group/NAME or node/NAME.", _OBJECT_NAME)
_KEYS: Final = {**TEXTS, "minItems": 1}
_KEYS_TEXT: Final = "The path, key by key: a key may hold a dot. A tag is below the key tags."
_OWN_KEYS: Final = Key(_KEYS_TEXT, _KEYS, lambda item: item.path)


def _dotted(item: Change | NotCompared) -> str:
    return ".".join(item.path)


def _size_of(name: str) -> Callable[[Any], int]:
    return lambda plan: len(getattr(plan, name))


def effect_shape(name: Key) -> Shape:
    """Return the shape of what a command does to one leaf; `name` is that of the object."""
    return Shape(Effect).with_keys(
        object=name,
        keys=_OWN_KEYS,
        before="Value before; null for none. A group that is made has no name before.",
        after="Value after; null for none.",
    )


def rapi_shape(**keys: Key) -> Shape:
    """Return the shape of a request to RAPI, with other keys than those of a plan."""
    plans = {
        "method": Key("Method of the request.", {"enum": ["PUT", "POST", "DELETE"]}),
        "path": Key("Path with its query.", {"type": "string", "pattern": "^/2/"}),
        "body": Key("JSON body; null for none.", {"type": ["object", "null"]}),
    }
    return Shape(RapiCall).with_keys(plans | keys)


OBSERVED: Final = Shape(Observed, "observed").with_keys(
    uuid=Key("Ganeti's UUID; null if the source does not show it.", of="identity.uuid"),
    serial_no=Key("Ganeti's serial number; null if the source does not show it.", of="identity.serial_no"),
    values=Key(
        "Own values, tags, names and places.",
        Many(
            Shape(tuple).with_keys(
                keys=Key(_KEYS_TEXT, _KEYS, lambda leaf: leaf[0]),
                value=Key("The value.", ANYTHING, lambda leaf: leaf[1]),
            )
        ),
        lambda item: list(item.values.items()),
    ),
)
_COMMAND: Final = Shape(PlannedCommand).with_keys(
    argv=Key(
        "The command: program, verb, options, then names; null if only RAPI can do it.",
        Maybe({**TEXTS, "minItems": 2}),
        lambda command: command.argv,
    ),
    rapi=Key("The same as a request to RAPI; null if only the command line can do it.", rapi_shape()),
    effects=Key(
        "What the command does, leaf by leaf: by this apply sees whether it was carried out.",
        effect_shape(Key("By the name that it has before the command runs.", _OBJECT_NAME)),
    ),
)
_INVERSE: Final = Shape(Inverse).with_keys(
    first=Key("", _COMMAND, lambda inverse: (*inverse.commands, PlannedCommand(None))[0], inline=True),
    more=Key("Commands that follow the first.", Many(_COMMAND), lambda inverse: inverse.commands[1:]),
    not_restored="What nothing brings back, and why.",
)
_STEP: Final = Shape(Step, "step").with_keys(
    id=Key("Number of the step, from 1.", {"type": "string", "pattern": "^[1-9][0-9]*$"}),
    wave=Key(
        "1 enable templates, 2 groups let go, 3 cluster, 4 groups, 5 nodes, 6 tags added, 7 tags removed, 8 candidate"
        " pool.",
        {"type": "integer", "minimum": 1, "maximum": 8},
    ),
    object=_OBJECT,
    title=Key("What it does, in words.", NOT_EMPTY),
    command=Key("", _COMMAND, inline=True),
    inverse=Key("What undoes the step; both null if nothing does.", _INVERSE),
)
_CHANGE: Final = Shape(Change, "change").with_keys(
    object=_OBJECT,
    path=Key("Dotted, in Ganeti's names; name, group and tags for existence, membership and tags.", NOT_EMPTY, _dotted),
    keys=_OWN_KEYS,
    action="What is done. reset: the own value is removed.",
    before="Own value now; null for none.",
    after="Own value then; null for none.",
    effective_before="What is in force now.",
    effective_after="What will be in force.",
    takes_effect=Key("When the new value begins to matter.", NOT_EMPTY),
    risk="How carefully to look at it.",
    reason="Why; may be empty.",
    affects=Key("Objects that inherit the value.", _OBJECT_NAME),
    origin=Key(
        "file:line:column of the policy that asks for it.", str | None, lambda item: item.span and str(item.span)
    ),
)
_GUARD: Final = Shape(GuardResult, "guard").with_keys(
    name=Key("Name of the guard, for --allow.", NOT_EMPTY),
    ok="Whether the plan may be carried out as far as this guard goes.",
    message=Key("What it found.", NOT_EMPTY),
    allowed="Whether it passes only because it was allowed.",
)
_DECLARED_GUARD: Final = Shape(Guard, "declared_guard").with_keys(
    name=Key("Name of the guard.", NOT_EMPTY, "name.value"),
    measure="What it measures.",
    limit=Key("Number of instances, node failures or changes; or percent.", {"type": "number", "minimum": 0}),
    percent="Whether the limit is a share.",
    group=Key(
        "The only group that is measured; null for each.", str | None, lambda item: item.group and item.group.value
    ),
    spec=Key("The only size that is measured; null for each.", str | None, lambda item: item.spec and item.spec.value),
)
_UNREADABLE: Final = Shape(NotCompared).with_keys(
    object=_OBJECT, path=Key("Dotted path of the value.", str, _dotted), wanted="What the policy declares."
)
_FINDING: Final = Shape(Finding, optional="file line column").with_keys(
    code=Key("Code of the rule.", {"type": "string", "pattern": "^GP[0-9]{3}$"}),
    name="Name of the rule.",
    severity="With an error there are no steps.",
    message="What is wrong.",
    hint="What to write instead; may be empty.",
    file=Key("File of the policy; null without a place.", str | None, lambda item: item.span and item.span.file),
    line=Key("Line, from 1.", int | None, lambda item: item.span and item.span.line),
    column=Key("Column, from 1.", int | None, lambda item: item.span and item.span.column),
)
ANSWER: Final = "answer"
"""The key under which the file of a plan or remedy has its report, for `gpolicy show`."""
ANSWER_KEY: Final = Key("The report, for `gpolicy show`; in files.", {"type": "object"}, lambda _: None, sparse=True)
PLAN_FIRST: Final = Shape(
    Plan, optional="gpolicy cluster_uuid snapshot made_at policy_commit policy_dirty state_read_at staying"
).with_keys(
    format_version=version_key(FORMAT_VERSION, _VERSION_TEXT),
    kind=Key(f"Always {KIND}.", {"const": KIND}, lambda _: KIND),
    gpolicy=Key("Version of gpolicy that made the plan (from 1.3 on).", NOT_EMPTY, lambda _: __version__),
    cluster="Name of the cluster, as its state says, or else the policy; empty where neither does.",
    cluster_uuid="UUID of the cluster (from 1.3 on); null if the source does not show it.",
    source="Where the state was read; of a snapshot: where that was taken.",
    snapshot="The snapshot that the state was read from, null where there was none (from 1.2 on).",
    made_at=Key("When the plan was made, YYYY-MM-DDThh:mm:ssZ (from 1.5 on).", of="provenance.made_at"),
    policy_commit=Key("The git commit of the policy; null outside of git (from 1.5 on).", of="provenance.commit"),
    policy_dirty=Key("Whether the policy's files differ from that commit (from 1.5 on).", of="provenance.dirty"),
    state_read_at=Key(
        "When the state was read; null where its source does not say (from 1.5 on).",
        str | None,
        lambda plan: plan.provenance.state_read_at(plan.source, plan.snapshot),
    ),
    ganeti_version=Key("Release whose commands the steps are.", of="version"),
    policy_digest=Key("Over what the policy says, whatever its files and comments.", _DIGEST),
    state_digest=Key("Over what the plan depends on in the cluster.", _DIGEST),
    serials="Serial number of each object that the plan touches, by object; null where the source has none.",
    state_digest_rapi=Key("As state_digest, without what the remote API does not show.", _DIGEST),
    observed=Key("The objects that the plan touches, as read: apply refuses when they have changed.", OBSERVED),
    not_shown=Key("Own values that the source does not show of any object.", of="gaps"),
    staying="Nodes that move and cannot be moved back, since that would split a DRBD pair (from 1.3 on).",
    changes=Key("Cluster first, then groups and nodes by name.", _CHANGE),
    steps=Key("In the order in which they are carried out.", _STEP),
)
"""The keys before `impact`."""
PLAN_LAST: Final = Shape(Plan, optional="declared_guards pair_names terms part left_out answer").with_keys(
    guards=Key("Verdicts of the guards that have something to say.", _GUARD),
    declared_guards=Key(
        "The guards that the policy declares (from 1.3 on): apply judges them again on the cluster as it is then.",
        _DECLARED_GUARD,
    ),
    pair_names="Names of the sizes, by object, in the order of ipolicy.minmax (from 1.3 on): what guards mean by a"
    " size.",
    terms=Key(
        "What the policy says of resources beyond what Ganeti stores (from 1.4 on): limits, promised hardware, what"
        " counts of physical volumes, the declared hv_state and disk_state, and ganeti_version. Guards that apply"
        " judges again count on it.",
        {"type": "object"},
        lambda plan: terms_data(plan.terms),
    ),
    unreadable=Key("Declared values that the source cannot show: not compared.", _UNREADABLE),
    part=Key(
        "What --only and --exclude chose. Both are empty for a whole plan.",
        Shape(Part).with_keys(only="What to change; none: all.", exclude="Objects and values to leave out."),
    ),
    left_out=Key(
        "Changes that the policy asks for and that this part of the plan leaves out.",
        Shape(LeftOut).with_keys(object=_OBJECT, keys=_OWN_KEYS, action="Kind of the change."),
    ),
    findings=Key("Errors and warnings that check has about the policy on this cluster.", _FINDING, "all_findings"),
    notes="What the source says about itself, and which changes are taken along since others need them.",
    summary=Key(
        "Counts.",
        Shape(Plan, optional="left_out").with_keys(
            changes=Key("Number of changes.", COUNT, _size_of("changes")),
            steps=Key("Number of steps.", COUNT, _size_of("steps")),
            unreadable=Key("Number of values that were not compared.", COUNT, _size_of("unreadable")),
            left_out=Key("Number of changes that this part leaves out.", COUNT, _size_of("left_out")),
            safe="Whether every guard passes and no finding is an error.",
        ),
        lambda plan: plan,
    ),
    answer=ANSWER_KEY,
)
"""The keys behind `impact`."""


def terms_data(terms: Terms) -> dict[str, Any]:
    """Return the terms of a policy as JSON types; `plan_file` reads them for guards that `apply` judges again."""
    leaves = {
        label: [{"keys": list(path), "value": value} for path, value in values.items()]
        for label, values in terms.values.items()
    }
    return {"groups": plain(terms.groups), "others": plain(terms.others), "values": leaves, "release": terms.release}


def plan_as_json(plan: Plan, impact: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the plan in the form of the contract. `impact` is what `gpolicy.report.impact_json` makes, if known."""
    return {**PLAN_FIRST(plan), "impact": dict(impact or {}), **PLAN_LAST(plan)}
