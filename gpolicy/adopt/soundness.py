"""Errors that check finds in an adopted policy: a cluster can be in a state that no policy should declare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date

from gpolicy.checking.checking import check_policy
from gpolicy.cluster.state import ClusterState
from gpolicy.findings import Finding, Severity, Span
from gpolicy.forecast.telling import FORECAST
from gpolicy.policy.kinds import KINDS
from gpolicy.policy.model import ClusterPolicy, Declared, GroupPolicy, NodeSetPolicy, Policy, TagRulesPolicy
from gpolicy.policy.yaml_reader import read_yaml

Place = tuple[str, str]
"""An object and one of its values, as in `NotWritten`."""


def unsound_places(files: Mapping[str, str], state: ClusterState) -> dict[Place, str]:
    """Return what the policy in `files` must not say, and why: one entry for each error that check finds."""
    policy = policy_of(files)
    errors = [finding for finding in _findings(policy, state) if finding.severity is Severity.ERROR]
    if not errors:
        return {}
    places = list(_places(policy))
    found: dict[Place, str] = {}
    for error in errors:
        for span, place in places:
            if error.span is not None and error.span.file == span.file and error.span.lies_within(span):
                found.setdefault(place, f"check calls it an error ({error.code} {error.name}): {error.message}")
    return found


def policy_of(files: Mapping[str, str]) -> Policy:
    """Return the policy that the YAML files hold, by name. They are our own: none extends another, none is broken."""
    documents = [
        document
        for name, text in files.items()
        if name.endswith(".yaml")
        for document in read_yaml(text, name).documents
    ]
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


def _findings(policy: Policy, state: ClusterState) -> list[Finding]:
    return check_policy(policy, state=state, today=date.min, forecast=FORECAST)  # no waivers, hence no day


def _places(policy: Policy) -> Iterator[tuple[Span, Place]]:
    """Yield the place and identity of each value, tag and group of the policy."""
    for declared in policy.objects:
        for label in _labels(declared):
            for path, leaf in declared.leaves.items():
                yield leaf.span, (label, ".".join(path))
            for tag in declared.tags or ():
                yield tag.span, (label, f"tag {tag.value}")
    for rules in policy.tag_rules:
        for tag in rules.tags:
            yield tag.span, ("cluster", f"tag {tag.value}")
    for group in policy.groups.values():
        yield group.span, (group.label, "")


def _labels(declared: Declared) -> list[str]:
    return (
        [f"node/{node.value}" for node in declared.nodes] if isinstance(declared, NodeSetPolicy) else [declared.label]
    )
