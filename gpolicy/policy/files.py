"""Find and read the files of a policy."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gpolicy.errors import InputError
from gpolicy.findings import Finding, Span
from gpolicy.policy.structure import UNREADABLE_FILE
from gpolicy.policy.yaml_document import YamlDocument
from gpolicy.policy.yaml_reader import MAX_BYTES, read_yaml

SUFFIXES = (".yaml", ".yml")
MAX_FILES = 10_000


@dataclass(slots=True)
class FileSet:
    """What the files of a policy hold. `sources` are their texts, to show the lines that findings are about."""

    documents: list[YamlDocument] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)


def policy_files(path: Path) -> list[Path]:
    """Return the files of the policy at `path`: the file itself, or all YAML below the directory, hidden ones aside.

    Raise InputError when there is nothing to read.
    """
    if path.is_file():
        return [path]
    if not path.exists():
        raise InputError(f"{path}: no such file or directory")
    if not path.is_dir():
        raise InputError(f"{path}: neither a file nor a directory")
    files = sorted(_walk(path))
    if not files:
        raise InputError(f"{path}: no YAML files here", hint="`gpolicy init` writes a first policy")
    return files


def is_part(path: Path) -> bool:
    """Return whether `path` is one file among others that may belong to the same policy."""
    if not path.is_file():
        return False
    try:
        with os.scandir(path.parent) as entries:
            return any(entry.name.endswith(SUFFIXES) and entry.name != path.name for entry in entries)
    except OSError:
        return True


def _walk(directory: Path) -> Iterator[Path]:
    seen = 0
    for parent, directories, names in os.walk(directory):
        directories[:] = sorted(name for name in directories if not name.startswith("."))
        for name in names:
            if name.endswith(SUFFIXES) and not name.startswith("."):
                seen += 1
                if seen > MAX_FILES:
                    raise InputError(f"{directory}: more than {MAX_FILES} YAML files; is this the right directory?")
                yield Path(parent) / name


def read_files(paths: Iterable[Path], texts: Mapping[str, str] | None = None) -> FileSet:
    """Read `paths`. What cannot be read is a finding, not the end.

    `texts` are read in place of what is in the files of these names.
    """
    result = FileSet()
    for path in paths:
        name = str(path)
        text = texts[name] if texts and name in texts else _read(path, result)
        if text is None:
            continue
        reading = read_yaml(text, name)
        result.sources[name] = text
        result.documents += reading.documents
        result.findings += reading.findings
    return result


def _read(path: Path, result: FileSet) -> str | None:
    place = Span(str(path), 1, 1, 1, 1)
    try:
        return _bounded(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"not UTF-8 text (byte {error.start})"
        result.findings.append(UNREADABLE_FILE.finding(message, place, hint="is this a YAML file?"))
    except OSError as error:
        result.findings.append(UNREADABLE_FILE.finding(error.strerror or str(error), place))
    return None


def _bounded(path: Path) -> bytes:
    if not path.is_file():  # a pipe or a device could block for ever
        raise OSError("not a regular file")
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise OSError(f"larger than {MAX_BYTES // 1024**2} MiB")
    return data
