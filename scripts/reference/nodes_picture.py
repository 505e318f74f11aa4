"""The picture on the first page of the docs: what an evacuation does to nodes, drawn by the macro of every page."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from gpolicy.cluster.sources import SourceOptions, read_state
from gpolicy.evacuate.evacuating import find_evacuation
from gpolicy.evacuate.evacuation import EvacuationRequest
from gpolicy.report.answer import rough_size, size
from gpolicy.report.pictures import group_pictures

ROOT: Final = Path(__file__).resolve().parents[2]
_SVG: Final = """\
{% import "pictures.html.j2" as pictures with context -%}
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {{ 40 + nodes|length * 44 }}" role="img">
<title>Memory of four nodes before and after node1 is emptied: used by instances, reserved for the loss of a node, \
free.</title>
<style>
text { font: 13px system-ui, "DejaVu Sans", sans-serif; fill: #747d86; }
.own { fill: #8f979f; } .used { fill: #2f6fc4; } .reserved { fill: #eec468; } .free { fill: #8f979f40; }
.before { opacity: .55; }
</style>
{% for x, kind, words in legend %}
<rect class="{{ kind }}" x="{{ x }}" y="7" width="14" height="10"/><text x="{{ x + 20 }}" y="17">{{ words }}</text>
{% endfor %}
{% for node in nodes %}
<g transform="translate(70 {{ 36 + loop.index0 * 44 }})">
<text x="-10" y="20" text-anchor="end">{{ node.name.partition(".")[0] }}</text>
<g class="before">{{ pictures.stack(node.uses[0], scale, 480, 0, 7) }}</g>
{{ pictures.stack(node.uses[-1], scale, 480, 9, 18) }}
<text x="490" y="20">{{ rough_size(node.uses[0].free) }} → {{ rough_size(node.uses[-1].free) }} free</text>
</g>
{% endfor %}
</svg>
"""
_LEGEND: Final = (
    (70, "used", "instances"),
    (170, "reserved", "reserved for the loss of a node (N+1)"),
    (450, "free", "free"),
)


def nodes_picture() -> str:
    """Return the picture as a file of its own."""
    state = read_state(f"snapshot:{ROOT / 'policies/two-groups.snapshot.json'}", SourceOptions())
    report = find_evacuation(state, EvacuationRequest(nodes="node1.example.org"))
    groups = group_pictures(report.nodes_before, report.nodes_after)
    nodes = next(group.nodes for group in groups if group.name == "default")
    environment = Environment(
        loader=FileSystemLoader(ROOT / "templates", encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals |= {"size": size, "rough_size": rough_size}
    scale = max(use.total + use.short for node in nodes for use in node.uses)
    return environment.from_string(_SVG).render(nodes=nodes, scale=scale, legend=_LEGEND)
