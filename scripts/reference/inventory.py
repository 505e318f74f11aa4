"""What an installed Ganeti has, as lines of text that two releases can be compared by (scripts/releases).

Run by the Python of the system that has Ganeti's modules: `python3 inventory.py`. It prints a JSON object: each key
names one fact (a value of a constant, a parameter of an opcode, an option, a resource, a field, a module), and each
value says what it is. Of a module it is a digest of its code without documentation. Nothing is asked of a cluster.
With two files, `python3 inventory.py OLD NEW`, it prints how their inventories differ.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

TREE: Final = max(Path("/usr/share/ganeti").glob("3.*/ganeti"))
CLIENTS: Final = (
    "backup",
    "cluster",
    "debug",
    "filter",
    "group",
    "instance",
    "job",
    "network",
    "node",
    "os",
    "storage",
)
HTOOLS: Final = ("hail", "harep", "hbal", "hcheck", "hinfo", "hroller", "hscan", "hspace", "hsqueeze")
HTOOLS_PROGRAM: Final = shutil.which("hspace") or "hspace"
_RELEASE: Final = re.compile(r"3\.[01](\.[0-9]+)?(~rc[0-9]+)?(-[0-9]+)?|30[01]0000")
_WORDS: Final = re.compile(r"(?<=OneOf |e of: )[\w/-]+(, [\w/-]+)*")
"""Words of a set in a description: their order says nothing."""
Facts = Iterator[tuple[str, str]]


def module(name: str) -> ModuleType:
    """Return one of Ganeti's modules."""
    return importlib.import_module(f"ganeti.{name}")


def said(value: object) -> str:
    """Return a value as text that is the same in each run and, if it only names the release, in each release."""
    if isinstance(value, set | frozenset):
        return "{" + ", ".join(sorted(map(said, value))) + "}"
    return in_order(_RELEASE.sub("RELEASE", repr(value)))


def in_order(text: str) -> str:
    """Return a description with the words of each set in alphabetical order, and without addresses of functions."""
    text = re.sub(r"<function (\w+) at 0x[0-9a-f]+>", r"\1", text)
    return _WORDS.sub(lambda words: ", ".join(sorted(words[0].split(", "))), text)


def flat(name: str, value: Any) -> Facts:
    """Take dictionaries and sets apart: a fact for each entry."""
    if isinstance(value, dict):
        for key in sorted(value, key=repr):
            yield from flat(f"{name}.{key}", value[key])
    elif isinstance(value, set | frozenset) and value:
        yield from ((f"{name}: {item if isinstance(item, str) else said(item)}", "there") for item in value)
    else:
        yield name, said(value)


def constants() -> Facts:
    """Yield the values of all constants, of which the defaults, words and types of parameters are a part."""
    for name, value in vars(module("constants")).items():
        if name.isupper() and not callable(value) and not isinstance(value, ModuleType):
            yield from flat(f"constant {name}", value)


def opcodes() -> Facts:
    """Yield the parameters of all opcodes: their type and default."""
    for name, opcode in module("opcodes").OP_MAPPING.items():
        yield f"opcode {name}", "there"
        for parameter, default, check, *_ in opcode.OP_PARAMS:
            yield f"opcode {name} {parameter}", f"{in_order(str(check))}, default {said(default)}"


def commands() -> Facts:
    """Yield the sub-commands of all gnt-* programs, and their options."""
    for client in CLIENTS:
        for name, (_, arguments, options, *_) in module(f"client.gnt_{client}").commands.items():
            yield f"command gnt-{client} {name}", said(arguments)
            for option in options:
                shape = (option.action, option.type, option.dest, option.default, sorted(option.choices or ()))
                yield f"option gnt-{client} {name} {option.get_opt_string()}", said(shape)


