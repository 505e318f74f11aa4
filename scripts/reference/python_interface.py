"""The reference of the Python interface, from the code of what `import gpolicy` gives, and of the types that it names.

Signatures and defaults are shown as their source says them: many types are imported for type checkers only.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from typing import Any

import gpolicy
from gpolicy.reference.blocks import Heading, PageBlock, PageListing
from scripts.reference.markdown import anchor

_ABOUT = (
    "For those who use gpolicy from Python. `import gpolicy` gives these functions and values, and no other names; each"
    " is imported when it is used. [The guide](../guides/python.md) shows how they go together. Functions print nothing"
    " and read no clock; those called `write_...` write files, and `apply_plan` and `roll_out` change clusters."
    " `working` of some is told what they do: a function from a text to a context manager, which gives what takes the"
    " parts. Sizes are in MiB."
)
_OF_OTHERS = (
    "Signatures above name these types as well. `import gpolicy` does not give them: they come as values from what it"
    " gives. Who writes one in an annotation imports it from the module that is named here, which"
    " [may change](stability.md)."
)
_ANSWERS = ("gpolicy.analysis.capacity", "gpolicy.impact.capacity_change", "gpolicy.plan.changes")
"""Modules of values whose own fields are read, too: what fits, and what a plan changes."""
_FIELDS = ("field", "kind")
"""Functions whose calls declare a field; their keywords are those of `dataclasses.field`."""
_LONGEST = 100  # characters of a signature in one line; half of that for a default


@dataclasses.dataclass(frozen=True, slots=True)
class _Thing:
    """A function or a type: its name in the module that defines it, and the syntax there."""

    name: str
    module: str

    @property
    def item(self) -> Any:
        """The object itself."""
        return getattr(import_module(self.module), self.name)

    @property
    def node(self) -> ast.stmt:
        """Its definition."""
        return _definitions(self.module)[self.name]


def python_page() -> list[PageBlock]:
    """Return the page: the functions, the values that they take and give, and the further types that these name."""
    every = (_defined(name, f"gpolicy.{gpolicy.PUBLIC[name]}") for name in sorted(gpolicy.PUBLIC))
    public = [thing for thing in every if thing is not None]
    functions = [thing for thing in public if inspect.isfunction(thing.item)]
    values = [thing for thing in public if thing not in functions]
    named = {type_ for thing in public for type_ in _types_of(thing)}
    named |= {type_ for thing in named if thing.module in _ANSWERS or _is_alias(thing) for type_ in _types_of(thing)}
    further = sorted(named.difference(public), key=lambda thing: (thing.name, thing.module))
    names = [thing.name for thing in (*public, *further)]
    titles = {
        thing: thing.name if names.count(thing.name) == 1 else f"{thing.module.rpartition('.')[2]}.{thing.name}"
        for thing in (*public, *further)
    }
    return [
        Heading("Python", 1),
        _ABOUT,
        Heading("Functions"),
        *(block for thing in functions for block in _described(thing, titles)),
        Heading("Values"),
        *(block for thing in values for block in _described(thing, titles)),
        Heading("Further types"),
        _OF_OTHERS,
        *(block for thing in further for block in _described(thing, titles, is_public=False)),
    ]


def _described(thing: _Thing, titles: dict[_Thing, str], *, is_public: bool = True) -> Iterator[PageBlock]:
    """Yield the section of a function or type, with links to the sections of the types that it names."""
    yield Heading(f"`{titles[thing]}`", 3)
    if lines := _listing(thing):
        yield PageListing(lines, "python")
    yield from _documentation(thing).split("\n\n")
    if not is_public:
        yield f"It is in `{thing.module}`."
    elif types := [titles[type_] for type_ in _types_of(thing) if type_ != thing]:
        yield f"Types: {', '.join(f'[`{title}`](python.md#{anchor(title)})' for title in types)}."


def _is_alias(thing: _Thing) -> bool:
    return not isinstance(thing.node, ast.ClassDef)


def _documentation(thing: _Thing) -> str:
    """Return the docstring; of an assigned type the text behind it."""
    node = thing.node
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return ast.get_docstring(node) or ""
    body = _tree(thing.module).body
    behind = body[body.index(node) + 1 :][:1]
    texts = [each.value.value for each in behind if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)]
    return inspect.cleandoc(str(texts[0])) if texts else ""


def _listing(thing: _Thing) -> str:
    """Return the signature of a function, the fields or members of a class, or what is assigned to the name."""
    node = thing.node
    match node:
        case ast.FunctionDef():
            return _signature(node, thing.module)
        case ast.Assign() | ast.AnnAssign() if node.value is not None:
            return f"{thing.name} = {_short(ast.unparse(node.value))}"
    item: type = thing.item
    if dataclasses.is_dataclass(item):
        fields = [_field_line(item, field.name) for field in dataclasses.fields(item) if not field.name.startswith("_")]
        methods = [_method(*each) for each in _methods(item)]
        return "\n".join([*fields, *([""] if fields and methods else []), *methods])
    if issubclass(item, enum.Enum):
        return "\n".join(f"{member.name} = {_short(repr(member.value))}" for member in item)
    if issubclass(item, Exception) or not isinstance(node, ast.ClassDef):
        return ""
    return "\n".join(_method(*each) for each in _methods(item))


def _methods(item: type) -> list[tuple[ast.FunctionDef, str]]:
    """Return the public methods and properties of a class, with those that it inherits, each with its module."""
    found: dict[str, tuple[ast.FunctionDef, str]] = {}
    for each in item.__mro__:
        node = _definitions(each.__module__).get(each.__name__)
        for method in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(method, ast.FunctionDef) and not method.name.startswith("_"):
                found.setdefault(method.name, (method, each.__module__))
    return list(found.values())


def _method(node: ast.FunctionDef, module: str) -> str:
    """Return a method as it is called, or a property as a field, with the first line of its documentation."""
    is_property = any(ast.unparse(each) in ("property", "cached_property") for each in node.decorator_list)
    kind = _short(ast.unparse(node.returns)) if node.returns else "Any"
    line = f"{node.name}: {kind}" if is_property else _signature(node, module)
    about = (ast.get_docstring(node) or "").partition("\n")[0]
    return f"# {about}\n{line}" if about else line


def _field_line(item: type, name: str) -> str:
    """Return a field of a dataclass with its type and default."""
    line, module = _field(item, name)
    default = line.value
    if not isinstance(default, ast.Call) or ast.unparse(default.func).rpartition(".")[2] not in _FIELDS:
        return f"{name}: {_short(ast.unparse(line.annotation))}{_default(default, module)}"
    words = {word.arg: word.value for word in default.keywords}
    text = _default(words.get("default"), module)
    if factory := words.get("default_factory"):
        empty = {"dict": "{}", "list": "[]", "set": "set()"}
        text = f" = {empty.get(ast.unparse(factory), f'{_short(ast.unparse(factory))}()')}"
    return f"{name}: {_short(ast.unparse(line.annotation))}{text}"


def _field(item: type, name: str) -> tuple[ast.AnnAssign, str]:
    """Return where a class, or one that it inherits from, declares a field; and the module of that."""
    for each in item.__mro__:
        node = _definitions(each.__module__).get(each.__name__)
        for line in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(line, ast.AnnAssign) and ast.unparse(line.target) == name:
                return line, each.__module__
    raise LookupError(f"{item.__name__} has no field {name}")


def _signature(node: ast.FunctionDef, module: str) -> str:
    """Return the parameters of a function, in several lines where one is too long."""
    given = node.args
    plain = [each for each in (*given.posonlyargs, *given.args) if each.arg != "self"]
    defaults = [*[None] * (len(plain) - len(given.defaults)), *given.defaults]
    parts = [_parameter(each, default, module) for each, default in zip(plain, defaults, strict=True)]
    if given.vararg:
        parts.append(f"*{_parameter(given.vararg, None, module)}")
    elif given.kwonlyargs:
        parts.append("*")
    parts += [_parameter(*each, module) for each in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    returned = _short(ast.unparse(node.returns)) if node.returns else "None"
    line = f"{node.name}({', '.join(parts)}) -> {returned}"
    return line if len(line) < _LONGEST else f"{node.name}(\n    " + ",\n    ".join(parts) + f",\n) -> {returned}"


def _parameter(each: ast.arg, default: ast.expr | None, module: str) -> str:
    kind = f": {_short(ast.unparse(each.annotation))}" if each.annotation else ""
    return f"{each.arg}{kind}{_default(default, module)}"


def _default(node: ast.expr | None, module: str) -> str:
    """Return a default with its sign; for a constant its value, which says more than its name, if it is short."""
    if node is None:
        return ""
    text = ast.unparse(node)
    if not re.fullmatch(r"_?[A-Z][A-Z_]*", text):
        return f" = {_short(text)}"
    value = getattr(import_module(module), text)
    kind: Any = type(value)
    fields = dataclasses.fields(value) if dataclasses.is_dataclass(value) else ()
    has_defaults = all({each.default, each.default_factory} != {dataclasses.MISSING} for each in fields)
    is_plain = fields != () and has_defaults and value == kind()
    shown = f"{kind.__name__}()" if is_plain else _short(repr(value))
    return f" = {shown if len(shown) < _LONGEST // 2 else text}"


def _short(text: str) -> str:
    """Return a type or a value without the modules before its names, and with our quotes."""
    return re.sub(r"\b(?:[a-z]\w*\.)+(?=[A-Z])", "", re.sub(r"'([^'\"\\]*)'", r'"\1"', text))


# --- which types are named ----------------------------------------------------------------------------------------


def _types_of(thing: _Thing) -> list[_Thing]:
    """Return our types that a signature, the fields of a value, or an assigned type name, each once."""
    found = (_defined(word, module) for node, module in _annotations(thing) for word in _words(node))
    return list(dict.fromkeys(type_ for type_ in found if type_ is not None))


def _annotations(thing: _Thing) -> Iterator[tuple[ast.expr, str]]:
    """Yield the types as they are written, and the module in which their names mean something."""
    node = thing.node
    if isinstance(node, ast.FunctionDef):
        given = node.args
        every = [*given.posonlyargs, *given.args, *given.kwonlyargs, *([given.vararg] if given.vararg else [])]
        yield from ((each.annotation, thing.module) for each in every if each.annotation)
        yield from ((each, thing.module) for each in (node.returns,) if each)
        return
    if isinstance(node, ast.Assign):
        yield node.value, thing.module
    item: type = thing.item
    for field in dataclasses.fields(item) if dataclasses.is_dataclass(item) else ():
        if not field.name.startswith("_"):
            line, module = _field(item, field.name)
            yield line.annotation, module
    for method, module in _methods(item) if isinstance(node, ast.ClassDef) else ():
        parameters = (*method.args.args, *method.args.kwonlyargs)
        written = (*(each.annotation for each in parameters), method.returns)
        yield from ((each, module) for each in written if each is not None)


def _words(node: ast.expr) -> Iterable[str]:
    return re.findall(r"[A-Za-z_][\w.]*", ast.unparse(node))


def _defined(word: str, module: str) -> _Thing | None:
    """Return what a name in a module stands for, where it is defined; None for what is not ours."""
    first, _, rest = word.partition(".")
    if not rest and first in _definitions(module):
        return _Thing(first, module)
    source = _imports(module).get(first)
    if first == "gpolicy" and rest in gpolicy.PUBLIC:
        return _defined(rest, f"gpolicy.{gpolicy.PUBLIC[rest]}")
    if source is None or not source[0].startswith("gpolicy"):
        return None
    if rest:  # `from gpolicy.apply import journals`, and then `journals.Direction`
        return _defined(rest, ".".join(source))
    return _defined(source[1], source[0])


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(import_module(module)))


@cache
def _definitions(module: str) -> dict[str, ast.stmt]:
    """Return the functions, classes and assigned names of a module."""
    found: dict[str, ast.stmt] = {}
    for node in _tree(module).body if module.startswith("gpolicy") else ():
        match node:
            case ast.FunctionDef() | ast.ClassDef():
                found[node.name] = node
            case ast.Assign(targets=[ast.Name(name)]) | ast.AnnAssign(target=ast.Name(name)):
                found[name] = node
    return found


@cache
def _imports(module: str) -> dict[str, tuple[str, str]]:
    """Return where imported names of a module come from, with those that only type checkers see."""
    imports = (node for node in ast.walk(_tree(module)) if isinstance(node, ast.ImportFrom) and node.module)
    return {name.asname or name.name: (str(node.module), name.name) for node in imports for name in node.names}
