"""Kinds of mistakes, and how one is put into a good policy.

A *defect* is a kind of mistake, with the reason why a policy with it is wrong: how Ganeti, htools or gpolicy then
differs from the intention of the author. It is not defined by the findings of a rule. Each *seed* is one place where it
can be made; a mutant is the policy with just that one change.
"""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import zip_longest
from typing import Any, Final

import yaml

Data = dict[str, Any]
Pointer = tuple[str | int, ...]
Change = Callable[[Data], object]

SEED: Final = 6
MOST_SEEDS: Final = 3
"""Mutants of one defect, spread over the policies."""


@dataclass(frozen=True, slots=True)
class Seed:
    """One place of a policy where a mistake can be made. `files` gives the texts that are then different."""

    where: str
    files: Callable[[], dict[str, str]]


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a policy. `data` is not to be changed: `edit` and its kin work on a copy."""

    file: str
    index: int
    data: Data
    _all: tuple[Data, ...] = field(repr=False)

    @property
    def kind(self) -> str:
        return str(self.data["kind"])

    @property
    def label(self) -> str:
        return f"{self.file}, {self.kind} {self.data.get('name', '')}".strip()

    def edit(self, what: str, change: Change) -> Seed:
        """Return the seed that changes this document by `change`, which is given a copy of it."""

        def files() -> dict[str, str]:
            documents = copy.deepcopy(list(self._all))
            change(documents[self.index])
            return {self.file: dumped(documents)}

        return Seed(f"{self.label}: {what}", files)

    def put(self, pointer: Pointer, value: Any) -> Seed:
        """Return the seed that sets the value at `pointer`, making the mappings on the way."""

        def change(root: Data) -> None:
            parent: Any = root
            for step in pointer[:-1]:
                parent = parent.setdefault(step, {}) if isinstance(parent, dict) else parent[step]
            parent[pointer[-1]] = copy.deepcopy(value)

        return self.edit(f"{shown(pointer)} = {brief(value)}", change)

    def drop(self, pointer: Pointer) -> Seed:
        """Return the seed that removes the value at `pointer`."""
        return self.edit(f"without {shown(pointer)}", lambda root: at(root, pointer[:-1]).pop(pointer[-1]))

    def rename(self, pointer: Pointer, key: str) -> Seed:
        """Return the seed that gives a key another name, in its place."""

        def change(root: Data) -> None:
            parent = at(root, pointer[:-1])
            renamed = {key if name == pointer[-1] else name: value for name, value in parent.items()}
            parent.clear()
            parent.update(renamed)

        return self.edit(f"{shown(pointer)} written {key}", change)

    def swap(self, one: Pointer, other: Pointer) -> Seed:
        """Return the seed that exchanges two values."""

        def change(root: Data) -> None:
            first, second = at(root, one), at(root, other)
            at(root, one[:-1])[one[-1]], at(root, other[:-1])[other[-1]] = second, first

        return self.edit(f"{shown(one)} and {shown(other)} exchanged", change)

    def beside(self, what: str, *documents: Data) -> Seed:
        """Return the seed that puts further documents behind this file's."""
        return Seed(f"{self.label}: {what}", lambda: {self.file: dumped([*self._all, *documents])})


@dataclass(frozen=True, slots=True)
class Base:
    """A good policy: its files by path."""

    name: str
    texts: dict[str, str]

    def documents(self, *kinds: str) -> Iterator[Document]:
        """Yield the documents of these kinds, or all."""
        for file, text in self.texts.items():
            everything = _read(text)
            for index, data in enumerate(everything):
                if not kinds or data["kind"] in kinds:
                    yield Document(file, index, data, everything)

    def first(self, kind: str) -> Iterator[Document]:
        """Yield the first document of a kind that is not a mere base for others, if there is one."""
        found = [document for document in self.documents(kind) if not document.data.get("template")]
        yield from found[:1]

    def lines(self) -> Iterator[tuple[str, int, str]]:
        """Yield file, index and text of every line that is more than a comment."""
        for file, text in self.texts.items():
            for index, line in enumerate(text.split("\n")):
                if line.strip() and not line.lstrip().startswith("#"):
                    yield file, index, line

    def replace_line(self, file: str, index: int, *lines: str) -> Seed:
        """Return the seed that puts other lines in the place of one."""
        written = self.texts[file].split("\n")
        shown_lines = " / ".join(line.strip() for line in lines) or "(nothing)"
        text = "\n".join([*written[:index], *lines, *written[index + 1 :]])
        return Seed(f"{file}, line {index + 1}: {brief(shown_lines)}", lambda: {file: text})


