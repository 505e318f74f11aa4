"""Sound inputs of each target, where damage begins, and the words that damage puts into them."""

from __future__ import annotations

import gzip
import itertools
import json
import tempfile
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.hostile.promises import gpolicy

if TYPE_CHECKING:
    from gpolicy.cluster.state import ClusterState

ROOT: Final = Path(__file__).resolve().parents[2]
DATA: Final = ROOT / "tests" / "data"
CLUSTERS: Final = ("base", "full", "exclusive", "rich")

POLICY: Final = """\
gpolicy: v1
kind: Cluster
name: cluster.example.org
ganeti_version: "3.0"
enabled_disk_templates: [drbd, plain]   # gpolicy: ignore[GP302] as it is
ipolicy:
  minmax:
    - name: large
      min: {memory-size: 16G, cpu-count: 4, disk-size: 100G, disk-count: 1, nic-count: 1, spindle-use: 1}
      max: {memory-size: 64G, cpu-count: 16, disk-size: 1T, disk-count: 8, nic-count: 8, spindle-use: 8}
    - name: small
      min: {memory-size: 1G, cpu-count: 1, disk-size: 10G, disk-count: 1, nic-count: 1, spindle-use: 1}
      max: {memory-size: 20G, cpu-count: 4, disk-size: 101G, disk-count: 4, nic-count: 4, spindle-use: 2}
  std: {memory-size: 4G, cpu-count: 2, disk-size: 40G, disk-count: 1, nic-count: 1, spindle-use: 1}
  vcpu-ratio: 4
---
# gpolicy: ignore[spec-overlap] names a rule
gpolicy: v1
kind: NodeGroup
name: default
ipolicy: {vcpu-ratio: 4, spindle-ratio: inherit}
tags: [a, b]
---
gpolicy: v1
kind: Guards
guards:
  - {name: most, max_changes: 40}
  - {name: fits, at_least: 1, spec: small}
  - {name: loss, capacity_loss: {at_most: 10%}}
  - {name: new, newly_violating: 0}
  - {name: dead, node_failures: 1}
"""
_MORE: Final = """\
---
gpolicy: v1
kind: NodeGroup
name: new
alloc_policy: last_resort
---
gpolicy: v1
kind: NodeSet
name: all
nodes: ["*"]
ndparams: {spindle_count: 3, oob_program: inherit}
tags: [rack:a]
---
gpolicy: v1
kind: TagRules
owns: [iextags]
exclusion: [service]
"""


@cache
def policies() -> list[bytes]:
    from gpolicy.checking.catalogue import CATALOGUE

    files = [path.read_bytes() for path in sorted((ROOT / "policies").rglob("*.yaml"))]
    examples = [text.encode() for rule in CATALOGUE for text in (rule.text.bad, rule.text.good) if text]
    return [*files, *examples, POLICY.encode()]


def directories() -> list[bytes]:
    """Return policies of several files, with `extends` across them."""
    result = []
    for home in sorted({path.parent for path in (ROOT / "policies").rglob("*.yaml")}):
        files = sorted(home.rglob("*.yaml"))
        pieces = [b"#=== %s\n%s" % (path.relative_to(home).as_posix().encode(), path.read_bytes()) for path in files]
        result.append(b"\n".join(pieces)[:60_000])
    extending = (
        b"gpolicy: v1\nkind: Cluster\nname: c\nextends: base.yaml#b\nganeti_version: '3.0'\n---\ngpolicy: v1\n"
        b"kind: NodeGroup\nname: g\nextends: [one, two]\n---\ngpolicy: v1\nkind: NodeGroup\nname: one\ntemplate: true\n"
        b"ipolicy: {vcpu-ratio: 2}\n---\ngpolicy: v1\nkind: NodeGroup\nname: two\ntemplate: true\nextends: one\n"
        b"nodes: ['a*']\n#=== base.yaml\ngpolicy: v1\nkind: Cluster\nname: b\ntemplate: true\nextends: [sub/d.yaml#d]\n"
        b"#=== sub/d.yaml\ngpolicy: v1\nkind: Cluster\nname: d\ntemplate: true\nextends: ../policy.yaml#c\n"
    )
    return [*result, extending, extending, extending]


