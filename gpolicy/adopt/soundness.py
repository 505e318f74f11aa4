"""What an adopted policy must not or need not say, guards that its cluster passes, and file names for objects."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from typing import Final

from gpolicy.cluster.state import ClusterState
from gpolicy.findings import Finding, Severity, Span
from gpolicy.forecast.bridge import make_examination
from gpolicy.ganeti.parameters import default_in, parameter_at, position
from gpolicy.ganeti.vocabulary import Path, Values
from gpolicy.plan.sides import planned_sides
from gpolicy.policy.kinds import KINDS, Measure, Policy, build_guards
from gpolicy.policy.model import ClusterPolicy, GroupPolicy, NodeSetPolicy, TagRulesPolicy
from gpolicy.policy.yaml_reader import read_yaml
from gpolicy.printable import free_name, named
from gpolicy.writing.documents import FIRST_GUARDS, GUARDS_FILE, FirstGuard, guards_document

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+", re.ASCII)
_LONGEST_NAME: Final = 100
_SUFFIXES_OF_YAML: Final = re.compile(r"\.ya?ml\Z", re.IGNORECASE)
_DEVICES: Final = frozenset({"aux", "con", "nul", "prn"})  # names that no checkout on Windows can have


def file_names(names: Iterable[str]) -> dict[str, str]:
    """Return a file name (without suffix) for each of `names`, no two the same, upper and lower case aside.

    Only ASCII letters, digits, `.`, `_` and `-` are used, and neither `.` nor `-` to begin with: a hidden file would
    be no part of the policy. A name that is such already stays as it is.
    """
    result: dict[str, str] = {}
    taken: set[str] = set()
    plain_first = sorted(names, key=lambda name: (_plain(name) != name, name))
    for name in plain_first:
        result[name] = free_name(_plain(name), lambda text: text.lower() in taken)
        taken.add(result[name].lower())
    return result


def _plain(name: str) -> str:
    text = _UNSAFE.sub("-", name).lstrip(".-").rstrip(".-")[:_LONGEST_NAME].rstrip(".-")
    text = _SUFFIXES_OF_YAML.sub("", text)
    if not text or text.lower() in _DEVICES:
        return f"group-{text}".rstrip("-")
    return text


_DEFAULTS_UNMANAGED: Final = {
    *("hvparams", "enabled_data_collectors", "data_collector_interval"),
    *("hv_state", "disk_state", "install_image", "zeroing_image"),
}
"""Values that are rarely set at the cluster, or that Ganeti cannot unset: written only where they are not defaults."""
_MOST_NODES: Final = 300
"""On more nodes only the guard against violations is judged: counting what fits takes long there. A cluster passes
`capacity_loss` as it is wherever anything fits."""

UnsoundPlace = tuple[str, str]
"""An object and one of its values, as in `NotWritten`."""


def unsound_places(files: Mapping[str, str], state: ClusterState) -> dict[UnsoundPlace, str]:
    """Return what the policy in `files` must not say, and why: one entry for each error that check finds."""
    policy = policy_of(files)
    examination = make_examination(policy=policy, state=state, today=date.min)  # no waivers, hence no day
    errors = [finding for finding in examination.run().findings if finding.severity is Severity.ERROR]
    places = list(_places_in_policy(policy)) if errors else []
    found: dict[UnsoundPlace, str] = {}
    for error in errors:
        for span, place in places:
            if error.span is not None and error.span.lies_within(span):
                found.setdefault(place, f"check calls it an error ({error.code} {error.name}): {error.message}")
    return found


def policy_of(files: Mapping[str, str]) -> Policy:
    """Return the policy that the YAML files hold, by name. They are our own: none extends another, none is broken."""
    yaml = [read_yaml(text, name) for name, text in files.items() if name.endswith(".yaml")]
    documents = [document for file in yaml for document in file.documents]
    findings: list[Finding] = []
    objects = [made for item in documents for made in KINDS[item.root["kind"]].read(item, findings.append)]
    return Policy(
        paths=tuple(files),
        cluster=next((item for item in objects if isinstance(item, ClusterPolicy)), None),
        groups={item.name: item for item in objects if isinstance(item, GroupPolicy)},
        node_sets=tuple(item for item in objects if isinstance(item, NodeSetPolicy)),
        tag_rules=tuple(item for item in objects if isinstance(item, TagRulesPolicy)),
        documents=tuple(documents),
        findings=tuple(findings),
    )


def _places_in_policy(policy: Policy) -> Iterator[tuple[Span, UnsoundPlace]]:
    for declared in policy.objects:
        nodes = declared.nodes if isinstance(declared, NodeSetPolicy) else None
        for label in [declared.label] if nodes is None else [f"node/{node.value}" for node in nodes]:
            yield from ((leaf.span, (label, ".".join(path))) for path, leaf in declared.leaves.items())
            yield from ((tag.span, (label, f"tag {tag.value}")) for tag in declared.tags or ())
    for rules in policy.tag_rules:
        yield from ((tag.span, ("cluster", f"tag {tag.value}")) for tag in rules.tags)
    yield from ((group.span, (group.label, "")) for group in policy.groups.values())


def with_guards(files: Mapping[str, str], state: ClusterState) -> dict[str, str]:
    """Return the files of an adopted policy with a document of guards, which the cluster of `state` passes.

    A guard is about all groups, or, where not all of them pass, about each that does. Comments name the others.
    """
    from gpolicy.impact.declared_guards import verdicts_on  # noqa: PLC0415 (the allocator comes with it)

    policy = policy_of(files)
    names = file_names(policy.groups)
    few = len(state.nodes) <= _MOST_NODES
    firsts = [guard for guard in FIRST_GUARDS if few or guard.measure[0] == Measure.NEWLY_VIOLATING]
    unjudged = [guard for guard in FIRST_GUARDS if not few and guard.measure[0] == Measure.CAPACITY_LOSS]
    wanted = [
        guard if group is None else replace(guard, name=f"{guard.name}-{names[group]}", group=group)
        for guard in firsts
        for group in (None, *policy.groups)
    ]
    findings: list[Finding] = []
    (document,) = read_yaml(guards_document(wanted), GUARDS_FILE).documents
    policy = replace(policy, guards=tuple(build_guards(document, findings.append)))
    verdicts, _ = verdicts_on(policy, planned_sides(policy, state))
    guards: list[FirstGuard] = []
    failing: dict[tuple[str, str], list[str]] = {}
    for guard, verdict in zip(wanted, verdicts, strict=True):
        if guard.group is None:
            whole = verdict.ok
            guards += [guard] if whole else []
        elif not whole:
            said = verdict.message.replace(f"{state.address}: ", "")
            reason = "" if verdict.ok else re.sub(rf"^group {re.escape(guard.group)}( \(\w+\))?: ", "", said)
            if guard.measure[0] == Measure.NODE_FAILURES and len(state.nodes_of(guard.group)) == 1:
                reason = "it has one node"
            if reason:
                failing.setdefault((guard.measure[0], reason), []).append(guard.group)
            else:
                guards.append(guard)
    left_out = [f"{key} of {named('group', of)}: {reason}" for (key, reason), of in failing.items()]
    if not few:
        left_out.append(f"node_failures: not judged here, there are more than {_MOST_NODES:,} nodes")
    return {**files, GUARDS_FILE: guards_document([*guards, *unjudged], left_out)}


def without_defaults(own: Values, version: str) -> tuple[Values, list[str]]:
    """Return the cluster's values worth writing, and the names of families and parts where the rest is default.

    The parameters of disk templates that are not enabled, the long lists of hypervisors and data collectors, figures
    that nobody has set and images that are not in use are written only where they differ from Ganeti's defaults.
    """
    kept: Values = {}
    dropped: list[Path] = []
    enabled = own.get(("enabled_disk_templates",))
    templates = enabled if isinstance(enabled, list) else []
    for path, value in own.items():
        rarely_set = path[0] in _DEFAULTS_UNMANAGED or (path[0] == "diskparams" and path[1] not in templates)
        parameter = parameter_at(path) if rarely_set else None
        if parameter and parameter.default is not None and default_in(parameter, version) == value:
            dropped.append(path)
        else:
            kept[path] = value
    partly = {_part(path) for path in kept}
    parts = dict.fromkeys(_part(path) for path in sorted(dropped, key=position))
    return kept, [f"the rest of {part}" if part in partly else part for part in parts]


def _part(path: Path) -> str:
    return ".".join(path[:2]) if path[0] in ("diskparams", "hvparams") else path[0]
