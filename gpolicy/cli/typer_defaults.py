"""Options in the form that every release of Typer reads: as defaults of parameters.

Our verbs write them as `Annotated`, which the Typer of Debian 12 (0.7) does not know; nor does it know `X | None`.
"""

from __future__ import annotations

import inspect
from copy import copy
from functools import wraps
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin, get_type_hints

from typer.models import OptionInfo

if TYPE_CHECKING:
    from collections.abc import Callable


def with_typer_defaults(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Return `verb` with the Typer part of each `Annotated` parameter as the parameter's default."""
    hints = get_type_hints(verb, include_extras=True)
    parameters = [
        _with_default(parameter, hints[name]) for name, parameter in inspect.signature(verb).parameters.items()
    ]

    @wraps(verb)
    def run(**values: Any) -> Any:
        return verb(**values)

    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    vars(run)["__signature__"] = inspect.Signature(parameters)
    return run


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
