"""What may follow on a command line that is being typed: verbs, options, and the names that the policy knows.

The scripts of the shells (templates/completion.*) ask for it at each press of the tabulator key: it reads little, stops
early, and is silent about everything that is wrong.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from typer.main import get_command

from gpolicy.cli.app import VERBS, app, explained, summary
from gpolicy.cli.options import STATE_VARIABLE
from gpolicy.cluster.sources import DESTINATIONS, FILE_SCHEMES, SCHEMES, Scheme, SourceOptions, read_state
from gpolicy.data import data_directory, read_data
from gpolicy.report.forms import forms_of

if TYPE_CHECKING:
    from gpolicy.fleet.named_clusters import NamedCluster

SHELLS: Final = ("bash", "zsh", "fish")
FILES: Final = "@files"
"""The answer that leaves the word to the shell: a file goes here, behind the last `:` or `=` of the word."""

_SECONDS: Final = 0.5  # to read a policy in
_MOST_BYTES: Final = 4 * 1024**2  # of a file
_MOST_SHOWN: Final = 500
_LONGEST_HELP: Final = 70

Choices = Iterable[tuple[str, str]]
"""What can follow, each with a word of help."""


@dataclass(frozen=True, slots=True)
class _TypedWords:
    """What was typed before the word: the verb's options and arguments by the names of their parameters."""

    verb: str
    given: Mapping[str, list[str]] = field(default_factory=dict)

    def last(self, *names: str) -> str | None:
        """Return the last value that was given under one of the names."""
        return next((self.given[name][-1] for name in names if self.given.get(name)), None)


def answer(shell: str, line: str, current: str) -> str:
    """Return the lines for a shell: a value and a word of help, with a tab between them; for bash the value alone.

    `line` is the command line up to the cursor, `current` what bash takes for the word there: it begins words anew
    behind `:` and `=`.
    """
    found: list[tuple[str, str]] = []
    with suppress(Exception):  # what is wrong is for the command to say
        words = _split(line)
        found = [pair for pair in complete(words[1:-1], words[-1]) if pair[0].isprintable()][:_MOST_SHOWN]
        if shell == "bash":
            skipped = len(words[-1]) - len(current) if words[-1].endswith(current) else 0
            quoted = ((value, re.sub(r"([^\w@%+=:,./-])", r"\\\1", value[skipped:])) for value, _ in found)
            return "".join(f"{value if value == FILES else text}\n" for value, text in quoted)
    return "".join(f"{value}\t{about}\n" for value, about in found)


def complete(before: list[str], word: str) -> list[tuple[str, str]]:
    """Return what can stand in place of `word` behind the words `before` (without `gpolicy`)."""
    if before[:1] in (["help"], ["--no-pager"]):
        before = before[1:]
    if not before:
        choices = list(_options(get_command(app), ()) if word.startswith("-") else _verbs())
    elif before[0] == "htools":
        choices = list(_htools(before[1:]))
    elif before[0] in VERBS:
        choices = list(_of_verb(before[0], before[1:], word))
    else:
        choices = []
    known = [(value, " ".join(about.split())[:_LONGEST_HELP]) for value, about in choices if value != FILES]
    return [pair for pair in known if pair[0].startswith(word)] or [pair for pair in choices if pair[0] == FILES]