def remote_api() -> Facts:
    """Yield the resources of the remote API with their methods, and the fields that they show."""
    resources = module("rapi.connector").CONNECTOR
    for pattern, handler in resources.items():
        path = getattr(pattern, "pattern", pattern)
        for method in ("GET", "PUT", "POST", "DELETE"):
            opcode = getattr(handler, f"{method}_OPCODE", None)
            if opcode or hasattr(handler, method):
                yield f"resource {method} {path}", opcode.__name__ if opcode else "no opcode"
    for name, value in vars(module("rapi.rlib2")).items():
        if name.endswith("_FIELDS") and isinstance(value, list):
            yield from ((f"resource field {name} {field}", "there") for field in value)


def hypervisors() -> Facts:
    """Yield how each hypervisor checks each of its parameters."""
    for name in module("hypervisor")._HYPERVISOR_MAP:
        for parameter, (required, _, why, _, and_why) in (
            module("hypervisor").GetHypervisorClass(name).PARAMETERS.items()
        ):
            yield f"check {name} {parameter}", said((required, why, and_why))


def requests() -> Facts:
    """Yield the requests of the query protocol, and the fields that manual pages list for it."""
    yield from ((f"request {name}", "there") for name in sorted(module("luxi").REQ_ALL))
    for client in CLIENTS:
        page = f"/usr/share/man/man8/gnt-{client}.8.gz"
        text = subprocess.run(["/bin/zcat", page], capture_output=True, text=True, check=True).stdout
        section = re.search(r"\n\.SS LIST\n(.*?)(?=\n\.S[SH] )", text, re.DOTALL)
        words = re.findall(r"\n\\f\[[VC]R?\]([a-z_./]+)\\f", section[1]) if section else []
        yield from ((f"field of gnt-{client} list {word}", "there") for word in words)


def htools() -> Facts:
    """Yield the options of the programs of htools, as their help has them."""
    for program in HTOOLS:
        environment = {**os.environ, "HTOOLS": program}
        done = subprocess.run([HTOOLS_PROGRAM, "--help"], env=environment, capture_output=True, text=True, check=False)
        text = done.stdout
        for option, rest in re.findall(r"(?m)^ +((?:-\w[ ,\w=]*)?--[\w-]+\S*) *(.*)$", text):
            yield f"option {program} {option.strip()}", rest.strip()


def code() -> Facts:
    """Yield a digest of the code of each of Ganeti's modules."""
    for file in sorted(TREE.rglob("*.py")):
        if file.name not in ("_constants.py", "_vcsversion.py", "_generated_rpc.py", "opcodes.py"):
            where = ".".join(file.relative_to(TREE).with_suffix("").parts).removesuffix(".__init__")
            tree = without_documentation(ast.parse(file.read_text(encoding="utf-8")))
            yield f"code {where}", hashlib.sha256(ast.unparse(tree).encode()).hexdigest()[:12]


def without_documentation(tree: ast.AST) -> ast.AST:
    """Remove the documentation of all functions and classes below a node of the syntax tree; return the node."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module) and ast.get_docstring(node, clean=False):
            node.body = node.body[1:] or [ast.Pass()]
    return tree


def inventory() -> dict[str, str]:
    """Return all facts of the Ganeti that is installed."""
    sys.path.insert(0, str(TREE.parent))
    parts = (constants, opcodes, commands, remote_api, hypervisors, requests, htools, code)
    return dict(fact for part in parts for fact in part())


def differences(old: dict[str, str], new: dict[str, str]) -> dict[str, list[str | None]]:
    """Return what each of two inventories says where they differ; None: it does not have this."""
    return {name: [old.get(name), new.get(name)] for name in old | new if old.get(name) != new.get(name)}


def main() -> None:
    """Print the inventory; with the names of two files that have one, the differences between them."""
    files = [json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:]]
    facts = differences(*files) if files else inventory()
    print(json.dumps(facts, indent=1, sort_keys=True))  # noqa: T201


if __name__ == "__main__":
    main()
