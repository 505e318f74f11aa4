"""Find and read the files of a policy, within its boundary: below its root only, even through links.

A policy is a directory or a single file on the command line. Its *home* is that directory, or the directory of the
file. Its *root* is the git work tree around its home; without git, the outermost directory above with a gpolicy.toml;
without either, home and its parent, but no parent such as / or the user's home directory. Within the root, documents
may extend one another. A link must not lead out of that tree, or without one out of home. `.git` is not part of the
tree: it may hold secrets.
"""

import os
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from itertools import chain, islice, pairwise
from os.path import relpath
from pathlib import Path
from typing import Final

from gpolicy import opening
from gpolicy.errors import InputError, RequestError
from gpolicy.findings import Finding, Span
from gpolicy.policy.kinds import KIND_NAMES
from gpolicy.policy.source_file import FILE_NOT_READ, NOT_A_POLICY, UNREADABLE_FILE, SourceFile
from gpolicy.policy.yaml_reader import MAX_BYTES, read_yaml


@dataclass(frozen=True, slots=True)
class Boundary:
    """The directories that a policy may read. `named` is home as given, the others have links resolved."""

    named: Path
    home: Path
    root: Path
    links: Path
    """The directories to which links in the tree may lead."""

    def real(self, name: str | Path) -> Path:
        """Return the file or directory of a name in the policy's tree. Raise OSError if it is outside the boundary."""
        return self._checked(name)[0]

    def read(self, name: str | Path, limit: int) -> bytes:
        """Return the content of a regular file of the policy's tree, at most `limit` bytes. Raise OSError."""
        real, root = self._checked(name)
        return opening.read_below(root, real, limit)

    def is_file(self, name: str | Path) -> bool:
        """Return whether a name leads to a regular file that may be read."""
        try:
            return self.real(name).is_file()
        except OSError:
            return False

    def target(self, name: str | Path) -> opening.FileToWrite:
        """Return the place of a file of the tree for writing. Raise OSError if a link leads there."""
        real, plain = self._resolved(name)
        target = opening.FileToWrite(plain.parent, plain.name)
        if real != plain:
            opening.check_target(target)  # raises a clearer error if it is itself a link
            raise opening.OutsideError("a symbolic link leads there, and gpolicy does not write through links")
        self._checked(name)
        return target

    def _checked(self, name: str | Path) -> tuple[Path, Path]:
        """Return the resolved name, and the directory that it must not leave."""
        real, plain = self._resolved(name)
        root = self.root if real == plain else self.links
        above = len(root.parts)
        if real.parts[:above] != root.parts:
            through = "leads out of" if real == plain else "is a symbolic link out of"
            raise opening.OutsideError(f"{through} {root}")
        if ".git" in real.parts[above:]:
            raise opening.OutsideError("leads to what git keeps for itself")
        return real, root

    def _resolved(self, name: str | Path) -> tuple[Path, Path]:
        """Return the resolved name, and the name without resolving the links in the policy's tree."""
        try:
            whole = os.path.abspath(name)  # noqa: PTH100 (links are not to be followed)
            common = os.path.commonpath((whole, self.named))
            home = self.home if common == str(self.named) else opening.real_path(common)
            rest = whole[len(common) :].lstrip("/")
            plain = home / rest
            is_real = "/" not in rest and not plain.is_symlink()  # most files lie right in a directory of the policy
        except ValueError as error:
            raise OSError(opening.reason(error)) from None
        return plain if is_real else opening.real_path(whole), plain


def boundary(path: Path) -> Boundary:
    """Return the boundary of the policy at `path`, a file or directory. InputError for a planted link on the way."""
    try:
        named = path if path.is_dir() else path.parent
        opening.refuse_planted_links(named)
        home = opening.real_path(named)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {opening.reason(error)}", hint="name its target instead if you trust it") from None
    tree = opening.tree_around(home)
    root = tree or (home if opening.is_common(home) or opening.is_common(home.parent) else home.parent)
    whole = Path(os.path.abspath(named))  # noqa: PTH100 (links are not to be followed)
    return Boundary(named=whole, home=home, root=root, links=tree or home)


