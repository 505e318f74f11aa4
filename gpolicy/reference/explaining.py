"""What a word of gpolicy means: the text of `gpolicy explain`."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from itertools import groupby
from textwrap import dedent
from types import MappingProxyType
from typing import Final

from gpolicy.checking.catalogue import CATALOGUE, RULES, find_rule, is_family, rules_named
from gpolicy.checking.rule import When
from gpolicy.data import read_data
from gpolicy.errors import RequestError
from gpolicy.findings import RuleInfo
from gpolicy.ganeti.vocabulary import MINMAX
from gpolicy.guessing import closest
from gpolicy.policy.kinds import BUILT_IN, KINDS, Guard, HouseRule, Policy
from gpolicy.policy.model import Declared, Leaf
from gpolicy.reference import blocks
from gpolicy.reference.blocks import Heading, PageBlock, PageListing, PageTable, plain
from gpolicy.reference.keys import ITEM, NAME, SETTINGS, DocumentKey, all_keys

VARIABLES: Final[dict[str, str]] = read_data("reference.toml")["variables"]
"""The environment variables that gpolicy reads, with their meaning, in the order in which the pages show them."""
EXIT_CODES: Final[dict[str, str]] = read_data("reference.toml")["exit_codes"]
"""What each exit code means, for people."""
_STATE_NEEDS: Final = {
    rule.info.code: "It runs only with a cluster's state (`--state SRC`)."
    if When.STATE in rule.when
    else "With a cluster's state (`--state SRC`) it finds more."
    for rule in RULES
    if rule.when & (When.STATE | When.MORE_WITH_STATE)
} | {
    rule.info.code: "It is off unless `select` or `severity` in gpolicy.toml names it, or `select` has `ALL`."
    for rule in RULES
    if When.ASKED in rule.when
}
ALIKE: Final = 0.75  # `nothing` is not what `no-shrink` means
_LONGEST_WORD: Final = 100  # that is compared with others
_MORE: Final = (
    "`gpolicy explain` also knows keys (vcpu-ratio, ipolicy.minmax), kinds (NodeGroup), guards (disks-stay), exit codes"
    " (2, exit-codes), environment variables, words of reports (tiered, n1-reserve, FailMem), tags (nlocation), and of"
    " the policy in this directory the guards, the sizes and the house rules (house/NAME)."
)
_NO_OVERRIDE: Final = "Nothing overrides it: Ganeti would refuse the step half-way."


def rule_blocks(info: RuleInfo) -> Iterator[PageBlock]:
    """Yield what there is to say of a rule below its title."""
    text = info.text
    yield text.summary
    yield text.rationale
    if need := state_need(info):
        yield need
    if text.source != "gpolicy":
        yield f"Source: {text.source}."
    if text.fix:
        yield f"`check --fix`: {text.fix}"
    if info.parameters:
        yield "Parameters, in gpolicy.toml:"
        yield PageListing(settings_text(info), "toml")
    for title, example in (("Bad:", text.bad), ("Good:", text.good)):
        if example:
            yield title
            yield PageListing(example, "yaml")


def state_need(info: RuleInfo) -> str:
    """Return what a rule has of a cluster's state, or that it is off; nothing where it always runs alike."""
    return _STATE_NEEDS.get(info.code, "")


def families(rules: Iterable[RuleInfo]) -> Iterator[tuple[str, list[RuleInfo]]]:
    """Yield the title of each family, and its rules."""
    for prefix, members in groupby(rules, key=lambda info: info.code[:3]):
        yield read_data("reference.toml")["families"].get(prefix, prefix), list(members)


def settings_text(info: RuleInfo) -> str:
    """Return the parameters of a rule with their defaults, as one would write them into the settings."""
    lines = [f"[rules.{info.name}]"]
    for parameter in info.parameters:
        what = f"{info.text.parameters[parameter.name].rstrip('.')} ({parameter.least:g} to {parameter.most:g})"
        lines.append(f"{parameter.name} = {parameter.default:g}  # {what}")
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Meaning:
    """One meaning of a word. `address` names it where the word alone does not; `blocks` is what there is to say."""

    address: str
    sort: str
    summary: str
    blocks: Callable[[], Iterable[PageBlock]]