def scenarios() -> list[bytes]:
    result = []
    for path in sorted((ROOT / "policies").rglob("tests.yaml")):
        rest = [file.read_bytes() for file in sorted(path.parent.rglob("*.yaml")) if file != path]
        text = path.read_bytes()
        if len(text) < 6000:
            result.append(b"\n---\n".join([text, *rest]))
    return [*result, *(text for text in policies() if b"kind: Test" in text or b"kind: Guards" in text)]


def settings() -> list[bytes]:
    toml = (
        b'[check]\nselect = ["GP2", "spec-overlap"]\nignore = ["GP302"]\nfail-on = "warning"\nbaseline = "base.json"\n'
        b'[check.severity]\nGP201 = "info"\n[check.per-file-ignores]\n"groups/*.yaml" = ["GP3"]\n'
        b"[rules.spec-gap]\nmost = 3\n"
    )
    project = b"".join(
        b"[tool.gpolicy." + line[1:] if line.startswith(b"[") else line for line in toml.splitlines(keepends=True)
    )
    baseline = b'{"format_version": "1.0", "findings": [{"rule": "GP201", "file": "policy.yaml", "fingerprint": "00"}]}'
    return [
        toml,
        toml + b"#=== base.json\n" + baseline,
        b'[check]\nbaseline = "base.json"\n#=== base.json\n' + baseline,
        b"#=== pyproject.toml\n[project]\nname = 'x'\n" + project,
        b"[check]\n#=== policy.yaml\n" + POLICY.encode(),
        b"#=== policy.yaml\n# gpolicy: ignore-file[GP2]\n" + POLICY.encode(),
    ]


def suppressed() -> list[bytes]:
    """Return policies with comments that suppress findings."""
    comments = (b"ignore[GP201]", b"ignore[spec-overlap, GP3] why", b"ignore-file[GP2]")
    result = []
    for number, text in enumerate(policies()):
        lines = text.split(b"\n")
        lines[(number * 7) % len(lines)] += b"  # gpolicy: " + comments[number % 3]
        lines.insert((number * 3) % len(lines), b"# gpolicy: " + comments[(number + 1) % 3])
        result.append(b"\n".join(lines))
    return result


def configs() -> list[bytes]:
    return [(DATA / "clusters" / name / "config.data").read_bytes() for name in CLUSTERS]


def snapshots() -> list[bytes]:
    from gpolicy.cluster.htools_sources import parse_text
    from gpolicy.cluster.state_files import dump_snapshot, parse_config

    states = [parse_config(text, where="c", source="config:c") for text in configs()]
    states += [parse_text(text.decode(), where="t", source="text:t") for text in texts()]
    return [dump_snapshot(state) for state in states]


def texts() -> list[bytes]:
    result = [(DATA / "clusters" / "full" / "htools.data").read_bytes()]
    with gzip.open(DATA / "allocator" / "hspace-hail-score.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            found = [value for value in _strings(json.loads(line)) if value.count("|") > 20 and len(value) < 3000]
            result += [text.encode() for text in found[:1]]
            if len(result) > 40:
                break
    return result


def _strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for below in value.values() for text in _strings(below)]
    if isinstance(value, list):
        return [text for below in value for text in _strings(below)]
    return [value] if isinstance(value, str) else []


@cache
def plans() -> list[bytes]:
    """Return plans of a policy on the recorded clusters."""
    result = []
    with tempfile.TemporaryDirectory() as name:
        policy, file = Path(name) / "policy.yaml", Path(name) / "plan.json"
        unguarded = POLICY[: POLICY.index("---\ngpolicy: v1\nkind: Guards")]
        kept = [line for line in unguarded.splitlines(keepends=True) if "enabled_disk_templates" not in line]
        policy.write_text("".join(kept) + _MORE, encoding="utf-8")
        for cluster in CLUSTERS:
            source = f"config:{DATA / 'clusters' / cluster / 'config.data'}"
            code, _ = gpolicy("plan", policy, "-s", source, "--no-impact", "--allow", "right-cluster", "--save", file)
            if code == 0:
                result.append(file.read_bytes())
    return result