def matches_glob(path: str, glob: str) -> bool:
    """Return whether a glob of the settings names a path, or a directory above it. As elsewhere, `*` takes slashes."""
    glob = glob.removeprefix("./").rstrip("/")
    return fnmatchcase(path, glob) or fnmatchcase(path, f"{glob}/*")


def relative_path(file: str, directory: Path) -> str:
    """Return the path of a file from a directory, with slashes; links to directories followed."""
    path = Path(file).absolute()
    return Path(relpath(_real(path.parent) / path.name, _real(directory.absolute()))).as_posix()


_real: Final = cache(opening.real_path)
SUFFIXES = opening.YAML_SUFFIXES
_FIRST_BYTES = 1024
_FIRST_LETTERS = 4096
_LARGEST_UNREAD = 256 * 1024  # bytes of a file that is looked at because of its name
_MOST_UNREAD = 1000  # files that are looked at
_LIKE_YAML: Final = re.compile(r"\.ya?ml|\.(?:yam|json|txt)$", re.IGNORECASE)
_VALUES: Final = re.compile(r"(?:^|\r)(?!---|\.\.\.|%)[ \t]*+[^\s#]", re.MULTILINE)
_OURS: Final = re.compile(
    rf"(?:^|[\r{{,])[^\w\n\r{{,]*+(?:gpolicy|kind[^\w\n\r]{{1,9}}(?:gpolicy|{'|'.join(KIND_NAMES)}))\b",
    re.MULTILINE | re.IGNORECASE,
)
"""What tells, at the place of a key, that a file is meant for gpolicy, also with a slip in it."""
_SET_ASIDE: Final = (
    *("~", ".orig", ".rej", ".swp", ".disabled", ".off"),
    *(".j2", ".tmpl", ".in", ".erb", ".example", ".sample", ".tpl", ".jinja", ".jinja2", ".template", ".dist"),
)
"""Endings of files that editors and patches leave, that are switched off, or that others are made from."""
_NO_QUOTES: Final = str.maketrans("", "", "\"' \t")
MAX_FILES = 10_000
MAX_DEPTH = 64
"""The greatest depth of directories of a policy."""


@dataclass(slots=True)
class FileSet:
    """The files of a policy by name. `findings` are about their YAML and about unreadable files."""

    files: dict[str, SourceFile] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


def policy_files(path: Path, within: Boundary | None = None) -> list[Path]:
    """Return the files of the policy at `path`: the file itself, or all YAML below the directory except hidden files.

    Links to files are included; links to directories are not followed. What `exclude` of the settings names is left
    out. `within` is the boundary, where it is known. Raise InputError if there are no files.
    """
    from gpolicy.policy.settings_file import excluded_at  # noqa: PLC0415 (it imports this module)

    within = within or boundary(path)
    if path.is_file():
        return [path]
    if path.is_symlink() and not path.exists():
        raise InputError(f"{path}: a symbolic link that leads nowhere", hint="name the file or directory itself")
    if not path.exists():
        raise InputError(f"{path}: no such file or directory", hint=opening.path_meant(path))
    if not path.is_dir():
        raise InputError(f"{path}: neither a file nor a directory")
    settings, globs = excluded_at(path, within)
    files = yaml_files(path)
    names = {file: relative_path(str(file), settings.parent) for file in files} if globs else {}
    if files := [file for file in files if not any(matches_glob(names[file], glob) for glob in globs)]:
        return files
    own = (f"is it a file of gpolicy? `gpolicy show {file}` shows one" for file in sorted(path.glob("*.json")))
    unread = (f"{finding.span.file}: {finding.hint}" for finding in unread_files(path, within) if finding.span)
    hint = next(chain(unread, own), "`gpolicy init` writes a first policy")
    raise InputError(f"{path}: no YAML files here", hint=hint)


