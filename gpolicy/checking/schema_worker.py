"""The process that judges values by schemas of strangers, with little memory and no files: what hangs is not gpolicy.

A question is a line of JSON: a list of values, which has no answer, or a dict: a `schema`, its `patterns` with their
places, the `numbers` of the values to judge, and the `seconds` of processor time that it may take.
"""

import json
import re
import resource
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from jsonschema import Draft7Validator, validators
from jsonschema.exceptions import ValidationError

_MEMORY: Final = 512 * 1024**2
_SentBreach = tuple[int, list[str | int], str, Any, Any]
_MOST_BREACHES: Final = 20  # what of one value is told at most


def serve() -> None:
    """Answer each question: wrong patterns, breaches, and seconds taken. A question that takes too much ends it."""
    breaches({}, {0: None})  # older releases of jsonschema read files at their first validation
    for kind, most in ((resource.RLIMIT_AS, _MEMORY), (resource.RLIMIT_NOFILE, 0), (resource.RLIMIT_CORE, 0)):
        _limit(kind, most, for_good=True)
    _say("ready")
    values: list[Any] = []
    for line in sys.stdin:
        question = json.loads(line)
        if isinstance(question, list):
            values = question
            continue
        began = time.process_time()
        _limit(resource.RLIMIT_CPU, int(began) + 2 + question["seconds"], for_good=False)
        wrong = [*_wrong_patterns(question["patterns"])]
        found = [] if wrong else breaches(question["schema"], {n: values[n] for n in question["numbers"]})
        _say([wrong, found, time.process_time() - began])


def _limit(kind: int, most: int, *, for_good: bool) -> None:
    """Limit what this process may take, within what was allowed before; unless for good, a later one may differ."""
    allowed = resource.getrlimit(kind)[1]
    limit = most if allowed == resource.RLIM_INFINITY else min(most, allowed)
    resource.setrlimit(kind, (limit, limit if for_good else allowed))


def _say(answer: Any) -> None:
    sys.stdout.write(f"{json.dumps(answer)}\n")
    sys.stdout.flush()


def _wrong_patterns(patterns: list[tuple[Any, str]]) -> Iterator[tuple[Any, str, str]]:
    for place, text in patterns:
        try:
            re.compile(text)
        except (re.error, OverflowError) as error:
            yield place, text, str(error)


def breaches(schema: Mapping[str, Any], values: Mapping[int, Any]) -> list[_SentBreach] | None:
    """Return what of the values breaks a schema: number, path, keyword, argument, part; None if it is too deep."""
    validator = _VALIDATOR(schema)
    try:
        return [
            (number, list(error.absolute_path), error.validator, error.validator_value, error.instance)
            for number, value in values.items()
            for error in islice(validator.iter_errors(value), _MOST_BREACHES)
        ]
    except RecursionError:
        return None


def _required(_: Any, names: list[str], value: Any, __: Any) -> Iterator[ValidationError]:
    missing = [name for name in names if isinstance(value, dict) and name not in value]
    if missing:
        yield ValidationError("", validator_value=missing)


def _property_names(judge: Any, schema: Any, value: Any, _: Any) -> Iterator[ValidationError]:
    for name in value if isinstance(value, dict) else ():
        if not judge.evolve(schema=schema).is_valid(name):
            yield ValidationError("", path=(name,), instance=name)


def _additional(judge: Any, schema: Any, value: Any, around: Mapping[str, Any]) -> Iterator[ValidationError]:
    known, patterns = around.get("properties", ()), around.get("patternProperties", ())
    for name, item in value.items() if isinstance(value, dict) else ():
        if name in known or any(re.search(pattern, name) for pattern in patterns):
            continue
        if schema is False:
            yield ValidationError("", path=(name,), validator="false", validator_value=False, instance=item)
        else:
            yield from judge.descend(item, schema, path=name)


_KEYWORDS: Final = {"required": _required, "propertyNames": _property_names, "additionalProperties": _additional}


def _applicable(schema: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """Return the keywords that count: beside `$ref` none (`extend` forgets that in older releases of jsonschema)."""
    return [("$ref", schema["$ref"])] if "$ref" in schema else schema.items()


_create: Any = validators.create
_VALIDATOR: Final = _create(
    Draft7Validator.META_SCHEMA,
    {**Draft7Validator.VALIDATORS, **_KEYWORDS},
    type_checker=Draft7Validator.TYPE_CHECKER,
    applicable_validators=_applicable,
)
