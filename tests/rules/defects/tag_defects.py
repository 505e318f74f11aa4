"""Tags, and their meaning for htools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.rules.defects.seeding import Base, Document, Seed, at, defect, slips, typo


def _node_tags(base: Base) -> Iterator[tuple[Document, int, str]]:
    for document in base.documents("NodeSet"):
        for index, tag in enumerate(document.data.get("tags", [])):
            yield document, index, tag


def _rules(base: Base, key: str) -> Iterator[tuple[Document, list[Any]]]:
    for document in base.documents("TagRules"):
        holder = document.data.get("migration", {}) if key in ("domains", "allow") else document.data
        if key in holder:
            yield document, holder[key]


def _place(key: str) -> tuple[str, ...]:
    return ("migration", key) if key in ("domains", "allow") else (key,)


@defect("tags", "the prefix of a node's tag misspelt", "The node is then in no such failure or migration domain.")
def _(base: Base) -> Iterator[Seed]:
    for document, index, tag in _node_tags(base):
        prefix, _, value = tag.partition(":")
        word = typo(prefix, slips(f"{base.name} {tag}"))
        yield document.put(("tags", index), f"{word}:{value}")


@defect(
    "tags",
    "a node's tag with another mark than the colon",
    "htools looks for the prefix with a colon: the node is in no domain.",
)
def _(base: Base) -> Iterator[Seed]:
    for document, index, tag in _node_tags(base):
        yield document.put(("tags", index), tag.replace(":", "-"))
        yield document.put(("tags", index), tag.replace(":", ""))


@defect("tags", "a node's tag with a capital letter", "Tags are exact: the node is in no domain.")
def _(base: Base) -> Iterator[Seed]:
    for document, index, tag in _node_tags(base):
        yield document.put(("tags", index), tag.capitalize())


@defect("tags", "a tag without its value", "The node is in a domain that has no name.")
def _(base: Base) -> Iterator[Seed]:
    for document, index, tag in _node_tags(base):
        yield document.put(("tags", index), f"{tag.partition(':')[0]}:")


@defect("tags", "a character that tags cannot have", "Ganeti: letters, digits and .+*/:@_- only, at most 128.")
def _(base: Base) -> Iterator[Seed]:
    for document, index, tag in _node_tags(base):
        for wrong in (tag.replace(":", ": "), tag.replace(":", "="), f"{tag},x", f"{tag}ä", tag + "x" * 128):
            yield document.put(("tags", index), wrong)


@defect(
    "tags", "the name of a failure or migration domain misspelt", "No node has tags of that domain: it is never heeded."
)
def _(base: Base) -> Iterator[Seed]:
    tagged = {tag.partition(":")[0] for _document, _index, tag in _node_tags(base)}
    for key in ("failure_domains", "domains"):
        for document, names in _rules(base, key):
            for index, name in enumerate(names):
                if name in tagged:
                    yield document.put((*_place(key), index), typo(name, slips(f"{base.name} {name}")))


@defect("tags", "a domain written with its colon", "htools adds one: tags rack::a would be meant.")
def _(base: Base) -> Iterator[Seed]:
    for key in ("failure_domains", "domains"):
        for document, names in _rules(base, key):
            for index, name in enumerate(names):
                yield document.put((*_place(key), index), f"{name}:")


@defect("tags", "an exclusion or domain named twice", "The second does nothing; another one was meant.")
def _(base: Base) -> Iterator[Seed]:
    for key in ("failure_domains", "domains", "exclusion"):
        for document, names in _rules(base, key):
            yield document.put(_place(key), [*names, names[0]])


@defect("tags", "a whole htools tag where its meaning belongs", "It would be rendered as htools:…:htools:….")
def _(base: Base) -> Iterator[Seed]:
    for key, family in (("failure_domains", "nlocation"), ("domains", "migration"), ("exclusion", "iextags")):
        for document, names in _rules(base, key):
            for index, name in enumerate(names):
                yield document.put((*_place(key), index), f"htools:{family}:{name}")


@defect("tags", "a raw prefix that means more than was wanted", "htools compares the first characters only (T46).")
def _(base: Base) -> Iterator[Seed]:
    for document, names in _rules(base, "exclusion"):
        for index, name in enumerate(names):
            yield document.put(("exclusion", index), {"raw": name[0]})


@defect("tags", "all nodes in one failure domain", "A domain that all nodes share keeps nothing apart.")
def _(base: Base) -> Iterator[Seed]:
    for _document, names in _rules(base, "failure_domains"):
        for name in names:
            having = [(other, index, tag) for other, index, tag in _node_tags(base) if tag.startswith(f"{name}:")]
            for other, index, tag in having:
                rest = {item for _o, _i, item in having if item != tag}
                alone = [item for _o, _i, item in having].count(tag) == 1
                if alone and len(rest) == 1:
                    yield other.put(("tags", index), rest.pop())


@defect("tags", "a node in two racks", "It stands in one rack only.")
def _(base: Base) -> Iterator[Seed]:
    for other, _index, tag in _node_tags(base):
        if tag.startswith("rack:"):
            yield other.put(("tags",), [*other.data["tags"], "rack:z"])


@defect("tags", "a node without its place in a domain", "htools takes it for a node that fails with no other.")
def _(base: Base) -> Iterator[Seed]:
    domains = {name for _document, names in _rules(base, "failure_domains") for name in names}
    for document in base.documents("NodeSet"):
        tags = document.data.get("tags", [])
        if any(tag.partition(":")[0] in domains for tag in tags):
            nodes = document.data["nodes"]
            for index in range(len(nodes)) if len(nodes) > 1 else ():
                yield document.drop(("nodes", index))


@defect("tags", "an exception for tags that no node has", "The exception never applies.")
def _(base: Base) -> Iterator[Seed]:
    for document, allowed in _rules(base, "allow"):
        for index, pair in enumerate(allowed):
            for key in ("from", "to"):
                yield document.put(("migration", "allow", index, key), f"{pair[key]}1")
                yield document.put(("migration", "allow", index, key), pair[key].replace(":", "-"))


@defect("tags", "an exception from a tag to itself", "A node with the tag takes the instance anyway.")
def _(base: Base) -> Iterator[Seed]:
    for document, allowed in _rules(base, "allow"):
        for index, pair in enumerate(allowed):
            yield document.put(("migration", "allow", index, "to"), pair["from"])
            yield document.put(("migration", "allow", index, "from"), pair["to"])


@defect(
    "tags",
    "an exception to a domain that does not restrict",
    "Where no domain is declared, there is nothing to except from.",
)
def _(base: Base) -> Iterator[Seed]:
    for document, _allowed in _rules(base, "allow"):
        yield document.drop(("migration", "domains"))
        yield document.put(("migration", "domains"), ["kernel"])


@defect("tags", "half of an exception", "From where, or to where?")
def _(base: Base) -> Iterator[Seed]:
    for document, allowed in _rules(base, "allow"):
        for index in range(len(allowed)):
            yield document.drop(("migration", "allow", index, "from"))
            yield document.drop(("migration", "allow", index, "to"))


@defect("tags", "an owned prefix misspelt", "Tags that are taken out of the policy stay on the nodes for ever.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("TagRules"):
        for index, owned in enumerate(document.data.get("owns", [])):
            if isinstance(owned, dict):
                word = typo(owned["prefix"].rstrip(":"), slips(f"{base.name} {owned}"))
                yield document.put(("owns", index, "prefix"), f"{word}:")


@defect("tags", "an owned prefix on the wrong objects", "The tags are on nodes; there they are not owned.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("TagRules"):
        for index, owned in enumerate(document.data.get("owns", [])):
            if isinstance(owned, dict):
                yield document.put(("owns", index, "on"), ["cluster"])
                yield document.put(("owns", index, "on"), ["instance"])


@defect("tags", "an htools tag by hand, misspelt", "htools has no such tag; nothing tells.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.first("Cluster"):
        for tag in ("htools:iextag:service", "htools:nlocatoin:rack", "htools:migrations:hv", "htool:nlocation:rack",
                    "htools:desired-location:rack", "htools:allowmigration:hv:1:hv:2"):  # fmt: skip
            yield document.put(("tags",), [tag])


@defect("tags", "an htools tag on the wrong object", "htools reads these from the cluster only.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("NodeGroup", "NodeSet"):
        for tag in ("htools:nlocation:rack", "htools:iextags:service:"):
            yield document.put(("tags",), [*document.data.get("tags", []), tag])


@defect(
    "tags", "a desired location that is no failure domain", "It needs a matching failure domain, or it has no effect."
)
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("TagRules"):
        yield document.put(("desired_location",), ["city"])


@defect(
    "tags",
    "nodes of a set that are spelt otherwise",
    "The set then tags a node that is not there, and not the one that is.",
)
def _(base: Base) -> Iterator[Seed]:
    named = {
        node
        for document in base.documents("NodeGroup")
        for node in document.data.get("nodes", [])
        if isinstance(at(document.data, ("nodes",)), list)
    }
    for document in base.documents("NodeSet") if named else ():
        for index, node in enumerate(document.data.get("nodes", [])):
            yield document.put(("nodes", index), node.replace("node", "nod", 1))
            yield document.put(("nodes", index), node.replace(".example.org", ".exmaple.org"))
            yield document.put(("nodes", index), node.partition(".")[0])
