"""The mutants of a module: one small change each, which a test should notice.

Left alone are docstrings, annotations, decorators, `__all__`, blocks for type checkers, assertions, f-strings and the
words of messages: of texts only keys change, those that look up or compare a value.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

_COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_OPERATORS: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
    ast.Mod: ast.Add, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr,
}  # fmt: skip
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_CONTAINERS: Final = {
    ast.Tuple: "()", ast.List: "[]", ast.ListComp: "[]", ast.Dict: "{}", ast.DictComp: "{}", ast.SetComp: "set()",
    ast.JoinedStr: "''",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mutant:
    """`source` with `old` replaced by `new` at `line`, in `function` (empty: at the level of the module)."""

    file: str
    line: int
    kind: str
    function: str
    old: str
    new: str
    original: str
    source: str
    name: str
    """What tells it from other mutants, wherever the line moves to."""


def mutants(file: str, source: str) -> list[Mutant]:
    """Return all mutants of a module that compile."""
    text = source.encode()
    starts = [0, *accumulate(map(len, text.splitlines(keepends=True)))]
    found = []
    names: Counter[str] = Counter()
    for function, (node, kind, new) in _walk(ast.parse(source), ""):
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        old = " ".join(text[begin:end].decode().split())
        changed = (text[:begin] + new.encode() + text[end:]).decode()
        name = f"{file} {function or '(module)'}: {old} → {new}"
        names[name] += 1
        name = f"{name} ({names[name]})" if names[name] > 1 else name
        found.append(Mutant(file, node.lineno, kind, function, old, new, source, changed, name))
    return [item for item in found if _compiles(item.source)]


def _compiles(source: str) -> bool:
    try:
        compile(source, "mutant", "exec")
    except SyntaxError:
        return False
    return True


Change = tuple[ast.expr | ast.stmt, str, str]
"""The node to replace, the kind of change and the new text."""


def _walk(node: ast.AST, function: str) -> Iterator[tuple[str, Change]]:
    """Yield the changes within a node, each with the function around it; within a class `function` ends in a dot."""
    for child in _code_of(node):
        match child:
            case ast.ClassDef() if not function or function.endswith("."):
                yield from _walk(child, f"{function}{child.name}.")
            case ast.FunctionDef() if not function or function.endswith("."):
                yield from _walk(child.args, function)  # defaults are not in the code of the function
                yield from _walk(ast.Module(child.body, []), f"{function}{child.name}")
            case _:
                where = "" if function.endswith(".") else function
                yield from ((where, change) for change in (*_changes(child), *_keys(child)))
                yield from _walk(child, function)


def _code_of(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the children of a node that a mutant may be in."""
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list", "ctx"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _left_alone(child):
                yield child


def _left_alone(node: ast.AST) -> bool:
    match node:
        case ast.JoinedStr() | ast.Assert() | ast.Import() | ast.ImportFrom() | ast.pattern():
            return True
        case ast.If(test=ast.Name("TYPE_CHECKING")) | ast.Assign(targets=[ast.Name("__all__" | "TYPE_CHECKING")]):
            return True
        case ast.Expr(value=ast.Constant()) | ast.Raise(exc=ast.Name("NotImplementedError")):
            return True
        case ast.keyword(arg="strict"):
            return True
        case ast.Call(func=ast.Name("cast" | "TypeVar" | "NewType")):
            return True
    return False


def _changes(node: ast.AST) -> Iterator[Change]:  # noqa: C901, PLR0912 (a table)
    match node:
        case ast.Compare():
            for number, operator in enumerate(node.ops):
                ops = [*node.ops[:number], _COMPARISONS[type(operator)](), *node.ops[number + 1 :]]
                yield node, "comparison", _shown(ast.Compare(node.left, ops, node.comparators))
        case ast.BoolOp():
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield node, "and/or", _shown(ast.BoolOp(other, node.values))
        case ast.UnaryOp(op=ast.Not()):
            yield node, "not", _shown(node.operand)
        case ast.BinOp() if type(node.op) in _OPERATORS:
            yield node, "operator", _shown(ast.BinOp(node.left, _OPERATORS[type(node.op)](), node.right))
            if isinstance(node.op, ast.Sub | ast.Div | ast.FloorDiv):
                yield node, "operands", _shown(ast.BinOp(node.right, node.op, node.left))
        case ast.Constant(value=bool(value)):
            yield node, "truth", repr(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield node, "number", repr(value + 1)
            if value:
                yield node, "number", repr(value - 1)
        case ast.Call(func=ast.Name(id="min" | "max" | "any" | "all" as name)):
            opposite = {"min": "max", "max": "min", "any": "all", "all": "any"}[name]
            yield node.func, "opposite", opposite
        case ast.comprehension():
            yield from ((condition, "filter", "True") for condition in node.ifs)
        case ast.If() | ast.While() | ast.IfExp() if not isinstance(node.test, ast.Compare | ast.UnaryOp):
            yield node.test, "condition", _shown(ast.UnaryOp(ast.Not(), node.test))
        case ast.Return(value=ast.expr() as result) if not isinstance(result, ast.Constant):
            yield node, "return", f"return {_CONTAINERS.get(type(result))}"
        case ast.Raise() | ast.AugAssign() | ast.Expr(value=ast.Call()):
            yield node, "removed", "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield node, "removed", "pass"
        case ast.Continue() | ast.Break():
            yield node, "continue/break", "break" if isinstance(node, ast.Continue) else "continue"


def _keys(node: ast.AST) -> Iterator[Change]:
    """Change the texts that a node looks up, compares with, or stores by."""
    match node:
        case ast.Dict():
            found: list[ast.expr | None] = [*node.keys]
        case ast.Subscript():
            found = [node.slice]
        case ast.Compare():
            found = [node.left, *node.comparators]
        case ast.Call(func=ast.Attribute(attr="get" | "pop" | "setdefault"), args=[ast.expr() as first, *_]):
            found = [first]
        case _:
            return
    for key in found:
        if isinstance(key, ast.Constant) and isinstance(key.value, str) and _WORD.fullmatch(key.value):
            yield key, "key", repr(f"{key.value}_")


def _shown(node: ast.expr) -> str:
    return f"({ast.unparse(ast.fix_missing_locations(node))})"
