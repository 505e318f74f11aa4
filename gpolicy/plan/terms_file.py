"""The terms of a policy (`gpolicy.cluster.terms`) in a plan file, for guards that `apply` judges again."""

from __future__ import annotations

from typing import Any

from gpolicy.cluster.record import Record
from gpolicy.cluster.terms import HYPERVISORS, VOLUME_GROUP, GroupTerms, Limits, Promise, Terms, VolumeTerms
from gpolicy.errors import InputError
from gpolicy.ganeti.hail_parameters import ALLOCATOR_PARAMETERS
from gpolicy.ganeti.number_bounds import GREATEST_OVERSUBSCRIPTION, MOST_NODE_FAILURES
from gpolicy.ganeti.parameter import Values
from gpolicy.ganeti.releases import is_release
from gpolicy.json_values import plain


def terms_data(terms: Terms) -> dict[str, Any]:
    """Return `terms` as JSON types."""
    return {
        "groups": plain(terms.groups),
        "others": plain(terms.others),
        "values": {
            label: [{"keys": list(path), "value": value} for path, value in values.items()]
            for label, values in terms.values.items()
        },
        "release": terms.release,
    }


def read_terms(written: Record) -> Terms:
    """Return the terms that `terms_data` wrote. Raise InputError for a value that no policy can have."""
    return Terms(
        groups={name: _group(item) for name, item in written.records("groups")},
        others=_group(written.record("others")),
        values={label: _values(written.record("values"), label) for label in written.record("values").fields},
        release=_release(written),
    )


def _release(written: Record) -> str | None:
    release = written.text_or_none("release")
    if release is not None and not is_release(release):
        written.refuse("release", "a release of Ganeti that gpolicy knows")
    return release


def _group(written: Record) -> GroupTerms:
    limits, volumes, promise = (written.record(key) for key in ("limits", "volumes", "promise"))
    failures, ratio = limits.whole_or_none("max_node_failures"), limits.number_or_none("oversubscription")
    if not 0 <= (failures or 0) <= MOST_NODE_FAILURES:
        limits.refuse("max_node_failures", f"a number from 0 to {MOST_NODE_FAILURES}")
    if ratio is not None and not 0 < ratio <= GREATEST_OVERSUBSCRIPTION:
        limits.refuse("oversubscription", f"a ratio above 0 and up to {GREATEST_OVERSUBSCRIPTION}")
    return GroupTerms(
        limits=Limits(
            max_node_failures=failures,
            oversubscription=ratio,
            cpus_after_failure=limits.flag_or_none("cpus_after_failure"),
        ),
        volumes=VolumeTerms(
            exclude=volumes.texts("exclude"),
            volume_groups={
                name: volumes.record("volume_groups").texts(name) for name in volumes.record("volume_groups").fields
            },
            **{key: _share(volumes, key) for key in ("margin", "reserve") if key in volumes.fields},
        ),
        promise=Promise(
            memory=promise.whole_or_none("memory"),
            cpus=promise.whole_or_none("cpus"),
            volumes=None if promise.fields.get("volumes") is None else tuple(_sizes(promise)),
        ),
    )


def _share(written: Record, key: str) -> float:
    share = written.number_or_none(key)
    if share is None or not 0 <= share < 1:
        written.refuse(key, "a share below 1")
    return share


def _sizes(written: Record) -> list[int]:
    sizes = written.items("volumes")
    whole = [size for size in sizes if isinstance(size, int) and not isinstance(size, bool) and 0 <= size < 2**63]
    if len(whole) != len(sizes):
        written.refuse("volumes", "a list of sizes")
    return whole


def _values(written: Record, label: str) -> Values:
    values: Values = {}
    for record in written.objects(label):
        keys = record.texts("keys")
        if keys == ALLOCATOR_PARAMETERS:
            values[keys] = record.record("value").fields
        elif keys == HYPERVISORS:
            values[keys] = [*record.texts("value")]
        elif keys == VOLUME_GROUP:
            values[keys] = record.text("value")
        elif not keys or record.whole("value") < 0:
            raise InputError(f"{record.where}: a declared value needs its keys, and is 0 or more")
        else:
            values[keys] = record.whole("value")
    return values
