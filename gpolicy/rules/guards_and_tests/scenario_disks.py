"""GP817 and GP818: the disks that tests ask for, against what the policy has of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import DISK_TEMPLATES, ENABLED_TEMPLATES, EXCLUSIVE_STORAGE, Context, name_of, texts
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import Related, warning_rule
from gpolicy.policy.model import GroupPolicy
from gpolicy.policy.scenario import Action, Scenario, Sizes
from gpolicy.policy.source_file import Located
from gpolicy.rules.examples import GROUP

_GROUP: Final = (
    f"{GROUP}nodes: [n1, n2]\nipolicy: {{disk-templates: [plain]}}\n"
    "hardware: {memory: 64G, cpus: 16, pv_count: 4, pv_size: 1T}\n"
)


def _test(disks: str, more: str = "") -> str:
    place = f"{{memory-size: 2G, cpu-count: 2, disks: [{disks}]{more}}}"
    test = f"  - name: a small one fits\n    place: {place}\n    expect: {{refused: false}}\n"
    return f"---\ngpolicy: v1\nkind: Test\ntests:\n{test}"


_GOOD: Final = _GROUP + _test("10G", ", disk-template: plain")


def asked_of(context: Context, scenario: Scenario) -> GroupPolicy | None:
    """Return the declared group that a test is about; None where that is not said, or it is not the policy's."""
    if scenario.stage.snapshot is not None:
        return None
    simulated = {part.group.value for part in scenario.stage.simulated if part.group is not None}
    if scenario.group is not None:
        name = scenario.group.value
    elif len(simulated) == 1:
        name = next(iter(simulated))
    elif len(context.groups) == 1 and not simulated:
        name = context.groups[0].name
    else:
        return None
    return next((group for group in context.groups if group.name == name), None)


class TemplateOfTest(Rule):
    info = warning_rule("GP817", "test-template")(
        summary="A test uses a disk template that is not enabled or not allowed, or diskless with disks, but expects no"
        " refusal.",
        rationale="Ganeti refuses the instance because of its template, whatever else the test is about.",
        bad=_GROUP + _test("10G", ", disk-template: drbd"),
        good=_GOOD,
    )
    finds_more_with_state = True
    unless_declared = (ENABLED_TEMPLATES,)

    def check(self, context: Context) -> Iterator[Hit]:
        enabled = context.enabled_templates()
        for scenario in context.policy.scenarios:
            template = _template(scenario)
            if template is None or scenario.stage.snapshot is not None:
                continue
            declared = asked_of(context, scenario) or context.policy.cluster
            allowed = context.effective(declared, DISK_TEMPLATES) if declared else None
            if _expects_refusal(scenario) or (scenario.sizes is not None and scenario.sizes.ignore_ipolicy):
                continue  # that may be what it shows
            reason = missing = ""
            if template.value == "diskless" and scenario.sizes is not None and scenario.sizes.disks:
                message = "diskless instances have no disks, and this one has"
                hint = "write disks: [], or name another template"
                yield self.hit(f"test/{scenario.name.value}", message, template.span, hint=hint)
                continue
            if enabled is not None and template.value not in enabled.values:
                reason, missing = "is not enabled on the cluster", f"enabled {template.value}"
            elif declared is not None and allowed is not None and template.value not in texts(allowed):
                reason, missing = f"is not allowed in {name_of(declared)}", f"{template.value} in {allowed.span}"
            if reason:
                message = f"{template.value} {reason}"
                label, hint = f"test/{scenario.name.value}", "name another template"
                yield self.hit(label, message, template.span, hint=hint, missing=missing)


def _template(scenario: Scenario) -> Located[str] | None:
    if scenario.sizes is not None:
        return scenario.sizes.template
    return scenario.capacity.template if scenario.capacity is not None else None


def _expects_refusal(scenario: Scenario) -> bool:
    """Return whether the test expects that the instance is refused, or that none fits."""
    wanted = {item.path: item.wanted for item in scenario.expectations}
    return wanted.get(("refused",)) is True or scenario.action is Action.CAPACITY


class SpindlesOfTest(Rule):
    info = warning_rule("GP818", "test-spindles")(
        summary="A test gives the spindles of a disk, but its group has no exclusive storage.",
        rationale="Ganeti refuses spindles of a disk if exclusive storage is off. Either the group should have it, or"
        " the test names the wrong group.",
        source="Partitioned Ganeti, Spindles as a resource; Ganeti 3.0",
        bad=_GROUP + _test("{size: 10G, spindles: 1}", ", disk-template: plain"),
        good=_GROUP + "ndparams: {exclusive_storage: true}\n" + _test("{size: 10G, spindles: 1}"),
    )
    needs_whole_policy = True

    def check(self, context: Context) -> Iterator[Hit]:
        for scenario in context.policy.scenarios:
            group = asked_of(context, scenario)
            if group is None or context.exclusive(group):
                continue
            leaf = context.effective(group, EXCLUSIVE_STORAGE)
            said = "is off" if leaf is not None else "is not declared"
            for sizes in _asked(scenario):
                if any(disk.spindles for disk in sizes.disks or ()):
                    message = f"the disk has spindles, but exclusive storage {said} in {name_of(group)}"
                    hint = "write ndparams: {exclusive_storage: true} in the group, or leave spindles out"
                    related = (Related(leaf.span, "it is off here"),) if leaf is not None else ()
                    yield self.hit(f"test/{scenario.name.value}", message, sizes.span, hint=hint, related=related)
                    break


def _asked(scenario: Scenario) -> Iterator[Sizes]:
    if scenario.sizes is not None:
        yield scenario.sizes
    for part in scenario.stage.simulated:
        yield from (existing.sizes for existing in part.instances)
