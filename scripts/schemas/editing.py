"""The parts of the JSON Schemas for editors only: snippets, descriptions of choices, examples, messages.

Editors with VS Code's YAML server know `defaultSnippets`, `enumDescriptions` and `patternErrorMessage`, JetBrains' know
`x-intellij-enum-metadata`; both show `examples`. Validators pass over all of them. `default` is not among them on
purpose: what a policy leaves out is not managed, it does not become Ganeti's default.
"""

from __future__ import annotations

from typing import Any, Final

from gpolicy.ganeti.vocabulary import FORMS, SPEC_PARAMETERS
from gpolicy.policy.conformance import Schema, pattern_words
from scripts.schemas.parameters import share_shapes

_PATTERN_MESSAGES: Final = {
    **{pattern: words.message for pattern, words in pattern_words().items()},
    **{pattern: f"Ganeti refuses this. Write {words}." for pattern, words in FORMS.items()},
}
_TAG_LETTERS: Final = "[A-Za-z0-9_.+*/:@-]"
_TAG_MESSAGE: Final = "Not a tag: it has letters, digits and . _ + * / : @ - only, 128 at most."
_PREFIX_LETTERS: Final = "[A-Za-z0-9_.+*/@-]+(:"
_PREFIX_MESSAGE: Final = (
    "Not a prefix: it has letters, digits and . _ + * / @ - only, its parts stand between colons,"
    " and none is at its end."
)

CHOICES: Final = {
    # alloc_policy (partitioned Ganeti, "Allocation policy")
    "preferred": "new instances may go here",
    "last_resort": "new instances go here when no preferred group takes them",
    "unallocable": "no new instance goes here unless the group is named",
    # disk templates
    "blockdev": "block devices that the administrator made",
    "diskless": "no disks",
    "drbd": "logical volumes, mirrored to a second node",
    "ext": "external storage provider, shared by all nodes",
    "file": "files on the node's own disk",
    "gluster": "GlusterFS, shared by all nodes",
    "plain": "logical volumes of one node; the only template for exclusive storage",
    "rbd": "Ceph block devices, shared by all nodes",
    "sharedfile": "files on a file system that all nodes share",
    # access
    "kernelspace": "through a block device of the node",
    "userspace": "by the hypervisor itself",
    # families of cluster tags
    "iextags": "htools:iextags: exclusion",
    "nlocation": "htools:nlocation: failure domains",
    "migration": "htools:migration: migration domains",
    "allowmigration": "htools:allowmigration: exceptions of migration",
    "desiredlocation": "htools:desiredlocation: where instances should be",
    # how full a simulated node is
    "empty": "no instance",
    "quarter-full": "a quarter of the node is taken",
    "half-full": "half of the node is taken",
    "three-quarter-full": "three quarters of the node are taken",
    "full": "nothing is free",
    # hypervisors
    "kvm": "KVM",
    "xen-pvm": "Xen, paravirtual",
    "xen-hvm": "Xen, fully virtualised",
    "lxc": "Linux containers",
    "chroot": "chroot, for tests",
    "fake": "nothing runs, for tests",
}
"""The meanings of words that can be chosen."""


_LEAST: Final = ("4G", 2, "40G", 1, 1, 1)
_MOST: Final = ("16G", 8, "200G", 4, 4, 4)


def _bound(values: tuple[str | int, ...], first: int) -> str:
    """Return one bound as YAML with a place for the cursor at each value, numbered from `first`."""
    pairs = zip(SPEC_PARAMETERS, values, strict=True)
    return ", ".join(f"{name}: ${{{number}:{value}}}" for number, (name, value) in enumerate(pairs, start=first))


PAIR_BODY: Final = (
    f"name: ${{1:medium}}\nmin: {{{_bound(_LEAST, 2)}}}\nmax: {{{_bound(_MOST, 2 + len(SPEC_PARAMETERS))}}}"
)

PAIR_SNIPPET: Final[Schema] = {
    "label": "size",
    "description": "A named size: all six parameters of min and max.",
    "bodyText": PAIR_BODY,
}


def for_editors(schema: Schema) -> Schema:
    """Return a copy of `schema` with the parts for editors."""
    return {key: _walk(value) for key, value in share_shapes(schema).items()}


def _walk(value: Any) -> Any:
    if isinstance(value, dict):
        return _with_words({key: _walk(below) for key, below in value.items()})
    return [_walk(below) for below in value] if isinstance(value, list) else value


def _with_words(schema: Schema) -> Schema:
    pattern, words = schema.get("pattern"), schema.get("enum")
    if isinstance(pattern, str):
        message = _PATTERN_MESSAGES.get(pattern) or (_TAG_MESSAGE if _TAG_LETTERS in pattern else None)
        message = message or (_PREFIX_MESSAGE if _PREFIX_LETTERS in pattern else None)
        if message:
            schema["patternErrorMessage"] = message
    if isinstance(words, list) and all(word in CHOICES for word in words):
        schema["enumDescriptions"] = [CHOICES[word] for word in words]
        schema["x-intellij-enum-metadata"] = {word: {"description": CHOICES[word]} for word in words}
    if {"min", "max", "name"} == set(schema.get("properties", ())):
        schema["defaultSnippets"] = [PAIR_SNIPPET]
    return schema