def journal_of(events: Iterable[tuple[str, dict[str, Any]]]) -> list[bytes]:
    """Return the lines of a journal that begins, with right checksums."""
    from gpolicy.apply.journals import BEGIN, JOURNAL_FILE, event_line

    begin: dict[str, Any] = {
        "kind": JOURNAL_FILE.kind, "format_version": JOURNAL_FILE.version, "journal": "1234abcd", "direction": "apply",
        "plan_digest": "sha256:" + "0" * 64, "cluster": "c",
    }  # fmt: skip
    lines, checksum = [], ""
    for name, fields in itertools.chain([(BEGIN, begin)], events):
        line, checksum = event_line(name, begin if name == BEGIN else fields, checksum)
        lines.append(line)
    return lines


def event_names() -> list[str]:
    """Return the names of the events of a journal."""
    from gpolicy.apply.journals import BEGIN, END, STEP_EVENTS

    return [BEGIN, *(event.name for event in STEP_EVENTS), END.name]


def journals() -> list[bytes]:
    """Return a journal with every event, and one that is cut off."""
    step: dict[str, Any] = {
        "step": "1", "mark": "gpolicy:1", "job": 7, "text": "a", "done": ["cluster a.b"], "serials": {"cluster": 3},
        "outcome": "done",
    }  # fmt: skip
    whole = b"".join(journal_of((name, step) for name in event_names()))
    return [whole, whole[:-9], b""]


def list_storage() -> list[bytes]:
    return [(DATA / "clusters" / "volumes" / "list-storage.txt").read_bytes()]


@cache
def volumes_state() -> ClusterState:
    """Return the cluster whose physical volumes are listed."""
    from gpolicy.cluster.state_files import read_config_file

    return read_config_file(DATA / "clusters" / "volumes" / "config.data")


def simulated() -> list[bytes]:
    return [b"p,20,2t,64g,16,4", b"preferred,3,100g,8g,4;a,2,1t,1g,1,3,True", b"u,1,1,1,1,1,False"]


def sizes() -> list[bytes]:
    return [b"memory=4G vcpus=2 disk=20G", b"name=a tags=x,y disks=1G,2G template=plain group=group-01 nics=2"]


def vocabulary() -> list[bytes]:
    """Return the keys, words and patterns of the schemas, as YAML would have them."""
    from gpolicy.policy.conformance import whole_schema

    found: set[str] = set()

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            found.update(value.get("properties", {}))
            found.update(
                str(word) for word in (*value.get("enum", ()), *([value["const"]] if "const" in value else ()))
            )
        for below in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            walk(below)

    walk(whole_schema())
    return [word.encode() + end for word in sorted(found) for end in (b"", b": ", b": {a: 1}\n")]


def json_words() -> list[bytes]:
    return [b'"%s"' % word for word in vocabulary() if not word.endswith((b" ", b"\n"))]


def toml_words() -> list[bytes]:
    rules = words('"GP2" "GP201" "spec-overlap" "GP" "GP001" "nonsense" "info" "error" "off"')()
    keys = [b"select = ", b"ignore = ", b"severity", b"[check]\n", b"[rules.spec-gap]\n", b"fail-on = ", b"baseline = "]
    odd = words("1979-05-27T07:32:00Z inf 0xff ''' \"\"\" {a=1} true")()
    return [*rules, *keys, *odd, b"[[check]]\n", b"a.b.c = 1\n"]


def words(text: str) -> Callable[[], list[bytes]]:
    """Return what gives the words of a text."""
    return lambda: text.encode().split()
