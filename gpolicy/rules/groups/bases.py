"""GP614 and GP618: bases that nobody extends, and bases that are taken for groups."""

from __future__ import annotations

from collections.abc import Iterator
from os.path import normpath
from pathlib import Path
from typing import Final

from gpolicy.checking.context import Context, name_of
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


_HINT: Final = "write `template: true` if it is no group of its own"
_SET: Final = f'{GROUP}extends: common\nnodes: ["node*.example.org"]\n'


class BaseTakenForGroup(Rule):
    info = warning_rule("GP618", "base-taken-for-group")(
        summary="A group without nodes is extended by others, and it is the only one that names no nodes, or stands in"
        " a file outside the policy.",
        rationale="It is declared like a base, but without `template: true`, so gpolicy creates a group of its name, or"
        " takes the file for a policy of its own.",
        bad=f"{_BASE.replace('template: true', 'tags: []')}---\n{_SET}",
        good=f"{_BASE}---\n{_SET}",
    )
    needs_whole_policy = True
    finds_more_with_state = True

    def check(self, context: Context) -> Iterator[Hit]:
        paths = set(context.policy.paths)
        for group in context.groups:
            outside = {
                id(leaf.document): leaf.document for leaf in group.leaves.values() if leaf.document.file not in paths
            }
            for base in outside.values():
                is_group = base.root["kind"] == "NodeGroup" and "nodes" not in base.root
                if is_group and base.root.get("template") is not True:
                    message = f"group {base.root['name']} of another file has no nodes, and {name_of(group)} extends it"
                    yield self.hit(group, message, group.document.value_span(("extends",)), hint=_HINT)
        bare = [group for group in context.groups if group.nodes is None and group.renamed_from is None]
        if len(bare) != 1 or (context.state and bare[0].name in context.state.groups):
            return
        others = [group.document for group in context.groups if group is not bare[0]]
        if any(_extends(other, bare[0].document) for other in others):
            message = f"group {bare[0].name} has no nodes, and other groups extend it"
            yield self.hit(bare[0], message, bare[0].span, hint=_HINT)


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