@dataclass(frozen=True, slots=True)
class Defect:
    """A kind of mistake. `wrong` says why a policy with it is wrong, and by what source."""

    family: str
    name: str
    wrong: str
    seeds: Callable[[Base], Iterator[Seed]]


DEFECTS: Final[list[Defect]] = []


def defect(family: str, name: str, wrong: str) -> Callable[[Callable[[Base], Iterator[Seed]]], None]:
    """Register the generator of seeds below as a kind of mistake."""

    def register(seeds: Callable[[Base], Iterator[Seed]]) -> None:
        DEFECTS.append(Defect(family, name, wrong, seeds))

    return register


def chosen(kind: Defect, bases: tuple[Base, ...], most: int = MOST_SEEDS) -> list[tuple[Base, Seed]]:
    """Return at most `most` seeds, the same at every run, taken from the policies in turn."""
    generator = random.Random(f"{SEED} {kind.family} {kind.name}")  # noqa: S311
    columns = []
    for base in bases:
        column = [(base, seed) for seed in kind.seeds(base)]
        generator.shuffle(column)
        columns.append(column)
    generator.shuffle(columns)
    return [item for row in zip_longest(*columns) for item in row if item is not None][:most]


# --- values --------------------------------------------------------------------------------------------------------


def at(root: Any, pointer: Pointer) -> Any:
    """Return the value at `pointer`."""
    for step in pointer:
        root = root[step]
    return root


def leaves(root: Any, pointer: Pointer = ()) -> Iterator[tuple[Pointer, Any]]:
    """Yield every scalar with its place."""
    if isinstance(root, dict):
        for key, value in root.items():
            yield from leaves(value, (*pointer, key))
    elif isinstance(root, list):
        for index, value in enumerate(root):
            yield from leaves(value, (*pointer, index))
    else:
        yield pointer, root


def keys(root: Any, pointer: Pointer = ()) -> Iterator[Pointer]:
    """Yield the place of every key of every mapping."""
    if isinstance(root, dict):
        for key, value in root.items():
            yield (*pointer, key)
            yield from keys(value, (*pointer, key))
    elif isinstance(root, list):
        for index, value in enumerate(root):
            yield from keys(value, (*pointer, index))


def mib(value: int | str) -> int:
    """Return MiB of a size as policies write it."""
    if isinstance(value, int):
        return value
    return int(float(value.rstrip("MGT")) * {"M": 1, "G": 1024, "T": 1024**2}.get(value[-1], 1))


def typo(word: str, generator: random.Random) -> str:
    """Return `word` with one slip: a letter missing, doubled or swapped with the next."""
    place = generator.randrange(1, len(word))
    slips = [word[:place] + word[place + 1 :], word[:place] + word[place] + word[place:]]
    if word[place - 1] != word[place]:
        slips.append(word[: place - 1] + word[place] + word[place - 1] + word[place + 1 :])
    return generator.choice([slip for slip in slips if slip != word])


def slips(what: str) -> random.Random:
    """Return the generator for the slips of one place."""
    return random.Random(f"{SEED} {what}")  # noqa: S311


def shown(pointer: Pointer) -> str:
    return ".".join(str(step) for step in pointer)


def brief(value: Any) -> str:
    text = (
        value
        if isinstance(value, str)
        else yaml.dump(value, Dumper=yaml.CSafeDumper, default_flow_style=True, width=10_000)
    )
    text = " ".join(text.replace("\n...\n", "").split())
    return text if len(text) <= 70 else f"{text[:67]}..."


class _Loader(yaml.SafeLoader):
    """YAML 1.2: only true and false are booleans, days are text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.rsplit(":", 1)[1] not in ("bool", "timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(true|false)$"), ["t", "f"])


@cache  # every kind of mistake looks at every policy
def _read(text: str) -> tuple[Data, ...]:
    return tuple(item for item in yaml.load_all(text, _Loader) if item is not None)


def dumped(documents: list[Data]) -> str:
    """Return documents as YAML."""
    return yaml.dump_all(documents, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=10_000)
