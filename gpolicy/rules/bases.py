"""GP614: bases that nobody extends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpolicy.findings import RuleInfo, Severity
from gpolicy.rules.context import Context
from gpolicy.rules.rule import Hit, Rule

_BASE: Final = "gpolicy: v1\nkind: NodeGroup\nname: common\ntemplate: true\nalloc_policy: preferred\n"
_MEMBER: Final = "gpolicy: v1\nkind: NodeGroup\nname: gold\n"


class BaseUnused(Rule):
    """A base that nothing is made from."""

    info = RuleInfo(
        code="GP614",
        name="base-unused",
        severity=Severity.WARNING,
        summary="A document with `template: true` is extended by no other.",
        rationale="A template is no object of its own: what it says reaches the cluster only through a document that"
        " extends it.",
        source="gpolicy",
        bad=f"{_BASE}---\n{_MEMBER}",
        good=f"{_BASE}---\n{_MEMBER}extends: common\n",
    )
    needs_whole_policy = True

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        if not context.policy.objects:
            return  # a file of bases for other policies
        documents = [item for item in context.policy.documents if isinstance(item.root, dict)]
        used: set[tuple[str, str]] = set()
        files: set[str] = set()
        for document in documents:
            written = document.root.get("extends", ())
            for word in [written] if isinstance(written, str) else written:
                file, _, name = str(word).rpartition("#")
                used.add((document.root["kind"], name))
                if not file and name.endswith((".yaml", ".yml")):
                    files.add(name.rpartition("/")[2])
        for document in documents:
            root = document.root
            file = document.file.rpartition("/")[2]
            if root.get("template") is True and (root["kind"], root["name"]) not in used and file not in files:
                message = f"no {root['kind']} extends {root['name']}: what it says reaches no cluster"
                hint = "leave `template` out to make it an object of its own, or extend it"
                label = {"Cluster": "cluster", "NodeGroup": f"group/{root['name']}"}
                subject = label.get(root["kind"], f"node-set/{root['name']}")
                yield self.hit(subject, message, document.value_span(("template",)), hint=hint)


BASE_RULES: Final = (BaseUnused(),)