def yaml_files(directory: Path) -> list[Path]:
    """Return all YAML below a directory except hidden files. InputError where there is too much."""
    return sorted(_walk(directory, lambda name: name.endswith(SUFFIXES)))


def has_policy(directory: Path) -> bool:
    """Return whether a directory holds files of a policy."""
    try:
        return directory.is_dir() and bool(policy_files(directory))
    except InputError:
        return False


def unread_files(directory: Path, within: Boundary) -> Iterator[Finding]:
    """Yield findings about files that begin as a policy does, and have another ending than YAML's or a copy's."""
    for file in sorted(islice(_walk(directory, _may_be_meant, most=None), _MOST_UNREAD)):
        originals = (f"{file.name.partition(suffix)[0]}{suffix}" for suffix in SUFFIXES if suffix in file.name)
        if not any((file.parent / name).exists() for name in originals) and _begins_as_policy(file, within):
            endings = " or ".join(SUFFIXES)
            message = f"the file begins as a policy does, but is not read: its name does not end in {endings}"
            hint = f"let its name end in {SUFFIXES[0]}, or begin with a dot if it is not to count"
            yield FILE_NOT_READ.finding(message, _first(file), hint=hint)


def _may_be_meant(name: str) -> bool:
    is_like = "." not in name or _LIKE_YAML.search(name) is not None
    return is_like and not name.endswith((*SUFFIXES, *_SET_ASIDE))


def _begins_as_policy(file: Path, within: Boundary) -> bool:
    """Return whether the first words of a file that are no comment are the head of a policy's document."""
    try:
        text = within.read(file, _LARGEST_UNREAD).decode("utf-8-sig", errors="replace")
    except OSError:
        return False
    lines = (line for line in text[:_FIRST_LETTERS].splitlines() if line.strip())
    begun = [line for line in lines if not line.startswith(("#", "---", "%"))]
    words = "".join(begun[:3]).translate(_NO_QUOTES).lstrip("[{")
    return words.startswith(("gpolicy:", "kind:")) and "gpolicy:v1" in words


def policy_roots(path: Path) -> list[Path]:
    """Return the policies at `path`: `path` itself, or the directories below it that contain a Cluster.

    Directories are separate policies if at least two of them contain a `Cluster` document that is not a template, and
    neither contains the other. Raise InputError if there is nothing to read.
    """
    files = policy_files(path)
    if path.is_file() or len({file.parent for file in files}) < 2:
        return [path]
    within = boundary(path)
    homes = sorted({file.parent for file in files if _has_cluster(file, within)})
    nested = any(below.is_relative_to(home) for home, below in pairwise(homes))  # what lies below follows at once
    return homes if len(homes) > 1 and not nested else [path]


def only_root(path: Path) -> Path:
    """Return the one policy at `path`. Raise RequestError if there are several."""
    roots = policy_roots(path)
    if len(roots) > 1:
        raise RequestError(f"{path} holds {len(roots)} policies: {', '.join(map(str, roots))}", hint="name one of them")
    return roots[0]


def _has_cluster(file: Path, within: Boundary) -> bool:
    try:
        text = within.read(file, MAX_BYTES).decode("utf-8-sig", errors="replace")
    except OSError:
        return False
    if "Cluster" not in text:  # most files are about groups: they are not parsed here
        return False
    source = read_yaml(text, str(file))
    roots = [document.root for document in (*source.documents, source.unfinished) if document is not None]
    mappings = (root for root in roots if isinstance(root, dict))
    return any(root.get("kind") == "Cluster" and root.get("template") is not True for root in mappings)


def is_part(path: Path) -> bool:
    """Return whether `path` is one file among others that may belong to the same policy."""
    if not path.is_file():
        return False
    try:
        with os.scandir(path.parent) as entries:
            return any(entry.name.endswith(SUFFIXES) and entry.name != path.name for entry in entries)
    except OSError:
        return True


