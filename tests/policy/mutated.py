"""Documents of policies: correct ones, and ones with an error."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from gpolicy.checking.catalogue import CATALOGUE
from gpolicy.policy.files import boundary, policy_files, read_files
from gpolicy.policy.yaml_reader import read_yaml

REPOSITORY = Path(__file__).resolve().parents[2]


def sound_documents() -> list[Any]:
    """Return documents of every kind: all examples of the rules, and the worked examples."""
    examples = [document.root for info in CATALOGUE for document in read_yaml(info.text.good, "f").documents]
    files = policy_files(REPOSITORY / "policies") if (REPOSITORY / "policies").is_dir() else []
    worked_files = read_files(files, boundary(REPOSITORY / "policies")).files.values()
    worked = [document.root for file in worked_files for document in file.documents]
    # plain values, without the places that the reader's own mappings hold
    return [json.loads(json.dumps(document)) for document in (*examples, *worked) if document is not None]


DOCUMENTS = sound_documents()
ODD_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2),
    st.integers(),
    st.floats(),
    st.sampled_from(["", "inherit", "default", "1G", "4 MiB", "1.5", "plain", "drbd", "5%", "2026-01-01", "a" * 300]),
    st.text(max_size=8),
    st.lists(st.sampled_from(["plain", "drbd", "x", 1, True, None]), max_size=3),
    st.dictionaries(st.sampled_from(["min", "max", "raw", "name", "x"]), st.integers(0, 3), max_size=2),
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    below = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    return [path, *(place for key, item in below for place in places(item, (*path, key)))]


def parent(document: Any, path: tuple[Any, ...]) -> Any:
    for step in path[:-1]:
        document = document[step]
    return document


@st.composite
def mutations(draw: st.DrawFn) -> Any:
    """Return a sound document in which up to three things are replaced, removed, added or doubled."""
    document = copy.deepcopy(draw(st.sampled_from(DOCUMENTS)))
    for _ in range(draw(st.integers(0, 3))):
        path = draw(st.sampled_from(places(document)))
        if not path or path == ("kind",):
            continue
        holder = parent(document, path)
        action = draw(st.sampled_from(["replace", "remove", "add", "double"]))
        if action == "replace":
            holder[path[-1]] = draw(ODD_VALUES)
        elif action == "remove":
            del holder[path[-1]]
        elif isinstance(holder, dict):
            holder[draw(st.sampled_from(["name", "template", "nonsense", "vcpu-ratio", "tags"]))] = draw(ODD_VALUES)
        else:
            holder.append(holder[path[-1]] if action == "double" else draw(ODD_VALUES))
    return document
