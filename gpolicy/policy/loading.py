"""Load a policy: files → documents → schema → objects → extends."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, Final, TypeVar

from gpolicy.errors import InputError
from gpolicy.findings import BASE_FILE, Finding, Located, Related, Span, copied
from gpolicy.guessing import MOST_KNOWN, closest, did_you_mean
from gpolicy.opening import real_path
from gpolicy.policy import files, source_file
from gpolicy.policy.conformance import conforms
from gpolicy.policy.extending import Bases, Extender
from gpolicy.policy.kinds import KINDS, Guard, Policy
from gpolicy.policy.model import ClusterPolicy, Declared, GroupPolicy, NodeSetPolicy
from gpolicy.policy.scenario import Scenario
from gpolicy.policy.source_file import SourceFile, YamlDocument
from gpolicy.policy.yaml_reader import read_yaml
from gpolicy.printable import some

LARGEST_SNAPSHOT = 64 * 1024**2
"""Bytes of a snapshot that a test reads."""

_NamedObject = TypeVar("_NamedObject", GroupPolicy, NodeSetPolicy)
_Given = TypeVar("_Given", bound=Guard | Scenario)

_MOST_EXTENDED: Final = 100  # files in which a base without a file is looked for
_MOST_COMPARED: Final = 300_000  # names that are compared with unknown ones, to say what may be meant: about a second


def load_policy(path: Path, texts: Mapping[str, str] | None = None) -> Policy:
    """Return the policy in the file or directory `path`. Raise InputError when there is nothing to read.

    `texts` are read in place of what is in the files of these names: the policy as it would be.

    For example, `load_policy(Path("policies/berlin")).groups` are the groups that it declares, by name.
    """
    within = files.boundary(path)
    policy = load_files(files.policy_files(path, within), path, texts, within)
    unread = files.unread_files(path, within) if path.is_dir() else ()
    return replace(policy, findings=tuple(sorted((*policy.findings, *unread), key=Finding.sort_key)))


def declared_cluster(path: Path) -> str:
    """Return the name in the Cluster document of the only policy at `path`; nothing if there is none."""
    try:
        roots = files.policy_roots(path)
        cluster = load_policy(roots[0]).cluster if len(roots) == 1 else None
    except InputError:
        return ""
    return cluster.name if cluster is not None else ""


def load_files(
    paths: list[Path], root: Path, texts: Mapping[str, str] | None, within: files.Boundary | None = None
) -> Policy:
    """Return the policy that the files `paths` hold together. `within` is the boundary of `root`, where it is known."""
    return _Loader(paths, root, texts, within or files.boundary(root)).policy(tuple(map(str, paths)))


class _Loader:
    def __init__(self, paths: list[Path], root: Path, texts: Mapping[str, str] | None, within: files.Boundary) -> None:
        self._root = root
        self._texts = texts
        self._boundary = within
        self._files = files.read_files(paths, self._boundary, self._texts)
        self._own = frozenset(self._files.files)
        self._findings = self._files.findings
        self._broken = [file.unfinished for file in self._files.files.values() if file.unfinished]
        self._bases: dict[Path, Bases] = {}
        self._named: dict[tuple[str, str], Bases | None] = {}
        """The bases in each file that `extends` names, by the file that names it; None if it may not be read."""
        self._ranks: dict[str, tuple[int, int]] = {}
        """Of each file that was taken as a base: the later of several bases is greater, and the nearer one."""
        self._compared = 0  # names that were compared with unknown ones
        self._documents = tuple(document for file in self._files.files.values() for document in file.documents)
        self._objects, self._made = read_documents(self._documents, self._findings, self._broken)
        self._here = Bases(self._objects, self._broken)
        self._separate = False
        """Whether the files are most likely those of several clusters."""

    def policy(self, paths: tuple[str, ...]) -> Policy:
        if paths and not self._findings and all(document.root is None for document in self._documents):
            hint = "write its documents (`gpolicy init` writes a first policy), or name another file"
            message = "the policy declares nothing: there is no document in it"
            self._findings.append(source_file.NOTHING_DECLARED.finding(message, Span(paths[0], 1, 1, 1, 1), hint=hint))
        extender = Extender(self._find, self._unknown, self._findings.append)
        whole = [extender.extend(declared) for declared in self._objects]
        kept = [declared for declared in whole if not declared.template]
        clusters = [declared for declared in kept if isinstance(declared, ClusterPolicy)]
        self._report_several(clusters)
        self._made["scenarios"] = list(map(self._with_snapshot, self._made["scenarios"]))
        return Policy(
            paths=paths,
            cluster=clusters[0] if clusters else None,
            groups=self._by_name([declared for declared in kept if isinstance(declared, GroupPolicy)]),
            node_sets=tuple(self._by_name([item for item in kept if isinstance(item, NodeSetPolicy)]).values()),
            **{field: tuple(made) for field, made in self._made.items()},
            documents=self._documents,
            broken=tuple(self._broken),
            findings=tuple(sorted(self._findings, key=Finding.sort_key)),
            files=self._files.files,
            root=self._root,
            is_part=files.is_part(self._root),
        )

    def _with_snapshot(self, scenario: Scenario) -> Scenario:
        """Return the test with the path of its snapshot made whole; report a file that it may not read."""
        named = scenario.stage.snapshot
        if named is None:
            return scenario
        beside = Path(named.span.file).parent
        home = self._boundary.home if named.span.file in self._own else real_path(beside)
        path, reason = _snapshot(beside / named.value, home)
        if reason:
            hint = "keep it in the policy's directory and write its path from this document"
            message = f"snapshot {named.value!r}: {reason}"
            self._findings.append(source_file.UNKNOWN_SNAPSHOT.finding(message, named.span, hint=hint, missing=message))
        return replace(scenario, stage=replace(scenario.stage, snapshot=Located(str(path), named.span)))

    def _by_name(self, objects: list[_NamedObject]) -> dict[str, _NamedObject]:
        result: dict[str, _NamedObject] = {}
        for declared in objects:
            first = result.setdefault(declared.name, declared)
            elsewhere = self._separate and declared.document.file != first.document.file
            if first is not declared and not elsewhere:
                message = f"the {declared.document.root['kind']} {declared.name!r} is described twice"
                related = (Related(first.span, "first here"),)
                hint = "give it another name, or put what belongs to one object into one document"
                file, other = (self._files.files[item.document.file] for item in (declared, first))
                if file is not other and file.text == other.text:
                    hint = f"{file.name} is a copy of {other.name}: remove one of them, or name it in `exclude`"
                missing = copied(declared.span, first.span)
                rule = source_file.DUPLICATE_OBJECT
                self._findings.append(rule.finding(message, declared.span, hint=hint, related=related, missing=missing))
        return result

    def _report_several(self, clusters: list[ClusterPolicy]) -> None:
        extending = [[other for other in clusters if self._extends(other, base)] for base in clusters]
        self._separate = any(extending)
        for base, others in ((base, others) for base, others in zip(clusters, extending, strict=True) if others):
            verb = "extends" if len(others) == 1 else "extend"
            message = f"{base.name!r} is no template, but {some([repr(other.name) for other in others])} {verb} it"
            related = tuple(Related(other.span, "extends it") for other in others)
            hint = "write `template: true` in it: else this is a second cluster in one policy"
            self._findings.append(source_file.SEVERAL_CLUSTERS.finding(message, base.span, hint=hint, related=related))
        for cluster in clusters[1:] if not self._separate else ():
            message = f"a second cluster, {cluster.name!r}, in one policy"
            related = (Related(clusters[0].span, "the first"),)
            hint = "keep each cluster in a directory of its own and name that; a base for extends is `template: true`"
            finding = source_file.SEVERAL_CLUSTERS.finding(message, cluster.span, hint=hint, related=related)
            self._findings.append(finding)

    def _extends(self, cluster: ClusterPolicy, base: ClusterPolicy) -> bool:
        found = [self._find(cluster, name) for name in cluster.extends if cluster.document is not base.document]
        return any(isinstance(item, ClusterPolicy) and item.document is base.document for item in found)

    def _find(self, declared: Declared, name: Located[str]) -> Declared | YamlDocument | None:
        file, _, wanted = name.value.partition("#")
        if not file.endswith(files.SUFFIXES):
            return self._here.pick(declared, name.value)
        named = (declared.document.file, file)
        if named not in self._named:
            path = _beside(declared, file)
            self._named[named] = self._base_objects(path, declared, name) if self._boundary.is_file(path) else None
        bases = self._named[named]
        return bases.pick(declared, wanted or None) if bases is not None else None

    def _unknown(self, declared: Declared, name: Located[str]) -> Finding:
        """Return why there is nothing that an `extends` entry names, and what may be meant."""
        file, _, wanted = name.value.partition("#")
        kind = declared.document.root["kind"]
        bases, missing = self._here, f"{kind} {name.value}"
        hint = "name a document of the same kind, or a relative path: base.yaml#NAME"
        if file.endswith(files.SUFFIXES):
            path = _beside(declared, file)
            missing = f"{BASE_FILE}{path}"
            if not self._boundary.is_file(path):
                try:
                    self._boundary.real(path)
                    message = f"there is no file {file!r} to extend"
                    hint = self._file_meant(declared, path, wanted) or "write the path from this document"
                except OSError as error:
                    message = f"{file!r} {error}: gpolicy reads no base there"
                    hint = "keep both in one git repository: a policy may extend all documents of it"
                return source_file.EXTENDS_UNKNOWN.finding(message, name.span, hint=hint, missing=missing)
            bases = self._base_objects(path, declared, name)
            is_here = any(real_path(item.document.file) == real_path(path) for item in self._objects)
            missing = f"{kind} {wanted}" if is_here else f"{missing}#{kind} {wanted}"
        names = set[str]()
        if self._compared < _MOST_COMPARED:
            names = bases.names(type(declared)) - ({declared.name} if bases is self._here else set())
            self._compared += len(names)
        if names and wanted:
            near = closest(wanted, names)  # shown as it is to be written
            documents = some([f"`{file}#{item}`" for item in sorted(names)])
            hint = f"Did you mean `{file}#{near}`?" if near else f"its {kind} documents are {documents}"
        elif not file.endswith(files.SUFFIXES):
            hint = did_you_mean(name.value, names, self._base_meant(declared, name.value) or hint)
        message = f"there is no {kind} {name.value!r} to extend"
        others = bases.kinds(wanted or name.value) if bases is not None else []
        if others:
            message += f", but a {others[0]} of this name"
        return source_file.EXTENDS_UNKNOWN.finding(message, name.span, hint=hint, missing=missing)

    def _file_meant(self, declared: Declared, path: Path, wanted: str) -> str:
        """Return the hint that names a file like `path` beside it, or of its name nearer to the root; none if none."""
        try:
            names = path.parent.iterdir() if self._compared < _MOST_COMPARED else ()
            beside = [item for item in islice(names, MOST_KNOWN) if item.name.endswith(files.SUFFIXES)]
        except OSError:
            beside = []
        self._compared += len(beside)
        alike = {item.stem: item for item in beside}  # a suffix is no likeness
        above = (parent / path.name for parent in path.parent.parents)
        other = alike.get(closest(path.stem, alike) or "") or next(filter(self._boundary.is_file, above), None)
        return _meant(declared, other, wanted) if other is not None and self._boundary.is_file(other) else ""

    def _base_meant(self, declared: Declared, name: str) -> str:
        """Return the hint that names a document of a file that others extend; none where none has this name."""
        picked = ((path, bases.pick(declared, name)) for path, bases in self._extended_files.items())
        path = next((path for path, document in picked if isinstance(document, Declared)), None)
        return _meant(declared, path, name) if path is not None else ""

    @cached_property
    def _extended_files(self) -> dict[Path, Bases]:
        """The first of the files that documents of the policy extend, with what they hold."""
        named: dict[Path, tuple[Declared, Located[str]]] = {}
        for item in self._objects:
            for entry in item.extends:
                file = entry.value.partition("#")[0]
                if file.endswith(files.SUFFIXES) and len(named) < _MOST_EXTENDED:
                    named.setdefault(_beside(item, file), (item, entry))
        return {path: self._base_objects(path, *whose) for path, whose in named.items() if self._boundary.is_file(path)}

    def _base_objects(self, path: Path, declared: Declared, name: Located[str]) -> Bases:
        if not self._bases:  # what each file of the policy holds, by its path without links
            real = {name: real_path(name) for name in self._files.files}
            objects, broken = defaultdict[Path, list[Declared]](list), defaultdict[Path, list[YamlDocument]](list)
            for item in self._objects:
                objects[real[item.document.file]].append(item)
            for document in self._broken:
                broken[real[document.file]].append(document)
            self._bases = {path: Bases(objects[path], broken[path]) for path in real.values()}
        resolved = real_path(path)
        if resolved not in self._bases:
            before = len(self._broken)
            self._bases[resolved] = Bases(self._load_base(path, declared, name), self._broken[before:])
        return self._bases[resolved]

    def _load_base(self, path: Path, declared: Declared, name: Located[str]) -> list[Declared]:
        text = files.read_text(path, self._boundary, self._texts, self._files)
        if text is None:
            return []
        base = _base_file(str(path), text)
        self._findings += base.findings
        self._broken += base.broken
        self._files.files[base.file.name] = base.file
        top, depth = self._ranks.get(declared.document.file, (len(self._ranks), 0))
        self._ranks[base.file.name] = (top, depth - 1)
        alone = {item.name for item in base.objects if isinstance(item, GroupPolicy)} - self._here.names(GroupPolicy)
        for kind in (kind for kind in KINDS.values() if kind.about is None):
            made, others = self._made[kind.field], base.made[kind.field]  # who extends a document takes these as well
            if not kind.is_named:
                made.extend(others)
                continue
            known = {item.name.value: (place, item) for place, item in enumerate(made)}
            for item in others:
                if item.group and item.group.value in alone:
                    continue
                place, other = known.get(item.name.value, (len(made), None))
                if other is None:
                    made.append(item)
                elif other.name.span.file in self._ranks:
                    made[place] = self._later(declared, name, other, item)
        return base.objects

    def _later(self, declared: Declared, name: Located[str], known: _Given, other: _Given) -> _Given:
        """Return which of two guards or tests of one name holds, as for values: of a later base, or of a nearer one."""
        ranks = [self._ranks[item.name.span.file] for item in (known, other)]
        later, earlier = (other, known) if ranks[1] >= ranks[0] else (known, other)
        is_nearer = ranks[0][0] == ranks[1][0] and ranks[0] != ranks[1]
        guards = [(item.about, item.limit) for item in (known, other) if isinstance(item, Guard)]
        if len(set(guards)) > 1 and not is_nearer:
            word = f"guard {known.name.value}"
            message = f"the bases of {declared.name} disagree about {word}; the later one wins"
            first = Related(earlier.name.span, "one base says this")
            related = (first, Related(later.name.span, "a later base says this"))
            hint = f"write {word} in a Guards document of the policy itself, or in only one of the bases"
            self._findings.append(source_file.EXTENDS_CONFLICT.finding(message, name.span, hint=hint, related=related))
        return later


@dataclass(frozen=True, slots=True)
class _BaseFile:
    """A file that documents of other files extend: what others may take from it, and what is wrong with it."""

    file: SourceFile
    objects: list[Declared]
    made: dict[str, list[Any]]
    findings: list[Finding]
    broken: list[YamlDocument]


@lru_cache(maxsize=64)  # hundreds of policies may extend one file
def _base_file(name: str, text: str) -> _BaseFile:
    file = read_yaml(text, name)
    findings, broken = [*file.findings], [file.unfinished] if file.unfinished else []
    return _BaseFile(file, *read_documents(file.documents, findings, broken), findings, broken)


def read_documents(
    documents: Iterable[YamlDocument], findings: list[Finding], broken: list[YamlDocument]
) -> tuple[list[Declared], dict[str, list[Any]]]:
    """Return the objects of documents, and by field what the others declare; add findings and broken documents."""
    objects: list[Declared] = []
    made: dict[str, list[Any]] = {kind.field: [] for kind in KINDS.values() if kind.about is None}
    for document in documents:
        if document.root is None:  # an empty document between two ---
            continue
        if not conforms(document):
            from gpolicy.policy.schema_errors import shape_findings  # noqa: PLC0415 (most documents are sound)

            findings += shape_findings(document)
            broken.append(document)
        else:
            kind = KINDS[document.root["kind"]]
            made.get(kind.field, objects).extend(kind.read(document, findings.append))
    return objects, made


def _beside(declared: Declared, file: str) -> Path:
    return Path(os.path.normpath(Path(declared.document.file).parent / PurePosixPath(file)))


def _meant(declared: Declared, path: Path, name: str) -> str:
    """Return the hint that names a document of another file as `extends` is to be written."""
    file = files.relative_path(str(path), Path(declared.document.file).parent)
    return f"Did you mean `{file}{'#' if name else ''}{name}`?"


def _snapshot(path: Path, home: Path) -> tuple[Path, str]:
    """Return the path of a snapshot, and why it must not be read (or nothing)."""
    try:
        resolved = real_path(path)
        if not resolved.is_relative_to(home):
            return path, "lies outside of the policy's directory"
        if not resolved.is_file():
            return path, "no such file"
        if resolved.stat().st_size > LARGEST_SNAPSHOT:
            return path, f"larger than {LARGEST_SNAPSHOT // 1024**2} MiB"
    except OSError:  # a null byte, a name that is too long
        return path, "cannot be read"
    return Path(os.path.normpath(path)), ""
