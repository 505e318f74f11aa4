"""Time start-up and `check`, side by side with check-jsonschema on the same policies, as ratios in one run.

Run `scripts/venv dev && .venv/bin/python benchmarks/start_up.py` (or any Python that has the dependencies; the checkout
itself need not be installed). Every figure is the best and the median of several
fresh processes: whole commands, as a user waits for them.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

from checkout import ROOT
from measuring import run

RUNS = 7

GROUP = """---
gpolicy: v1
kind: NodeGroup
name: group{number}
alloc_policy: preferred
ipolicy:
  vcpu-ratio: 4
  spindle-ratio: inherit
  disk-templates: [drbd, plain]
  minmax:
    - name: large
      min: {{memory-size: 8G, cpu-count: 8, disk-size: 80G, disk-count: 1, nic-count: 1, spindle-use: 4}}
      max: {{memory-size: 15G, cpu-count: 15, disk-size: 150G, disk-count: 8, nic-count: 8, spindle-use: 8}}
    - name: small
      min: {{memory-size: 1G, cpu-count: 1, disk-size: 10G, disk-count: 1, nic-count: 1, spindle-use: 1}}
      max: {{memory-size: 7G, cpu-count: 7, disk-size: 70G, disk-count: 8, nic-count: 8, spindle-use: 3}}
diskparams:
  drbd: {{resync-rate: 60M, metavg: xenvg}}
ndparams: {{spindle_count: 8}}
nodes: ["node{number}-*"]
"""
CLUSTER = "gpolicy: v1\nkind: Cluster\nname: bench.example.org\nenabled_disk_templates: [drbd, plain]\n"


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        policies = {
            "two-groups example": ROOT / "policies" / "two-groups",
            "10,000 lines (500 groups)": _write(directory / "ten-thousand.yaml", groups=500),
            "1,000 groups": _write(directory / "thousand-groups.yaml", groups=1000),
        }
        gpolicy = [sys.executable, "-m", "gpolicy"]
        print(f"{'command':44} {'best':>8} {'median':>8}   check-jsonschema   ratio")
        _row("gpolicy --version", [*gpolicy, "--version"], None)
        for title, path in policies.items():
            files = sorted(path.rglob("*.yaml")) if path.is_dir() else [path]
            _row(f"gpolicy check: {title}", [*gpolicy, "check", str(path)], one_document_each(files, directory))
    return 0


def _write(path: Path, *, groups: int) -> Path:
    path.write_text(CLUSTER + "".join(GROUP.format(number=number) for number in range(groups)))
    return path


def one_document_each(files: list[Path], directory: Path) -> list[str]:
    """Return the check-jsonschema command for the same documents: it reads one document a file, as a JSON list."""
    import json

    from gpolicy.policy.conformance import whole_schema
    from gpolicy.policy.yaml_reader import read_yaml

    documents = [document.root for file in files for document in read_yaml(file.read_text(), str(file)).documents]
    whole = directory / "documents.yaml"
    whole.write_text(json.dumps(documents, indent=1))
    schema = whole_schema()
    definitions = schema.pop("definitions")
    del schema["$schema"]
    listing = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "array",
        "items": schema,
        "definitions": definitions,
    }
    listed = directory / "list.json"
    listed.write_text(json.dumps(listing))
    return [sys.executable, "-m", "check_jsonschema", "--schemafile", str(listed), str(whole)]


def _row(title: str, command: list[str], peer: list[str] | None) -> None:
    ours = _times(command)
    line = f"{title:44} {min(ours):7.3f}s {statistics.median(ours):7.3f}s"
    if peer is not None:
        theirs = _times(peer)
        line += f"   {statistics.median(theirs):15.3f}s {statistics.median(theirs) / statistics.median(ours):6.1f}x"
    print(line, flush=True)


def _times(command: list[str]) -> list[float]:
    return [run(command).clock for _ in range(RUNS)]


if __name__ == "__main__":
    sys.exit(main())
