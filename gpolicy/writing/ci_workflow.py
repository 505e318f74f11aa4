"""The workflow that checks and plans a policy in CI, from a template of each service."""

from __future__ import annotations

import re
from collections.abc import Iterator
from os.path import relpath
from pathlib import Path
from typing import Final

from gpolicy.data import data_directory
from gpolicy.errors import RequestError
from gpolicy.guessing import did_you_mean_one_of
from gpolicy.opening import real_path, work_tree
from gpolicy.writing.new_files import write_new_file
from gpolicy.writing.yaml_text import scalar

_PLACES: Final = {"github": ".github/workflows/policy.yml", "gitlab": ".gitlab-ci.yml"}
_TO_SET: Final = "# set: "
_STATE: Final = re.compile(r"(?m)(?:^ *# set: where your cluster is.*\n)?^( *)state: .*\n")
"""The address of one cluster, with what there is to say of it."""


def workflow_file(service: str, policy: Path) -> Path:
    """Return the file for the workflow of a policy: at the top of its git work tree, or here; RequestError if taken."""
    if service not in _PLACES:
        hint = did_you_mean_one_of(service, "services", _PLACES)
        raise RequestError(f"there is no CI service `{service}`", hint=hint)
    file = (work_tree(real_path(policy)) or real_path(Path())) / _PLACES[service]
    if file.exists():
        hint = "gpolicy overwrites nothing: move it away, or add to it what docs/guides/ci.md shows"
        raise RequestError(f"{relpath(file)}: exists already", hint=hint)
    return file


def write_workflow(service: str, policy: Path, file: Path, *, clusters: bool) -> Iterator[str]:
    """Write the workflow of a policy to a new file, and yield what to set in it, by line.

    `clusters`: settings beside the policy name clusters, all of which are planned.
    """
    top = file.parents[_PLACES[service].count("/")]
    text = (data_directory("templates") / f"workflow.{service}.yml").read_text(encoding="utf-8")
    text = text.replace("path: policies", f"path: {scalar(relpath(real_path(policy), top))}")
    text = _STATE.sub(r"\1clusters: all\n", text) if clusters else text
    file.parent.mkdir(parents=True, exist_ok=True)
    write_new_file(file, text)
    for number, line in enumerate(text.splitlines(), start=1):
        if _TO_SET in line:
            below = line.lstrip().startswith("#") and not line.startswith("#")  # it is about the line below
            yield f"  line {number + below}: {line.partition(_TO_SET)[2]}"