def explain(word: str | None, verbs: Iterable[str] = (), terms: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return what a word means, or the meanings that it has; the list of a family; None: of all rules.

    `terms` are the words of reports with their meanings.
    """
    if word is None:
        return f"{list_rules()}\n{_MORE}\n"
    if is_family(word) and (family := rules_named(word)[0]):
        return list_rules(family)
    found = [*_of_rules(word), *_called(word, str.strip)] or [*_called(word, _lowered)]  # as written, then in any form
    concept = _concept(word, terms, found)
    if concept is not None:
        return plain([*concept, *(_addresses("As a key:", found) if found else [])])
    if not found:
        raise RequestError(f"nothing here is called {word[:_LONGEST_WORD]!r}", hint=_hint(word, verbs, terms))
    if len({meaning.address for meaning in found}) == 1:
        return "\n".join(plain([Heading(f"{item.address} ({item.sort})"), *item.blocks()]) for item in found)
    return plain(_addresses(f"{word} has several meanings. Give `gpolicy explain` one of these names:", found))


def _addresses(title: str, found: Iterable[Meaning]) -> list[PageBlock]:
    rows: dict[tuple[str, str], list[str]] = {}
    for item in found:
        rows.setdefault((item.address, item.sort), []).append(blocks.first_sentence(item.summary))
    table = PageTable(("name", "sort", "meaning"), tuple((*key, " ".join(said)) for key, said in rows.items()))
    return [title, table]


def _concept(word: str, terms: Mapping[str, str], found: Iterable[Meaning]) -> list[PageBlock] | None:
    """Return what a word of reports means, where else it is at most the end of the names of keys."""
    term = next((term for term in terms if fnmatchcase(_lowered(word), _lowered(term))), None)
    if term is None or not all(item.sort.startswith("key") and item.address != word for item in found):
        return None
    return [Heading(f"{term} (in reports)"), terms[term]]


def explain_guard(guard: Guard) -> str:
    """Return what there is to say of a guard that a policy declares."""
    where = str(guard.name.span)
    key = f"Guards.guards.{guard.measure}"
    said: list[PageBlock] = [Heading(f"{guard.name.value} (guard of this policy)")]
    said += [item.summary for item in _of_keys(key, _lowered)]
    facts = (
        ("limit", f"{guard.measure} {guard.shown_limit}"),
        ("written at", where),
        ("more", f"gpolicy explain {key}"),
    )
    override = f"`gpolicy plan --allow {guard.name.value}` overrides it."
    return plain([*said, PageTable(("fact", "meaning"), facts), override])


def specs_of(policy: Policy) -> Iterator[tuple[str, Declared, Leaf]]:
    """Yield the name of each named size of a policy, with the object and the leaf that declare it."""
    for declared in policy.objects:
        leaf = declared.leaves.get(MINMAX)
        for name in leaf.pair_names if leaf is not None else ():
            if leaf is not None and name:
                yield name, declared, leaf


def explain_spec(name: str, policies: Iterable[Policy]) -> str:
    """Return what there is to say of the sizes of this name that policies declare."""
    said: list[PageBlock] = [
        Heading(f"{name} (size of this policy)"),
        "A minimum and a maximum. Each instance of the object must lie in one of its sizes.",
    ]
    known = (spec for policy in policies for spec in specs_of(policy))
    for declared, leaf in ((declared, leaf) for called, declared, leaf in known if called == name):
        place = leaf.pair_names.index(name)
        span, written = leaf.at(place), leaf.document.written((*leaf.pointer, place)).rstrip()
        said += [
            PageTable(("fact", "meaning"), (("of", declared.label), ("written at", str(span)))),
            PageListing(dedent(" " * (span.column - 1) + written), "yaml"),
        ]
    more = (
        f"`gpolicy capacity PATH --state SRC` counts how many fit at its largest, `gpolicy place {name} -p PATH --state"
        f" SRC` says where the next one goes at its smallest ({name}:max: largest). More: `gpolicy explain size`."
    )
    return plain([*said, more])


def explain_house_rule(rule: HouseRule) -> str:
    """Return what there is to say of a house rule."""
    about = ", ".join(item.value for item in (rule.kind, *rule.names, *rule.tags))
    facts = (("looks at", about), ("written at", str(rule.document.value_span(("name",)))))
    info, _ = find_rule(rule.word)
    return plain(
        [
            Heading(f"{rule.word} (house rule, {rule.severity})"),
            rule.message,
            PageTable(("fact", "meaning"), facts),
            PageListing(rule.document.written(()).rstrip(), "yaml"),
            *([_accepting(info)] if info else []),
        ]
    )


def list_rules(rules: Iterable[RuleInfo] = CATALOGUE) -> str:
    """Return one line for each rule, by family."""
    rules = list(rules)
    width = max((len(info.name) for info in rules), default=0)
    texts = []
    for title, members in families(rules):
        lines = [f"  {info.code}  {info.name:<{width}}  {info.severity:<7}  {info.text.summary}" for info in members]
        texts.append("\n".join([title, *lines]))
    return "\n\n".join(texts) + "\n"


def _called(word: str, form: Callable[[str], str]) -> Iterator[Meaning]:
    """Yield what has this name, where `form` gives the form in which names are compared."""
    yield from (meaning for meaning in _single_words() if form(meaning.address) == form(word))
    yield from _of_keys(word, form)


def _of_rules(word: str) -> Iterator[Meaning]:
    info, _ = find_rule(word, guess=False)
    if info is not None:
        accepting = _accepting(info)
        yield Meaning(
            f"{info.code} {info.name}", str(info.severity), info.text.summary, lambda: [*rule_blocks(info), accepting]
        )


def _accepting(info: RuleInfo) -> str:
    """Return how to accept a finding of a rule."""
    if reason := info.stays:
        return f"No finding of this rule can be accepted: {reason}."
    settings = f'`ignore = ["{info.key}"]` in gpolicy.toml'
    if info.refusal:
        return f"To accept all findings of this rule: {settings}."
    comment = f"`# gpolicy: ignore[{info.key}] REASON` at the end of its line"
    return f"To accept a finding: {comment}, a Waiver document, or {settings} for all of this rule."


def _single_words() -> Iterator[Meaning]:
    """Yield the kinds, the built-in guards, the exit codes and the environment variables."""
    for kind in KINDS:
        yield Meaning(kind, "kind of document", blocks.kind_summary(kind), partial(blocks.kind_blocks, kind))
    for name, text in read_data("reference.toml")["guards"].items():
        passing = f"`gpolicy plan --allow {name}` overrides it." if BUILT_IN[name] else _NO_OVERRIDE
        yield _said(name, "built-in guard", text, passing)
    codes, summary = tuple(EXIT_CODES.items()), "What each exit code means."
    yield Meaning("exit-codes", "all verbs", summary, lambda: [PageTable(("code", "meaning"), codes)])
    yield from (_said(code, "exit code", text) for code, text in codes)
    yield from (_said(name, "environment variable", text) for name, text in VARIABLES.items())


def _said(name: str, sort: str, *texts: str) -> Meaning:
    return Meaning(name, sort, texts[0], lambda: texts)


def _of_keys(word: str, form: Callable[[str], str]) -> Iterator[Meaning]:
    """Yield the keys whose path ends with `word`; after a kind, those of the kind. Equal ones stand together."""
    wanted = [step for step in form(word.replace(ITEM, "")).split(".") if step != NAME]
    ending, whole = [], []
    for key in all_keys():
        home, steps = form(key.home).split("."), [form(step) for step in key.words]
        rest = wanted[len(home) :] if wanted[: len(home)] == home else []
        if steps == rest:
            whole.append(key)
        elif wanted == steps[-len(wanted) :] or (rest and rest == steps[-len(rest) :]):
            ending.append(key)
    together: dict[tuple[object, ...], list[DocumentKey]] = {}
    for key in whole or ending:
        known = key.parameter
        facts = (str(known.default), known.takes_effect, known.since, known.until) if known else ()
        together.setdefault((key.text, blocks.key_type(key), key.condition, key.required, *facts), []).append(key)
    for keys in together.values():
        path = ".".join(keys[0].words)
        address = path if keys[0].parameter or keys[0].home == SETTINGS else f"{keys[0].home}.{path}"
        homes = ", ".join(dict.fromkeys(key.home for key in keys))
        yield Meaning(address, f"key of {homes}", keys[0].text, partial(blocks.key_blocks, tuple(keys)))


def _lowered(word: str) -> str:
    """Return a word as it is compared: in any case, with - for _."""
    return word.strip().lower().replace("_", "-")


def _hint(word: str, verbs: Iterable[str], terms: Iterable[str]) -> str:
    wanted = _lowered(word)[:_LONGEST_WORD]
    if wanted in verbs:
        return f"`{wanted}` is a verb: see `gpolicy help {wanted}`"
    if wanted.startswith("gp") and wanted[2:3].isdigit():
        return find_rule(word)[1]
    keys = {".".join(key.words) if "." in wanted else key.words[-1] for key in all_keys()}
    rules = {name for info in CATALOGUE for name in (info.code, info.name)}
    others = {meaning.address for meaning in _single_words()}
    known = keys if "." in wanted else keys | rules | others | {term for term in terms if "*" not in term}
    near = closest(wanted, known, ALIKE)
    return f"Did you mean `{near}`?" if near else "`gpolicy explain` lists all rules and says what else it knows"
