"""GP522, GP524, GP529 and GP533: tags that are almost others."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, When, hit, warning
from gpolicy.checking.tags import HTOOLS, Tag
from gpolicy.findings import RuleParameter
from gpolicy.ganeti.vocabulary import Level
from gpolicy.guessing import name_meant, rarer_slips
from gpolicy.rules.shared import grouped, sizes_of
from gpolicy.rules.tags import domains


def _is_mistyped(tag: str, other: str) -> bool:
    """Return whether the place of a tag is another one of its domain with a letter too few, too many or exchanged.

    Another letter in place of one makes other names: hall and hull.
    """
    (domain, _, place), (same, _, known) = tag.rpartition(":"), other.rpartition(":")
    is_other = domain != same or (len(place) == len(known) and sorted(place) != sorted(known))
    return not is_other and name_meant(place, [known]) is not None


@warning("GP522", When.MORE_WITH_STATE, explains=1)
def tag_almost_in_domain(context: Context) -> Iterator[Hit]:
    names = domains.DomainNames(domains.domains_of_nodes(context).keys() - domains.misspelt_domains(context))
    of_nodes = [tag for tag in context.tags if tag.level is Level.NODE and not tag.family]
    for tag in of_nodes:
        if reason := domains.why_mistyped(tag.text, names):
            domain = names.meant(tag.text.partition(":")[0])
            missing = f"tags of domain {domain}" if domain else ""  # of all of which GP517 says the same
            yield hit(tag.label, f"`{tag.text}`: {reason}", tag.span, "correct the tag, or the domain", missing=missing)
    for scenario in context.policy.scenarios:
        for node in (node for part in scenario.stage.simulated for node in part.nodes):
            if reason := next((found for tag in node.tags if (found := domains.why_mistyped(tag, names))), ""):
                message = f"a tag of {node.name}: {reason}"
                yield hit(f"test/{scenario.name.value}", message, node.span, "correct the tag, or the domain")
    yield from _written_twice([tag for tag in of_nodes if not names.known.isdisjoint(domains.prefixes_of(tag.text))])


def _written_twice(tags: list[Tag]) -> Iterator[Hit]:
    """Yield tags of domains that differ from others in case, zeros or a slip only."""
    first: dict[str, str] = {}
    for tag in tags:
        plain = re.sub(r"(?<![0-9])0+(?=[0-9])", "", tag.text.lower().replace("_", "-"))
        known = () if plain in first or len(first) > 200 else first  # enough to compare
        near = next((first[item] for item in known if _is_mistyped(plain, item)), tag.text)
        other = first.setdefault(plain, near)
        if other != tag.text:
            message = f"{tag.text} and {other} are two tags for htools"
            yield hit(tag.label, message, tag.span, "write the tag in one way")


@warning("GP529", When.MORE_WITH_STATE | When.WHOLE)
def tag_rule_almost_in_use(context: Context) -> Iterator[Hit]:
    yield from _almost_kept_apart(context)
    yield from _unused(context)


def _unused(context: Context) -> Iterator[Hit]:
    """Yield the rules about tags that no instance has, where some have almost these, or those of an older rule."""
    used = context.once(_of_instances)
    names = domains.DomainNames({tag.partition(":")[0] for tag in used if ":" in tag})
    rules = (tag for tag in context.tags if tag.typed and tag.family in ("iextags", "desiredlocation"))
    dropped = {family: _dropped(context, family, used) for family in ("iextags", "desiredlocation")}
    for rule in rules if names.known else ():
        word = rule.suffix.rstrip(":")
        if any(tag.startswith(rule.suffix) for tag in used):
            continue
        near = names.meant(word) if ":" not in word else ""
        if not near and (gone := dropped[rule.family]):
            message = f"no instance has a tag {rule.suffix}…, but some have {gone}…, which the cluster has now"
            yield hit(rule.label, message, rule.span, f"keep {gone.rstrip(':')}, or tag the instances first")
        if near:
            message = f"no instance has a tag {rule.suffix}…, but some have {near}:…"
            yield hit(rule.label, message, rule.span, f"Did you mean `{near}`?")


def _of_instances(context: Context) -> set[str]:
    """Return the tags of instances, observed or simulated."""
    used = {tag for instance in context.observed.instances.values() for tag in instance.tags}
    for scenario in context.policy.scenarios:
        used |= {tag for part in scenario.stage.simulated for item in part.instances for tag in item.sizes.tags}
    return used


def _almost_kept_apart(context: Context) -> Iterator[Hit]:
    """Yield tests with a tag that is almost one of an exclusion, beside others that are one."""
    words = {tag.suffix.rstrip(":") for tag in context.tags if tag.typed and tag.family == "iextags"}
    names = domains.DomainNames({word for word in words if word and ":" not in word})
    in_use = {tag.partition(":")[0] for tag in context.once(_of_instances)}
    for scenario in context.policy.scenarios if names.known else ():
        tags = {tag: sizes.span for sizes in sizes_of(scenario) for tag in sizes.tags}
        kept = {tag.partition(":")[0] for tag in tags} & names.known
        for tag in sorted(tags):
            word = tag.partition(":")[0]
            near = names.meant(word) if ":" in tag and word not in names.known else ""
            if near in kept or (near and word not in in_use):
                message = f"the tag {tag} keeps nothing apart, but {near}:… does"
                message += ", which others of the test have" if near in kept else ""
                right = f"{near}{tag[len(word) :]}"
                yield hit(f"test/{scenario.name.value}", message, tags[tag], f"Did you mean `{right}`?")


def _dropped(context: Context, family: str, used: set[str]) -> str:
    """Return a suffix of a family that the cluster has and the policy leaves out, though tags of instances match it."""
    kept = {name.rstrip(":") for name in domains.declared_suffixes(context.tags, family)}  # closing colon or none
    seen = domains.observed_suffixes(context, family, all_of_them=True)
    gone = sorted(name for name in seen if name.rstrip(":") not in kept)
    return next((name for name in gone if any(tag.startswith(name) for tag in used)), "")


@warning("GP524", parameters=(RuleParameter("letters", 3, least=1),))
def raw_prefix_short(context: Context, letters: float) -> Iterator[Hit]:
    for tag in context.tags:
        short = 0 < len(tag.suffix) < letters and not tag.suffix.endswith(":")
        if tag.typed and tag.family in ("iextags", "desiredlocation") and short:
            hint = f"write {tag.suffix} without raw to mean {tag.suffix}:…, or a longer prefix"
            yield hit(tag.label, f"many tags start with {tag.suffix}", tag.span, hint)


@warning("GP533", when=When.MORE_WITH_STATE | When.WHOLE)
def tag_almost_another(context: Context) -> Iterator[Hit]:
    domain_names = domains.domains_of_nodes(context)
    tags = [tag for tag in context.tags if ":" in tag.text and not tag.text.startswith((HTOOLS, "ganeti:"))]
    prefixes = Counter(tag.text.partition(":")[0] for tag in tags)
    prefixes.update(owned.prefix.rstrip(":") for owned in context.policy.owned if owned.prefix.endswith(":"))
    meant = {f"{word}:": f"{near}:" for word, near in rarer_slips(prefixes).items()}
    texts = grouped((tag.text.partition(":")[0], tag.text) for tag in tags)
    for uses in islice(texts.values(), 20):
        meant |= rarer_slips(Counter(uses))
    for tag in tags if meant else ():
        prefix = tag.text.partition(":")[0]
        near = meant.get(f"{prefix}:") or meant.get(tag.text)
        if near is None:
            continue
        of_domain = prefix in domain_names or name_meant(prefix, domain_names)
        if tag.level is not Level.NODE or not of_domain:  # else GP522
            shown = f"{near}…" if near.endswith(":") else near
            message = f"the tag {tag.text} is almost {shown}, which others of the policy have"
            right = tag.text.replace(f"{prefix}:", near, 1) if near.endswith(":") else near
            yield hit(tag.label, message, tag.span, f"Did you mean `{right}`?")
