"""Sizes by the names that a policy gives them, and the instance to place, as an administrator writes it.

A request is `half`, `memory=8G vcpus=4 disk=100G`, or a file. Words are KEY=VALUE with Ganeti's own names (those of
`gnt-instance add` and of specs), the name of a size, or a file: YAML or JSON with the same keys, or an allocator
request as Ganeti writes it for hail.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from gpolicy.allocator.cluster_data import Disk, DiskTemplate, SpecPair
from gpolicy.analysis.allocator_input import policy_of
from gpolicy.analysis.wanted_instance import PlaceRequest, of_pair
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.terms import PairNames
from gpolicy.errors import GpolicyError, InputError, RequestError, argument
from gpolicy.ganeti.amounts import exact_size, parse_size
from gpolicy.guessing import did_you_mean, did_you_mean_one_of
from gpolicy.printable import count

_MOST_SHOWN = 6
_BOUNDS = {"min": "smallest", "max": "largest"}


def pair_title(name: str) -> str:
    """Return the name of a pair for people; one without a name goes by its place: `size 1`, `was size 2`."""
    start, _, place = name.rpartition(" ")
    return f"{start} size {place}".strip() if place.isascii() and place.isdigit() and start in ("", "was") else name


def size_title(name: str) -> str:
    """Return the name of a pair with the word size before it: `size large`, `size 1`, `was size 2`."""
    title = pair_title(name)
    return f"size {name}" if title == name else title


def with_bound(size: str) -> str:
    """Return a size with its bound as people say it: `large:max` is "large at its largest"."""
    name, _, bound = size.rpartition(":")
    return f"{name} at its {_BOUNDS[bound]}" if name and bound in _BOUNDS else size


def find_pair(name: str, names: PairNames, state: ClusterState, group: str | None = None) -> tuple[SpecPair, str]:
    """Return the pair `name` (its name, or its place from 1, also as `size 1`) in `group` or any group, and its group.

    Groups without nodes count where no other has it. Raise RequestError if there is none, or if it has different sizes
    in the groups.
    """
    groups = [
        _SizesOfGroup(item.name, names.of(item.name, len(pairs)), pairs)
        for item in state.groups.values()
        if group in (None, item.name, item.identity.uuid)
        for pairs in [policy_of(item.effective, f"group {item.name}").minmax]
    ]
    if group is not None and not groups:
        raise RequestError(f"there is no group {group!r}", hint=did_you_mean_one_of(group, "groups", state.groups))
    place = name.removeprefix("size ").removeprefix("pair ")  # until 1.x said size
    found: dict[SpecPair, list[str]] = {}
    for item in groups:
        numbered = enumerate(zip(item.names, item.pairs, strict=True), start=1)
        pair = next((pair for number, (called, pair) in numbered if name == called or place == str(number)), None)
        if pair is not None:
            found.setdefault(pair, []).append(item.group)
    if not found:
        elsewhere = [item for item in state.groups if name in names.of(item, _count(state, item))] if group else []
        raise _unknown_size(name, state, group, groups, elsewhere)
    filled = {node.group for node in state.nodes.values()}
    usable = {pair: there for pair, homes in found.items() if (there := [item for item in homes if item in filled])}
    different = usable or found
    if len(different) > 1:
        owners = "; ".join(", ".join(homes) for homes in different.values())
        raise RequestError(f"size {name!r} is not the same in the groups {owners}", hint="say group=NAME")
    ((same, having),) = different.items()
    return same, having[0]


class _SizesOfGroup(NamedTuple):
    """The sizes of a group, and their names by their places."""

    group: str
    names: tuple[str, ...]
    pairs: Sequence[SpecPair]


def _unknown_size(
    name: str, state: ClusterState, group: str | None, groups: Sequence[_SizesOfGroup], elsewhere: Sequence[str]
) -> RequestError:
    """Return the error where no group that counts has a size (`elsewhere`: others do), with what is likely meant."""
    message = f"there is no size {name!r}" + (f" in group {group}" if group else "")
    named = {called for item in groups for place, called in enumerate(item.names, start=1) if called != str(place)}
    known = {f"{called}:{bound}" for called in named for bound in ("min", "max")} if ":" in name else named
    instances = {item.name.partition(".")[0]: item for item in state.instances.values()} | dict(state.instances)
    if meant := did_you_mean(name, known):
        return RequestError(message, hint=meant)
    if name[:1].isdigit():
        return RequestError(message, hint=f"an amount needs its key: memory={name} or disk={name}")
    if (instance := instances.get(name)) is not None:
        size = f"memory={exact_size(instance.maxmem)} vcpus={instance.vcpus}"
        disks = f" disks={','.join(exact_size(disk.size) for disk in instance.disks)}" if instance.disks else ""
        return RequestError(message, hint=f"it is an instance; one more of its size is `{size}{disks}`")
    by_sizes: dict[str, list[str]] = {}
    for item in groups:
        shown = zip(item.names, item.pairs, strict=True)
        words = ", ".join(f"{pair_title(called)} ({_size_text(pair)})" for called, pair in shown)
        by_sizes.setdefault(words or "none", []).append(item.group)
    there = [f"{', '.join(homes)}: {words}" for words, homes in by_sizes.items()]
    if not there:
        return RequestError(message)
    others = f"group {', '.join(elsewhere)} has it; " if elsewhere else ""
    more = f"; and in {count(len(there) - _MOST_SHOWN, 'more group')} others" if len(there) > _MOST_SHOWN else ""
    unnamed = ". None has a name: a policy gives one (name: half, beside min and max), --policy PATH names it"
    sizes = f"the sizes are, in group {'; in group '.join(there[:_MOST_SHOWN])}{more}"
    return RequestError(message, hint=f"{others}{sizes}{'' if named else unnamed}")


def _count(state: ClusterState, group: str) -> int:
    return len(policy_of(state.groups[group].effective, f"group {group}").minmax)


def _size_text(pair: SpecPair) -> str:
    low, high = pair.min, pair.max
    memory, disk = (
        exact_size(least) if least == most else f"{exact_size(least)} to {exact_size(most)}"
        for least, most in ((low.memory, high.memory), (low.disk_size, high.disk_size))
    )
    return f"memory {memory}, disk {disk}"


ALIASES: Final = {
    alias: key
    for key, aliases in {
        "memory": ("memory-size", "maxmem"),
        "vcpus": ("cpu-count", "cpus", "cpu"),
        "disks": ("disk", "disk-size"),
        "spindle-use": ("spindle_use",),
        "template": ("disk-template", "disk_template"),
        "group": ("group_name",),
        "nodes": ("node", "restrict-to-nodes"),
        "tags": ("tag",),
        "networks": ("network",),
        "nics": ("nic-count",),
    }.items()
    for alias in aliases
}
"""Other names of the keys, from specs, gnt-instance and allocator requests."""

_EXAMPLE: Final = "for example: memory=4G vcpus=2 disk=20G template=drbd"
_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_DISK: Final = re.compile(r"(?:(?P<count>[0-9]{1,2})x)?(?P<size>[^:]*)(?::(?P<spindles>[0-9]{1,6}))?", re.ASCII)


def split_count(words: Sequence[str]) -> tuple[int, list[str]]:
    """Return how many instances words ask for that may begin with such as `3x` (else 1), and the other words."""
    if words and re.fullmatch("[0-9]{1,6}x", words[0], re.ASCII):
        return int(words[0][:-1]), list(words[1:])
    return 1, list(words)


@dataclass(frozen=True, slots=True)
class SizeWords:
    """A request, and the name of the size from which it starts (None: none)."""

    request: PlaceRequest
    spec: str | None = None

    def on(self, state: ClusterState, names: PairNames) -> PlaceRequest:
        """Return the request on a cluster; missing values are those of the size, its minimum or (SIZE:max) maximum."""
        if self.spec is None:
            return self.request
        name, _, bound = self.spec.partition(":") if self.spec.endswith((":min", ":max")) else (self.spec, "", "min")
        try:
            pair, group = find_pair(name, names, state, self.request.group)
        except RequestError as unknown:
            if Path(self.spec).is_dir():
                raise _is_policy(self.spec) from None
            meant = _key_of(self.spec, state)
            if meant is None:
                raise
            raise RequestError(unknown.message, hint=f"Did you mean `{meant}={self.spec}`?") from None
        title = with_bound(f"{pair_title(name.removeprefix('pair '))}:{bound}")
        return of_pair(replace(self.request, size=title), pair, bound, state, group)


def read_words(words: Sequence[str], keys: Sequence[str] | None = None) -> SizeWords:
    """Return the request of `words`. Words override files; the disks and tags of several words add up.

    `keys` are those that the words may have; without, all of KEYS.

    Raise RequestError for a meaningless or repeated word, InputError for a file that is not a request.
    """
    files: list[Mapping[str, Any]] = []
    values: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if equals:
            _put_value(values, _read_key(key, word, keys or KEYS), value, word)
        elif Path(word).suffix in {".yaml", ".yml", ".json"} or (not _NAME.fullmatch(word) and Path(word).is_file()):
            files.append(_read_file(Path(word)))
        elif "spec" in values and (policies := [item for item in (values["spec"], word) if Path(item).is_dir()]):
            raise _is_policy(policies[0])
        else:
            _put_value(values, "spec", word, word)
    request = SizeWords(PlaceRequest())
    for source in (*files, values):
        request = _with_values(request, source)
    return request


def _key_of(word: str, state: ClusterState | None = None) -> str | None:
    """Return the key that a bare word is a value of, as far as that is sure; None if it is no value of any."""
    if word in {template.value for template in DiskTemplate}:
        return "template"
    if state is not None and word in state.groups:
        return "group"
    return "nodes" if state is not None and word in state.nodes else None


def _is_policy(word: str) -> RequestError:
    hint = f"a policy follows {argument('policy')} or -p: write -p {word}"
    return RequestError(f"{word}: this is a directory, not a word of the request", hint=hint)


def _read_key(written: str, where: str, keys: Sequence[str]) -> str:
    key = ALIASES.get(written, written)
    allowed = {ALIASES.get(name, name) for name in keys}
    if key not in allowed:
        others = [alias for alias, name in ALIASES.items() if name in allowed]
        hint = did_you_mean(written.strip(), (*keys, *others), f"the keys are {', '.join(keys)}; {_EXAMPLE}")
        raise RequestError(f"{where}: unknown key {written!r}", hint=hint)
    return key


def _put_value(values: dict[str, Any], key: str, value: str, word: str) -> None:
    if not value:
        raise RequestError(f"{word or repr(word)}: has no value", hint=_EXAMPLE)
    if key in ("disks", "tags", "nodes", "networks"):
        items = values.setdefault(key, [])
        for item in value.split(","):
            if not item.strip():
                raise RequestError(f"{word}: empty before or after a comma")
            if item in items and key == "nodes":
                raise RequestError(f"{word}: node {item} is named twice")
            items.append(item)
    elif key in values:
        before = ALIASES.get(values[key], values[key])
        hint = f"Did you mean `{values[key]}={value}`?" if key == "spec" and before in KEYS else None
        hint = "write memory=4G disk=20G" if key == "spec" and value[:1].isdigit() else hint
        for one in (values[key], value) if key == "spec" and hint is None else ():
            hint = hint or ((meant := _key_of(one)) and f"Did you mean `{meant}={one}`?")
        raise RequestError(f"{word}: {'size' if key == 'spec' else key} is given twice", hint=hint)
    else:
        values[key] = value


def _with_values(words: SizeWords, values: Mapping[str, Any]) -> SizeWords:
    request, spec = words.request, words.spec
    fields = {"spindle-use": "spindle_use", "nics": "nic_count", "minmem": "minimum_memory"}
    for key, value in values.items():
        if key == "spec":
            spec = _text_value(key, value)
        else:
            request = replace(request, **{fields.get(key, key): _READERS[key](key, value)})
    return SizeWords(request, spec)


def _amount(key: str, value: Any) -> int:
    try:
        return parse_size(value if isinstance(value, int) and not isinstance(value, bool) else str(value))
    except ValueError as error:
        hint = f"one word for each, {_EXAMPLE}" if "=" in str(value) else None
        raise RequestError(f"{key}={value}: {error}", hint=hint) from None


def _whole(key: str, value: Any) -> int:
    text = str(value)
    if not re.fullmatch(r"[0-9]{1,9}", text, re.ASCII):
        raise RequestError(f"{key}={value}: not a whole number of at most nine digits")
    return int(text)


def _text_value(key: str, value: Any) -> str:
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise RequestError(f"{key}: not text: {value!r}")
    return str(value)


def _texts(key: str, value: Any) -> tuple[str, ...]:
    items = value if isinstance(value, list) else [value]
    return tuple(_text_value(key, item) for item in items)


def _node_names(key: str, value: Any) -> tuple[str, ...]:
    names = _texts(key, value)
    for name in names:
        if names.count(name) > 1:
            raise RequestError(f"{key}: node {name} is named twice")
    return names


def _disks(key: str, value: Any) -> tuple[Disk, ...]:
    items = value if isinstance(value, list) else [value]
    return tuple(disk for item in items for disk in _disk(key, item))


def _disk(key: str, value: Any) -> list[Disk]:
    if isinstance(value, Mapping):
        extra = sorted(set(map(str, value)) - {"size", "spindles", "mode", "name", "vg", "access", "provider"})
        if extra or "size" not in value:
            raise RequestError(f"{key}: a disk has a size and spindles, not {', '.join(extra) or 'neither'}")
        spindles = value.get("spindles")
        return [Disk(_amount("disk size", value["size"]), None if spindles is None else _whole("spindles", spindles))]
    match = _DISK.fullmatch(str(value))
    if match is None:
        raise RequestError(f"{key}={value}: a disk is SIZE or SIZE:SPINDLES, 2x20G is two of them")
    spindles, count = match["spindles"], match["count"]
    if spindles is not None and not int(spindles):
        hint = "leave :0 out: spindles are for exclusive storage"
        raise RequestError(f"{key}={value}: a disk needs at least 1 spindle", hint=hint)
    if count is not None and not int(count):
        raise RequestError(f"{key}={value}: not a disk", hint="for no disks: template=diskless")
    disk = Disk(_amount(key, match["size"]), None if spindles is None else int(spindles))
    return [disk] * int(count or 1)


_READERS: Final[dict[str, Callable[[str, Any], Any]]] = {
    "memory": _amount,
    "minmem": _amount,
    "vcpus": _whole,
    "disks": _disks,
    "spindle-use": _whole,
    "template": _text_value,
    "group": _text_value,
    "nodes": _node_names,
    "tags": _texts,
    "networks": _texts,
    "nics": _whole,
    "name": _text_value,
}
KEYS: Final = (*_READERS, "spec")


def _read_file(path: Path) -> dict[str, Any]:
    from gpolicy.opening import read_named, reason  # noqa: PLC0415 (most requests are words)
    from gpolicy.policy.yaml_reader import MAX_BYTES, read_yaml  # noqa: PLC0415

    try:
        text = read_named(path, MAX_BYTES).decode()
    except OSError as error:
        raise InputError(f"{path}: {reason(error)}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8 text") from None
    reading = read_yaml(text, str(path))
    if reading.findings:
        first = reading.findings[0]
        raise InputError(f"{first.span or path}: {first.message}", hint=first.hint or None)
    if len(reading.documents) != 1 or not isinstance(reading.documents[0].root, dict):
        raise InputError(f"{path}: a request is one mapping", hint=_EXAMPLE)
    document = reading.documents[0]
    root: dict[str, Any] = document.root
    prefix: tuple[str, ...] = ()
    if isinstance(root.get("request"), dict):
        root, prefix = _allocator_request(root["request"], path), ("request",)
    values: dict[str, Any] = {}
    for written, value in root.items():
        where = str(document.key_span((*prefix, written)))
        key = _read_key(str(written), where, KEYS)
        if key in values:
            raise InputError(f"{where}: {key} is given twice")
        try:
            values |= {key: value}
            _with_values(SizeWords(PlaceRequest()), {key: value})
        except GpolicyError as error:
            raise InputError(f"{document.value_span((*prefix, written))}: {error.message}", hint=error.hint) from None
    return values


_ONLY_HAIL: Final = {"type", "disk_space_total", "required_nodes", "os", "hypervisor", "spindles"}
"""Keys of an allocator request that follow from others or do not influence any decision."""


def _allocator_request(request: Mapping[str, Any], path: Path) -> dict[str, Any]:
    if request.get("type") != "allocate":
        raise InputError(f"{path}: the request is not to allocate an instance, but {request.get('type')!r}")
    kept = {key: value for key, value in request.items() if key not in _ONLY_HAIL and value is not None}
    nics = kept.pop("nics", [])
    named = [nic["network"] for nic in nics if isinstance(nic, Mapping) and nic.get("network")]
    return kept | ({"networks": named} if named else {}) | {"nics": len(nics)}
