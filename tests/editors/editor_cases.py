"""What an editor is asked in the tests: texts with a cursor, by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from gpolicy.writing.documents import SCHEMA_FILE, modelines

if TYPE_CHECKING:
    from tests.editors.language_server import LanguageServer

MODELINES: Final = "".join(f"{line}\n" for line in modelines(SCHEMA_FILE))
_CLUSTER: Final = "gpolicy: v1\nkind: Cluster\nname: c\n"
_GROUP: Final = "gpolicy: v1\nkind: NodeGroup\nname: g\n"
_GUARDS: Final = "gpolicy: v1\nkind: Guards\nguards:\n"
_TESTS: Final = "gpolicy: v1\nkind: Test\ntests:\n  - name: a\n"


@dataclass(frozen=True)
class Case:
    """`ask` is what is asked of the server; `text` has the cursor (`|`) unless it asks for marks."""

    ask: Literal["complete", "hover", "marks"]
    text: str


CASES: Final = {
    "an empty file": Case("complete", "|"),
    "the kinds": Case("complete", "gpolicy: v1\nkind: |"),
    "a group's keys": Case("complete", _GROUP + "|"),
    "a cluster's keys": Case("complete", _CLUSTER + "|"),
    "the instance policy": Case("complete", _GROUP + "ipolicy:\n  |"),
    "a size": Case("complete", _GROUP + "ipolicy:\n  minmax:\n    - |"),
    "a bound": Case("complete", _GROUP + "ipolicy:\n  minmax:\n    - min:\n        |"),
    "disk templates": Case("complete", _GROUP + "ipolicy:\n  disk-templates: [|]"),
    "allocation policies": Case("complete", _GROUP + "alloc_policy: |"),
    "a yes or no of a group": Case("complete", _GROUP + "ndparams:\n  exclusive_storage: |"),
    "DRBD": Case("complete", _CLUSTER + "diskparams:\n  drbd:\n    |"),
    "a guard": Case("complete", _GUARDS + "  - name: a\n    |"),
    "what a test does": Case("complete", _TESTS + "    |"),
    "what comes of placing": Case("complete", _TESTS + "    place: {spec: a}\n    expect:\n      |"),
    "what comes of counting": Case("complete", _TESTS + "    capacity: {}\n    expect:\n      |"),
    "why nothing fits": Case("complete", _TESTS + "    place: {spec: a}\n    expect:\n      because: |"),
    "owned tags": Case("complete", "gpolicy: v1\nkind: TagRules\nowns:\n  - |"),
    "on hover: a ratio": Case("hover", _GROUP + "ipolicy:\n  vcpu-|ratio: 4\n"),
    "on hover: a word": Case("hover", _GROUP + "alloc_policy: last|_resort\n"),
    "on hover: a kind": Case("hover", "gpolicy: v1\nkind: Node|Group\nname: g\n"),
    "wrong: a misspelt key": Case("marks", _GROUP + "ipolicy:\n  vcpu-ration: 4\n"),
    "wrong: a size": Case("marks", _GROUP + "hardware: {memory: 64Q}\n"),
    "wrong: a rate": Case("marks", _CLUSTER + "diskparams: {drbd: {resync-rate: fast}}\n"),
    "wrong: a word": Case("marks", _GROUP + "alloc_policy: prefered\n"),
    "wrong: a template": Case("marks", _GROUP + "ipolicy:\n  disk-templates: [drdb]\n"),
    "wrong: a tag": Case("marks", _GROUP + "tags: [a b]\n"),
    "wrong: half a bound": Case("marks", _GROUP + "ipolicy:\n  minmax:\n    - min: {memory-size: 1G}\n      max: {}\n"),
    "wrong: no name": Case("marks", "gpolicy: v1\nkind: NodeGroup\n"),
    "wrong: the kind": Case("marks", "gpolicy: v1\nkind: Nodegroup\nname: g\n"),
    "wrong: a day": Case(
        "marks", "gpolicy: v1\nkind: Waiver\nwaivers:\n  - {rule: GP201, where: cluster, reason: x, until: soon}\n"
    ),
    "wrong: a share": Case("marks", _GUARDS + "  - {name: a, capacity_loss: {at_most: five}}\n"),
    "wrong: two measures": Case("marks", _GUARDS + "  - {name: a, at_least: 1, max_changes: 2}\n"),
    "wrong: no value": Case("marks", _GROUP + "ipolicy:\n"),
}


def answer_of(server: LanguageServer, case: Case) -> Any:
    """Return the server's answer: words, a text, or marks as [line, message] (the modelines are lines 1 and 2)."""
    text = MODELINES + case.text
    match case.ask:
        case "complete":
            return server.labels(text)
        case "hover":
            said = server.hover(text)
            return said.split("\n\nSource: ")[0]  # a path of this machine
    return sorted([line, message] for line, message in server.diagnostics(text, settle=0.0))
