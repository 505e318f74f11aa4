"""Options in the form that every release of Typer reads: as defaults of parameters.

Our verbs write them as `Annotated`, which the Typer of Debian 12 (0.7) does not know; nor does it know `X | None`.
Options that several verbs share are the fields of a dataclass; a verb has one parameter for all of them.
"""

from __future__ import annotations

import inspect
from copy import copy
from dataclasses import fields, is_dataclass
from functools import wraps
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

from typer.models import OptionInfo

if TYPE_CHECKING:
    from collections.abc import Callable


_FIRST: Final = "state"


def with_typer_defaults(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Return `verb` with the Typer part of each `Annotated` parameter as the parameter's default.

    A parameter of a dataclass becomes one parameter for each field. In the help, the verb's own options follow the one
    for the state, and those that it shares with others come last.
    """
    hints = get_type_hints(verb, include_extras=True)
    shared: dict[str, Any] = {name: hint for name, hint in hints.items() if name != "return" and is_dataclass(hint)}
    own = [
        _with_default(item, hints[name])
        for name, item in inspect.signature(verb).parameters.items()
        if name not in shared
    ]
    common = [parameter for kind in shared.values() for parameter in _fields(kind)]
    parameters = sorted([*own, *common], key=lambda item: (item.name != _FIRST, item not in own))

    @wraps(verb)
    def run(**values: Any) -> Any:
        for name, kind in shared.items():
            values[name] = kind(**{item.name: values.pop(item.name) for item in fields(kind)})
        return verb(**values)

    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    vars(run)["__signature__"] = inspect.Signature(parameters)
    return run


def _fields(kind: Any) -> list[inspect.Parameter]:
    """Return the fields of a dataclass as parameters, under its `heading` in the help."""
    hints = get_type_hints(kind, include_extras=True)
    keyword = inspect.Parameter.KEYWORD_ONLY
    plain = (inspect.Parameter(item.name, keyword, default=item.default) for item in fields(kind))
    found = [_with_default(parameter, hints[parameter.name]) for parameter in plain]
    for parameter in found:
        owner = next(one for one in kind.__mro__ if parameter.name in vars(one).get("__annotations__", {}))
        parameter.default.rich_help_panel = None if parameter.name == _FIRST else owner.heading
    return found


def _with_default(parameter: inspect.Parameter, hint: Any) -> inspect.Parameter:
    if get_origin(hint) is not Annotated:
        return parameter.replace(kind=parameter.KEYWORD_ONLY, annotation=hint)
    kind, about = get_args(hint)
    about = copy(about)
    if isinstance(about, OptionInfo) and about.default is not ...:  # in `Annotated` the name of the option is first
        about.param_decls = (str(about.default), *(about.param_decls or ()))
    about.default = ... if parameter.default is parameter.empty else parameter.default
    if get_origin(kind) is UnionType:
        kind = Union[get_args(kind)]  # noqa: UP007 (what `kind` contains is not known before)
    return parameter.replace(kind=parameter.KEYWORD_ONLY, default=about, annotation=kind)
