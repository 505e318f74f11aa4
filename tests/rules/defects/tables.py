"""Kinds of mistakes that are values of parameters: one row each, put into objects of all policies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.rules.defects.seeding import Base, Document, Seed, brief, defect

Values = dict[str, Any]
Row = tuple[str, str, tuple[Values, ...]]
"""The name of a kind, why it is wrong, and its forms: values by their places, which are set together."""

CLUSTER, GROUP, NODES = "Cluster", "NodeGroup", "NodeSet"


def sow(family: str, kind: str, *rows: Row) -> None:
    """Register each row as a kind of mistake that is made in the documents of a kind."""
    for name, wrong, forms in rows:
        defect(family, name, wrong)(_Sower(kind, forms))


class _Sower:
    def __init__(self, kind: str, forms: tuple[Values, ...]) -> None:
        self._kind = kind
        self._forms = forms

    def __call__(self, base: Base) -> Iterator[Seed]:
        for document in base.first(self._kind):
            for values in self._forms:
                yield set_values(document, values)


def set_values(document: Document, values: Values) -> Seed:
    """Return the seed that sets several values, each at the place that its key names: `hvparams.kvm.acpi`."""

    def change(root: dict[str, Any]) -> None:
        for place, value in values.items():
            *above, last = place.split(".")
            parent = root
            for step in above:
                parent = parent.setdefault(step, {})
            parent[last] = value

    return document.edit(", ".join(f"{place} = {brief(value)}" for place, value in values.items()), change)


def one(place: str, *values: Any) -> tuple[Values, ...]:
    """Return the forms of a mistake in one place."""
    return tuple({place: value} for value in values)


KVM: Final = "hvparams.kvm."


def kvm(**values: Any) -> Values:
    """Return values of KVM's parameters, on a cluster of KVM whose instances boot from their disks."""
    own = {"kernel_path": "", **values}
    return {"enabled_hypervisors": ["kvm"], **{f"{KVM}{name}": value for name, value in own.items()}}


def xen(kind: str, **values: Any) -> Values:
    """Return values of the parameters of a kind of Xen, which is enabled alone."""
    return {"enabled_hypervisors": [kind], **{f"hvparams.{kind}.{name}": value for name, value in values.items()}}


def lxc(**values: Any) -> Values:
    """Return values of LXC's parameters, which is enabled alone."""
    return xen("lxc", **values)
