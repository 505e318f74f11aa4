"""GP614: bases that nobody extends."""

from __future__ import annotations

from collections.abc import Iterator
from os.path import normpath
from pathlib import Path
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import warning_rule
from gpolicy.policy.files import SUFFIXES
from gpolicy.policy.source_file import YamlDocument
from gpolicy.rules.examples import GROUP

_BASE: Final = "gpolicy: v1\nkind: NodeGroup\nname: common\ntemplate: true\nalloc_policy: preferred\n"


class BaseUnused(Rule):
    info = warning_rule("GP614", "base-unused")(
        summary="No document extends a document with `template: true`.",
        rationale="A template does not describe an object itself: its values reach the cluster only through a document"
        " that extends it.",
        bad=f"{_BASE}---\n{GROUP}",
        good=f"{_BASE}---\n{GROUP}extends: common\n",
    )
    needs_whole_policy = True

    def check(self, context: Context) -> Iterator[Hit]:
        if not context.policy.objects:
            return  # a file of bases for other policies
        documents = [item for item in context.policy.documents if isinstance(item.root, dict)]
        for document in documents:
            root = document.root
            if root.get("template") is True and not any(_extends(other, document) for other in documents):
                message = f"no {root['kind']} extends {root['name']}: its values reach no cluster"
                hint = "leave `template` out to make it an object of its own, or extend it"
                label = {"Cluster": "cluster", "NodeGroup": f"group/{root['name']}"}
                subject = label.get(root["kind"], f"node-set/{root['name']}")
                yield self.hit(subject, message, document.value_span(("template",)), hint=hint)


def _extends(document: YamlDocument, base: YamlDocument) -> bool:
    """Return whether a document names `base`: by its name, or by its file."""
    if document is base or document.root["kind"] != base.root["kind"]:
        return False
    written = document.root.get("extends", ())
    for word in [written] if isinstance(written, str) else written:
        file, _, name = str(word).partition("#")
        if not file.endswith(SUFFIXES):
            file, name = "", word
        here = not file or normpath(Path(document.file).parent / file) == normpath(base.file)
        if here and name in ("", base.root["name"]):
            return True
    return False