def _split(line: str) -> list[str]:
    """Return the words of a command line; the last one, at the cursor, may be empty or have an open quote."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    with suppress(ValueError):  # an open quote
        words.extend(lexer)
        return [*words, ""] if not line or line[-1].isspace() else words
    return [*words, lexer.token.lstrip("'\"")]


def _command(verb: str) -> Any:
    root: Any = get_command(app)
    return root.get_command(None, verb)


def _verbs() -> Choices:
    yield from ((verb, summary(_command(verb))) for verb in VERBS)
    yield "help", "Show all that a verb takes"


def _htools(before: list[str]) -> Choices:
    from gpolicy.htools.program_options import options_of  # noqa: PLC0415

    if not before:
        yield "hspace", "How many instances fit"
        yield "hail", "Where an instance goes"
        yield "hbal", "Which moves balance a node group"
        yield "hroller", "Which nodes can be rebooted together"
        return
    yield from ((f"--{option.long}", option.help) for option in options_of(before[0]))
    yield FILES, ""


def _options(command: Any, given: Iterable[str]) -> Choices:
    for item in explained(command).params:
        if item.param_type_name == "option" and (item.multiple or item.name not in given):
            yield from ((name, summary(item)) for name in (*item.opts, *item.secondary_opts) if name[:2] == "--")
    yield "--help", "Show this message and exit"


def _of_verb(verb: str, before: list[str], word: str) -> Choices:
    command = _command(verb)
    options = {name: item for item in command.params for name in (*item.opts, *item.secondary_opts) if name[0] == "-"}
    arguments = [item for item in command.params if item.param_type_name == "argument"]
    given: dict[str, list[str]] = {}
    place = 0
    waiting: Any = None  # the option whose value comes next
    for typed in before:
        name, equals, value = typed.partition("=")
        if waiting is not None:
            given.setdefault(waiting.name, []).append(typed)
            waiting = None
        elif name in options:
            given.setdefault(options[name].name, []).extend([value] if equals else [])
            waiting = None if equals or options[name].is_flag else options[name]
        elif not typed.startswith("-"):
            item = arguments[min(place, len(arguments) - 1)] if arguments else None
            given.setdefault(item.name if item else "", []).append(typed)
            place += 1
    line = _TypedWords(verb, given)
    name, equals, value = word.partition("=")
    if waiting is not None:
        return _option_values(waiting, line, word)
    if equals and name in options:
        return (
            (shown if shown == FILES else f"{name}={shown}", about)
            for shown, about in _option_values(options[name], line, value)
        )
    if word.startswith("-") and word != "-":
        return _options(command, given)
    if place < len(arguments) or (arguments and arguments[-1].nargs == -1):
        return _option_values(arguments[min(place, len(arguments) - 1)], line, word)
    return ()


def _option_values(item: Any, line: _TypedWords, word: str) -> Choices:
    known = _VALUES.get(item.name)
    if known is not None:
        return known(line, word)
    return [(FILES, "")] if "path" in str(item.type.name).lower() else ()


def _choices(values: Iterable[str], about: str = "") -> Choices:
    return ((value, about) for value in dict.fromkeys(values))


def _documents(line: _TypedWords) -> Iterator[dict[str, Any]]:
    """Yield the documents of the policy that the line names, or of the current directory, while time allows."""
    from gpolicy.policy.yaml_reader import read_yaml  # noqa: PLC0415

    end = time.monotonic() + _SECONDS
    named = line.last("policy", "path", "policies", "paths")
    path = Path(named or ".").expanduser()
    files: Iterable[Path] = [path] if path.is_file() else _below(path)
    for file in files:
        if time.monotonic() > end:
            return
        with suppress(OSError, UnicodeError):
            if file.suffix in (".yaml", ".yml") and file.stat().st_size <= _MOST_BYTES:
                reading = read_yaml(file.read_text("utf-8-sig"), "")
                roots = [item.root for item in (*reading.documents, reading.unfinished) if item is not None]
                yield from (root for root in roots if isinstance(root, dict) and "gpolicy" in root)


def _below(directory: Path) -> Iterator[Path]:
    for parent, directories, names in os.walk(directory):
        directories[:] = sorted(name for name in directories if not name.startswith("."))
        yield from (Path(parent) / name for name in sorted(names))


def _named(items: Any) -> Iterator[str]:
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict) and isinstance(item.get("name"), str):
            yield item["name"]


def _in_policy(line: _TypedWords, kind: str, key: str = "") -> Iterator[str]:
    """Yield the names of documents of a kind, or of the entries of a list in them."""
    for document in _documents(line):
        if document.get("kind") == kind:
            yield from _named(document.get(key) if key else [document])


def _groups(line: _TypedWords, word: str) -> Choices:  # noqa: ARG001
    yield from _choices(_in_policy(line, "NodeGroup"), "group of the policy")
    yield from _choices(_in_state(line, "groups"), "group of the cluster")


def _in_state(line: _TypedWords, what: str) -> Iterable[str]:
    """Return names of a cluster, if its state is a small file."""
    source = line.last("state") or os.environ.get(STATE_VARIABLE, "")
    scheme, _, rest = source.partition(":")
    is_file = scheme in FILE_SCHEMES and Path(rest).is_file()
    if scheme != "sim" and not (is_file and Path(rest).stat().st_size <= _MOST_BYTES):
        return ()
    names: Iterable[str] = getattr(read_state(source, SourceOptions()), what)
    return names


def _pair_words(line: _TypedWords) -> Iterator[str]:
    for document in _documents(line):
        policy = document.get("ipolicy")
        yield from _named(policy.get("minmax") if isinstance(policy, dict) else None)


def _state(line: _TypedWords, word: str) -> Choices:
    if ":" not in word:
        yield from _choices(_clusters(line), "cluster of gpolicy.toml")
    yield from _address(word, SCHEMES)


def _clusters(line: _TypedWords) -> Mapping[str, NamedCluster]:
    from gpolicy.cli.targets import clusters_near  # noqa: PLC0415

    path = line.last("path", "policy")
    return clusters_near(Path(path) if path else None)


def _labels(line: _TypedWords, word: str) -> Choices:  # noqa: ARG001
    found = (f"{key}={value}" for cluster in _clusters(line).values() for key, value in cluster.labels.items())
    return _choices(dict.fromkeys(found), "label of clusters")


def _address(word: str, schemes: Mapping[str, Scheme]) -> Choices:
    scheme, colon, _ = word.partition(":")
    if colon:
        return [(FILES, "")] if scheme in FILE_SCHEMES and scheme in schemes else ()
    return ((item.start, item.about) for item in schemes.values())


def _rules(line: _TypedWords, word: str) -> Choices:  # noqa: ARG001

    known = json.loads((data_directory("schemas") / "gpolicy-toml.json").read_text("utf-8"))["definitions"]
    done = word[: word.rfind(",") + 1]
    names = known["ignorable"]["anyOf"][0]["enum"] + known["rule"]["anyOf"][1]["enum"]
    return _choices(f"{done}{name}" for name in names)


def _severities(line: _TypedWords, word: str) -> Choices:
    rule, equals, _ = word.partition("=")
    if equals:
        return _choices(f"{rule}={level}" for level in ("error", "warning", "info"))
    return _choices(f"{name}=" for name, _ in _rules(line, word))


def _kinds(line: _TypedWords, word: str) -> Choices:  # noqa: ARG001
    from gpolicy.policy.kinds import KINDS  # noqa: PLC0415

    return _choices(KINDS, "kind of document")


def _explained(line: _TypedWords, word: str) -> Choices:
    from gpolicy.policy.kinds import BUILT_IN  # noqa: PLC0415
    from gpolicy.reference.keys import all_keys  # noqa: PLC0415

    yield from (*_rules(line, word), *_kinds(line, word), *_choices(BUILT_IN, "guard"), ("exit-codes", "exit codes"))
    yield from _choices((key.name if "." in word else key.words[-1] for key in all_keys() if key.words), "key")


def _guards(line: _TypedWords, word: str) -> Choices:  # noqa: ARG001
    from gpolicy.policy.kinds import BUILT_IN  # noqa: PLC0415

    yield from _choices(_in_policy(line, "Guards", "guards"), "guard of the policy")
    yield from ((name, text) for name, text in read_data("reference.toml")["guards"].items() if BUILT_IN[name])


def _templates(line: _TypedWords, word: str) -> Choices:  # noqa: ARG001
    from gpolicy.ganeti.vocabulary import DISK_TEMPLATES  # noqa: PLC0415

    return _choices(DISK_TEMPLATES, "disk template")


def _weights(line: _TypedWords, word: str) -> Choices:  # noqa: ARG001
    from gpolicy.ganeti.vocabulary import SCORE_COMPONENTS  # noqa: PLC0415

    return _choices(f"{name}=" for name in SCORE_COMPONENTS)


def _request(line: _TypedWords, word: str) -> Choices:
    key, equals, _ = word.partition("=")
    if equals:
        lists = {"group": _groups, "template": _templates, "nodes": _nodes}
        return ((f"{key}={value}", about) for value, about in (lists[key](line, "") if key in lists else ()))
    from gpolicy.analysis.size_words import KEYS  # noqa: PLC0415

    return (*_choices(_pair_words(line), "size of the policy"), *_choices(f"{name}=" for name in KEYS), (FILES, ""))


def _nodes(line: _TypedWords, word: str) -> Choices:
    done = word[: word.rfind(",") + 1]
    return _choices((f"{done}{name}" for name in _in_state(line, "nodes")), "node")


def _wanted(line: _TypedWords, word: str) -> Choices:
    """Return what may follow in `10x SPEC` or `10x memory=4G disk=20G`."""
    from gpolicy.what_if.supposing import SIZE_KEYS  # noqa: PLC0415

    done = word[: word.rfind(" ") + 1]
    given = {key for key, equals, _ in (item.partition("=") for item in done.split()) if equals}
    keys = [key for key in SIZE_KEYS if key not in given]
    specs = () if given else dict.fromkeys(_pair_words(line))
    yield from ((f"{done}{name}", "size of the policy") for name in specs)
    yield from ((f"{done}{key}=", "of a size") for key in keys)


def _more(line: _TypedWords, word: str) -> Choices:
    """Return what may follow in the same with `in GROUP`, or in `2x like:NODE`."""
    done = word[: word.rfind(" ") + 1]
    if done.endswith(" in "):
        return ((f"{done}{name}", about) for name, about in _groups(line, word))
    nodes = ((f"{done}like:{name}", about) for name, about in _nodes(line, ""))
    return (*_wanted(line, word), *nodes)


def _objects(line: _TypedWords, word: str) -> Choices:
    yield "cluster", "the cluster itself"
    yield from ((f"group/{name}", about) for name, about in _groups(line, word))
    yield from ((f"node/{name}", about) for name, about in _nodes(line, ""))


_VALUES: Final[dict[str, Callable[[_TypedWords, str], Choices]]] = {
    "state": _state,
    "label": _labels,
    "to": lambda _line, word: _address(word, DESTINATIONS),
    "group": _groups,
    "allow": _guards,
    "template": _templates,
    "weight": _weights,
    "select": _rules,
    "ignore": _rules,
    "severity": _severities,
    "fail_on": lambda _line, _word: _choices(("error", "warning", "info", "never")),
    "form": lambda line, _word: _choices(forms_of(line.verb)),
    "bounds": lambda _line, _word: _choices(("fixed", "ranges")),
    "sizes": lambda _line, word: _choices(
        f"{word[: word.rfind(',') + 1]}{name}" for name in ("full", "half", "third", "quarter")
    ),
    "kind": _kinds,
    "nodes": _nodes,
    "like": lambda line, _word: _nodes(line, ""),
    "want": _wanted,
    "more": _more,
    "only": _objects,
    "exclude": _objects,
    "word": _explained,
    "request": _request,
    "name": lambda line, _word: (
        _choices(_in_policy(line, "Test", "tests"), "test of the policy") if line.verb == "test" else ()
    ),
    "shell": lambda _line, _word: _choices(SHELLS),
}
"""What completes the values of parameters, by the names of these. Other paths are files, other values are free."""


def run(arguments: list[str]) -> int:
    """Write the answer to the question of a script: shell, line, and the word at the cursor."""
    shell, line, current = (*arguments, "", "", "")[:3]
    below = getattr(sys.stdout, "below", sys.stdout)  # what would make the tabs visible is not for shells
    below.write(answer(shell, line, current))
    return 0
