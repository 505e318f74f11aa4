"""Do literally what a hint says: for tests that what a finding tells its reader to write heals the policy.

A hint names alternatives ("write mode: openvswitch, or leave it out"). One that can be done without thinking is an
order: it begins with a verb below and names its value. All else is advice or a question, and gives no text here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from gpolicy.findings import Finding, Span
from gpolicy.ganeti.vocabulary import DISK_TEMPLATES, HYPERVISORS

_VALUE: Final = r"(?:`[^`]+`|\"[^\"]*\"|[\w./:*=+-]*[\w*/])"
_ALTERNATIVES: Final = re.compile(r", or |; (?=if|else|write)|; or |(?<=\?) To [^,]*, |, unless ")
_EITHER: Final = re.compile(r"write ([\w-]+) or (?!more|less)([\w-]+)$")
_BARE: Final = re.compile(r"[a-z][\w-]*: \S+$|an? [^,]*, such as")
_WORD: Final = re.compile(r"[^\s,;\"'\[\]{}()]+")
_TEXT: Final = "tag:yaml.org,2002:str"
_TABLES: Final = ("ndparams", "ipolicy", "hvparams", "diskparams", "hv_state", "failure_domains")


def healed(text: str, finding: Finding) -> Iterator[tuple[str, str]]:
    """Yield each alternative of a hint that can be done literally, with the text of the policy after it."""
    if finding.span is None:
        return
    for said in map(str.strip, _ALTERNATIVES.split(finding.hint)):
        part = f"write {said}" if _BARE.match(said) else said.removeprefix("else ")
        either = _EITHER.match(part)
        for one in [f"write {word}" for word in either.groups()] if either else [part]:
            line = text.splitlines()[finding.span.line - 1]
            if closing := re.match("write `(.)` after the last entry$", one):
                yield one, f"{text.rstrip()}{closing[1]}\n"
                continue
            guess = re.match(r"Did you mean `([^`]+)`\?$", one)
            if guess and "#" in line[: finding.span.column]:
                near = get_close_matches(guess[1], _WORD.findall(line), 1, 0.4)
                yield one, text.replace(near[0], guess[1])
                continue
            edit = _Edit(text, finding.span, finding.message)
            if edit.do(one):
                yield one, edit.text()


class _Edit:
    """A policy as nodes of YAML, and the place that a finding is about."""

    def __init__(self, text: str, span: Span, message: str) -> None:
        self.documents = [node for node in _composed(text) if node is not None]
        self.span, self.message = span, message
        self.parent: Node | None = None
        self.key: ScalarNode | None = None
        self.node: Node | None = None
        self.around: list[Node] = []
        for document in self.documents:
            self._find(document, None, None)

    def text(self) -> str:
        return yaml.serialize_all(self.documents, Dumper=yaml.BaseDumper, allow_unicode=True, width=1000)

    def _find(self, node: Node, parent: Node | None, key: Node | None) -> None:
        """Find the innermost value whose text, or whose key, begins at the place or has it in it."""
        begin, end = _begin(key or node), (node.end_mark.line + 1, node.end_mark.column + 1)
        if not begin <= (self.span.line, self.span.column) < end:
            return
        self.parent, self.node = parent, node
        self.around.append(node)
        self.key = key if isinstance(key, ScalarNode) else None
        if key is not None and _begin(key) == (self.span.line, self.span.column):
            return
        if _begin(node) == (self.span.line, self.span.column) and not isinstance(node, ScalarNode):
            last = (node.end_mark.line + 1, node.end_mark.column + 1)
            if (self.span.end_line, self.span.end_column) >= last:
                return
        if isinstance(node, MappingNode):
            for name, value in node.value:
                self._find(value, node, name)
        elif isinstance(node, SequenceNode):
            for entry in node.value:
                self._find(entry, node, None)

    def do(self, part: str) -> bool:
        """Do one alternative; False where it is no order that names all that is to be done."""
        part = re.sub(r"^[^`\"]*: (?=(?:write|remove) )", "", part)
        steps = [re.split(r": (?=Ganeti|with)", step)[0].strip() for step in part.split(", and ")]
        return all(list(map(self._step, steps)))

    def _step(self, step: str) -> bool:
        for form, method in _FORMS:
            if found := re.match(form, step):
                return bool(method(self, *found.groups()))
        return False

    # --- what can be done --------------------------------------------------------------------------------------

    def guess(self, word: str) -> bool:
        """Did you mean WORD? The word that is most like it becomes it."""
        if self.key is not None and _begin(self.key) == (self.span.line, self.span.column):
            return self._rename(word)
        scalars = [node for node in _scalars(self.node) if get_close_matches(word, [node.value], 1, 0.4)]
        best = next(
            (
                node
                for like in get_close_matches(word, [node.value for node in scalars], 1, 0.4)
                for node in scalars
                if node.value == like
            ),
            None,
        )
        node = self.node if isinstance(self.node, ScalarNode) else best
        if node is None:
            return False
        words = [re.split("[=:]", found)[0] if "=" in found else found for found in _WORD.findall(node.value)]
        parts = [part for found in words for part in re.split("[:,]", found)]
        near = get_close_matches(word, [node.value, *words, *parts], 1, 0.4)
        node.value = node.value.replace(near[0], word, 1) if near and near[0] != node.value else word
        return True

    def write(self, value: str) -> bool:
        """Write VALUE at the place, or for the word that the message quotes."""
        value = value.strip('`"')
        node = self.node
        if isinstance(node, SequenceNode) and all(isinstance(entry, ScalarNode) for entry in node.value):
            quoted = [entry for entry in node.value if _names(self.message, entry.value)]
            node.value = [
                ScalarNode(_TEXT, value) if entry in (quoted or node.value) else entry for entry in node.value
            ]
            return True
        if isinstance(node, MappingNode):
            named = [scalar for scalar in _scalars(node) if _names(self.message, scalar.value)]
            node = named[0] if len(named) == 1 else None
        if not isinstance(node, ScalarNode):
            return False
        quoted = [word for word in re.findall("'([^']+)'", self.message) if word in node.value]
        node.value = node.value.replace(quoted[0], value) if quoted else value
        node.style = node.style or ('"' if not node.value else None)
        return True

    def set_key(self, key: str, value: str) -> bool:
        """Write KEY: VALUE where the key is, nearest to the place; else beside the place, or on the top level."""
        node = yaml.compose(value.strip("`"), Loader=yaml.BaseLoader)
        mappings = [item for document in self.documents for item in _mappings(document)]
        document = next(item for item in reversed(self.documents) if _begin(item) <= (self.span.line, 99))
        mappings.sort(key=lambda item: (item not in self.around, item not in list(_mappings(document))))
        for mapping in mappings:
            for number, (name, _) in enumerate(mapping.value):
                if name.value == key:
                    mapping.value[number] = (name, node)
                    return True
        holder = next((item for item in reversed(self.around) if isinstance(item, MappingNode)), document)
        holder = self.around[0] if key in _TABLES else holder
        holder.value.append((ScalarNode(_TEXT, key), node))
        return True

    def set_in_group(self, key: str, value: str) -> bool:
        """Write KEY: VALUE in the group that the message names."""
        self.around = [item for item in self.documents if ("name", self.message.split()[-1]) in _texts_of(item)]
        return self.around != [] and self.set_key(key, value)

    def leave_out(self, word: str = "it") -> bool:
        """Remove the place, or the WORD in it."""
        word = word.strip('`"')
        if word in ("it", "one", "this one", "the key"):
            return self._remove(self.node)
        if isinstance(self.node, ScalarNode) and word in self.node.value:
            self.node.value = re.sub(rf"\s*{re.escape(word)}(=\S+)?", "", self.node.value, count=1).strip()
            self.node.style = self.node.style or ('"' if not self.node.value else None)
            return not self._is_entry() or self.node.value != "" or self._remove(self.node)
        entries = [entry for entry in _scalars(self.node) if entry.value == word]
        return any(list(map(self._remove, entries))) or self._remove_key(word)

    def leave_out_entry(self) -> bool:
        """Remove the waiver, the guard or what else is the entry of a list around the place."""
        lists = [item for item in self.around if isinstance(item, SequenceNode)]
        entry = next((item for item in lists[0].value if item in self.around), None) if lists else None
        return entry is not None and self._remove(self.around[0] if len(lists[0].value) == 1 else entry)

    def remove_character(self) -> bool:
        """Remove what is not printable."""
        if isinstance(self.node, ScalarNode):
            self.node.value = re.sub("[^ -~]", "", self.node.value)
        return isinstance(self.node, ScalarNode)

    def add(self, word: str, key: str = "") -> bool:
        """Add WORD to the list at the place, or to that of KEY; `it` is the word at the place."""
        word = self.node.value if word == "it" and isinstance(self.node, ScalarNode) else word
        for found in [self._value_of(key)] if key else [self.node, self.parent]:
            if isinstance(found, SequenceNode):
                found.value.append(ScalarNode(_TEXT, word))
                return True
        return False

    def enable(self, word: str) -> bool:
        return self.add(word, "enabled_hypervisors" if word in HYPERVISORS else "enabled_disk_templates")

    def disable(self, word: str) -> bool:
        found = self._value_of("enabled_disk_templates")
        return any(list(map(self._remove, [entry for entry in _scalars(found) if entry.value == word])))

    def allow(self, word: str) -> bool:
        return word in DISK_TEMPLATES and self.add(word, "disk-templates")

    def allow_only(self, words: str) -> bool:
        return self.set_key("disk-templates", f"[{words}]")

    def begin_with(self, key: str, word: str) -> bool:
        found = self._value_of(key)
        if isinstance(found, SequenceNode):
            found.value.sort(key=lambda entry: entry.value != word)
        return isinstance(found, SequenceNode)

    def share_storage(self) -> bool:
        return self.set_key("exclusive_storage", "false")

    def move(self, key: str) -> bool:
        """Move the value to another key."""
        return self._rename(key)

    def rename(self) -> bool:
        """Give another name."""
        if isinstance(self.node, ScalarNode):
            self.node.value += "-2"
        return isinstance(self.node, ScalarNode)

    def swap(self) -> bool:
        """Exchange the values of the two keys that the message names."""
        for mapping in (mapping for document in self.documents for mapping in _mappings(document)):
            named = [number for number, (key, _) in enumerate(mapping.value) if _names(self.message, key.value)]
            if len(named) == 2 or {key.value for key, _ in mapping.value} == {"from", "to"}:
                one, two = named if len(named) == 2 else (0, 1)
                (first, low), (second, high) = mapping.value[one], mapping.value[two]
                mapping.value[one], mapping.value[two] = (first, high), (second, low)
                return True
        return False

    # --- how ---------------------------------------------------------------------------------------------------

    def _rename(self, word: str) -> bool:
        if self.key is not None:
            self.key.value = word
        return self.key is not None

    def _is_entry(self) -> bool:
        return isinstance(self.parent, SequenceNode)

    def _value_of(self, key: str) -> Node | None:
        pairs = (pair for document in self.documents for item in _mappings(document) for pair in item.value)
        return next((value for name, value in pairs if name.value == key), None)

    def _remove_key(self, key: str) -> bool:
        pairs = [pair for item in self.around for mapping in _mappings(item) for pair in mapping.value]
        return any(list(map(self._remove, [value for name, value in pairs if name.value == key])))

    def _remove(self, node: Node | None) -> bool:
        """Remove a value with its key or its place in a list, and what is empty then."""
        if node in self.documents:
            self.documents = [document for document in self.documents if document is not node]
            return True
        holders = [item for document in self.documents for item in _collections(document)]
        for holder in holders:
            kept = [item for item in holder.value if (item[1] if isinstance(holder, MappingNode) else item) is not node]
            if len(kept) < len(holder.value):
                holder.value = kept
                return bool(kept) or self._remove(holder)
        return False


def _composed(text: str) -> list[Node | None]:
    """Return the documents of a text; none where it is no YAML."""
    try:
        return list(yaml.compose_all(text, Loader=yaml.BaseLoader))
    except yaml.YAMLError:
        return []


def _begin(node: Node) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _nodes(node: Node | None) -> Iterator[Node]:
    """Yield a node and all inside, less the keys."""
    if node is not None:
        yield node
    for item in node.value if isinstance(node, (MappingNode, SequenceNode)) else ():
        yield from _nodes(item[1] if isinstance(node, MappingNode) else item)


def _collections(node: Node | None) -> Iterator[MappingNode | SequenceNode]:
    return (item for item in _nodes(node) if isinstance(item, (MappingNode, SequenceNode)))


def _mappings(node: Node | None) -> Iterator[MappingNode]:
    return (item for item in _nodes(node) if isinstance(item, MappingNode))


def _scalars(node: Node | None) -> Iterator[ScalarNode]:
    return (item for item in _nodes(node) if isinstance(item, ScalarNode))


def _texts_of(node: Node) -> set[tuple[str, str]]:
    pairs = node.value if isinstance(node, MappingNode) else []
    return {(key.value, value.value) for key, value in pairs if isinstance(value, ScalarNode)}


def _names(message: str, key: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(key)}(?![\w-])", message) is not None


_FORMS: Final = (
    (r"Did you mean `([^`]+)`\?$", _Edit.guess),
    (r"write (\w+): ([^`]+) in the group$", _Edit.set_in_group),
    (
        r"(?:write|add) `?([a-z][\w.-]*): ([^`]+?)`?\.?(?: if .*| to .*| for .*| instead| in .*|, which .*)?$",
        _Edit.set_key,
    ),
    (rf"write .*such as ({_VALUE})(?: or |,|$)", _Edit.write),
    (rf"write a (?:number|port) from ({_VALUE}) to .*$", _Edit.write),
    (r"write a maximum of (\w+)", _Edit.write),
    (rf"write at (?:most|least) ({_VALUE})$", _Edit.write),
    (rf"write ({_VALUE}) or (?:more|less)$", _Edit.write),
    (r"write .*such as ([^,]+)", _Edit.write),
    (r"allow (spindle-use) (\d+)(?: in min and max)?$", _Edit.set_key),
    (r"write one of (\w+)", _Edit.write),
    (rf"write ({_VALUE})(?: (?:to|for|if|with|which|of) .*| \(.*|,.*)?$", _Edit.write),
    (r"(?:leave (?=.* out)|remove )(it|one|this one|the key)(?:,? .*)?$", _Edit.leave_out),
    (rf"leave ({_VALUE}) out(?: .*)?$", _Edit.leave_out),
    (r"remove the (?:waiver|guard|edit)$", _Edit.leave_out_entry),
    (r"remove this character$", _Edit.remove_character),
    (rf"remove (-{_VALUE}(?: [\w.:/-]+)?)$", _Edit.leave_out),
    (rf"remove (?!the )({_VALUE})$", _Edit.leave_out),
    (r"add (it) to (\w+)$", _Edit.add),
    (r"add (gzip)$", _Edit.add),
    (r"enable (\w+)$", _Edit.enable),
    (r"disable (\w+)$", _Edit.disable),
    (r"allow only (\w+)(?: here)?$", _Edit.allow_only),
    (r"allow (\w+)$", _Edit.allow),
    (r"begin (\w+) with one of (\w+)", _Edit.begin_with),
    (r"turn exclusive storage off$", _Edit.share_storage),
    (r"move it to ([\w-]+)$", _Edit.move),
    (r"give (?:it|your guard) another name$", _Edit.rename),
    (r"(?:swap|exchange) (?:the two|`from` and `to`)$", _Edit.swap),
)
