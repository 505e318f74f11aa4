"""The names by which guards and tests speak of groups and specs."""

from __future__ import annotations

from gpolicy.checking.context import Context


def known_groups(context: Context) -> set[str]:
    """Return the groups that the policy declares, and those of the cluster where its state is known."""
    return {group.name for group in context.groups} | set(context.state.groups if context.state else ())


def known_specs(context: Context, group: str | None) -> list[str] | None:
    """Return the names of the specs of a group (None: of all groups and the cluster), by name or place.

    None where nobody can know: the policy declares no pairs that hold there, and places are all that there is.
    """
    declared = [item for item in context.groups if group in (None, item.name)]
    lists = [context.pairs(item) for item in declared]
    if context.policy.cluster is not None and (group is None or not declared):
        lists.append(context.pairs(context.policy.cluster))
    names = [pair.name or str(index) for pairs in lists for index, pair in enumerate(pairs, start=1)]
    unknown = not lists or any(not pairs for pairs in lists)
    return None if unknown and not names else list(dict.fromkeys(names))