def _walk(directory: Path, is_wanted: Callable[[str], bool], *, most: int | None = MAX_FILES) -> Iterator[Path]:
    """Yield the files below a directory with wanted names, hidden ones aside. Raise InputError for more than `most`."""
    seen = 0
    for parent, directories, names in os.walk(directory, onerror=_unreadable):
        directories[:] = sorted(name for name in directories if not name.startswith("."))
        if len(Path(parent).parts) - len(directory.parts) >= MAX_DEPTH and directories:
            message = f"{directory}: directories are nested more than {MAX_DEPTH} deep"
            raise InputError(message, hint="is this the right one?")
        links = [name for name in directories if is_wanted(name) and (Path(parent) / name).is_symlink()]
        for name in (*names, *links):
            if is_wanted(name) and not name.startswith("."):
                seen += 1
                if most is not None and seen > most:
                    raise InputError(f"{directory}: more than {MAX_FILES} YAML files; is this the right directory?")
                yield Path(parent) / name


def _unreadable(error: OSError) -> None:
    raise InputError(f"{error.filename}: {opening.reason(error)}", hint="gpolicy judges a policy only as a whole")


def read_files(paths: Sequence[Path], within: Boundary, texts: Mapping[str, str] | None = None) -> FileSet:
    """Read `paths` in the boundary, or `texts` in place of files of these names. Unreadable files are findings."""
    result = FileSet()
    for path in paths:
        text = read_text(path, within, texts, result)
        if text is None:
            continue
        is_foreign = "\0" not in text and _VALUES.search(text) is not None and _OURS.search(text) is None
        file = SourceFile(str(path), text, is_foreign=True) if is_foreign else read_yaml(text, str(path))
        result.files[str(path)] = file
        result.findings += [_foreign_finding(path, within)] if is_foreign else file.findings
    return result


def _foreign_finding(path: Path, within: Boundary) -> Finding:
    from gpolicy.policy.settings_file import excluded_at  # noqa: PLC0415 (it imports this module)

    settings, globs = excluded_at(within.named, within)
    name = relative_path(str(path), settings.parent)
    place = "at the top" if settings.name == opening.SETTINGS_NAME else "below `[tool.gpolicy]`"
    cure = f'Add "{name}" to `exclude`' if globs else f'Write `exclude = ["{name}"]` {place}'
    hint = f"is it of another program? {cure} of {settings.name}"
    return NOT_A_POLICY.finding("the file looks like no policy: `gpolicy: v1` is not in it", _first(path), hint=hint)


def _first(path: Path) -> Span:
    return Span(str(path), 1, 1, 1, 1)


def read_text(path: Path, within: Boundary, texts: Mapping[str, str] | None, result: FileSet) -> str | None:
    """Return the text of a file, or the one that replaces it; None, and a finding in `result`, if it has none."""
    if texts and str(path) in texts:
        return texts[str(path)]
    try:
        data = within.read(path, MAX_BYTES)
    except OSError as error:
        refused = isinstance(error, PermissionError)
        hint = "make it readable for you" if refused else "put a file with YAML in its place, or remove it"
        result.findings.append(UNREADABLE_FILE.finding(opening.reason(error), _first(path), hint=hint))
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        result.findings.append(_encoding_finding(str(path), error, result))
        return None


def _encoding_finding(name: str, error: UnicodeDecodeError, result: FileSet) -> Finding:
    data = error.object  # without a byte order mark of UTF-8
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) or b"\0" in data[:_FIRST_BYTES]:
        message, hint = "not UTF-8 text: it is UTF-16, or no text at all", "save the file as UTF-8, if it is YAML"
        return UNREADABLE_FILE.finding(message, Span(name, 1, 1, 1, 1), hint=hint)
    before = data[: error.start].decode()
    file = SourceFile(name, before + data[error.start :].decode("utf-8", "replace"))  # without documents: to be shown
    result.files[name] = file
    message = f"not UTF-8 text: byte {data[error.start]:#04x}"
    hint = "save the file as UTF-8; for most old files: iconv -f latin1 -t utf-8"
    return UNREADABLE_FILE.finding(message, file.span(len(before), len(before) + 1), hint=hint)
