"""Parts of the schemas: small ones, properties of parameters by level from the table of parameters, and the terms.

Terms are what a policy says of resources that Ganeti has no parameter for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from gpolicy.data import read_data
from gpolicy.ganeti.amounts import BOUNDS, GREATEST_OVERSUBSCRIPTION, KIB_PER_SECOND, MOST_NODE_FAILURES
from gpolicy.ganeti.parameters import INHERITED_FAMILIES, parameters_of
from gpolicy.ganeti.vocabulary import DISK_TEMPLATES, SPEC_SIZES, Level, Parameter, Type
from gpolicy.policy.conformance import INHERIT, REFERENCE, TAG_PATTERN, VALUE, Schema, rebuilt


def text_like(name: str) -> Schema:
    """Return the schema of a text with a pattern of `templates/patterns.toml`."""
    return {"type": "string", "pattern": read_data("patterns.toml")[name]["pattern"]}


NAME: Final[Schema] = {"type": "string", "minLength": 1, "maxLength": 255}
UID_RANGE: Final[Schema] = {
    "anyOf": [{"type": "integer", "minimum": 0}, text_like("user IDs")],
    "description": 'A range of user IDs, both ends included ("1000-1010"), or one user ID (2000).',
}
SHAPE: Final = "$shape"
"""The key that names a shape while schemas are made: `share_shapes` writes it once in a file."""

SIZE: Final[Schema] = {
    SHAPE: "size",
    "anyOf": [text_like("size"), {"type": "integer", "minimum": 0}],
}

TAG: Final[Schema] = {"type": "string", "pattern": TAG_PATTERN}
COUNT: Final[Schema] = {"type": "integer", "minimum": 0, "maximum": 1_000_000}
"""A number that a test expects."""


def described(schema: Schema, text: str) -> Schema:
    """Return a schema with this description; unchanged without one."""
    return {**schema, "description": text} if text else schema


def name_of(text: str) -> Schema:
    """Return the schema of a name with this description."""
    return {**NAME, "description": text}


def size_of(text: str) -> Schema:
    """Return the schema of a size with this description."""
    return {**SIZE, "description": text}


def count_of(name: str, text: str = "", *, least: int = 0) -> Schema:
    """Return the schema of a whole number within the bounds of this name."""
    return described({"type": "integer", "minimum": least, "maximum": BOUNDS[name].most}, text)


_LEAST_RATIO: Final = 0.001
"""Of a ratio or speed in a policy: with much less, the score of the cluster would be no number."""
_AMOUNTS: Final = {
    "memory-size": "Memory of the instance (backend parameter maxmem)",
    "cpu-count": "Virtual CPUs",
    "disk-size": "Size of each disk",
    "disk-count": "Number of disks",
    "nic-count": "Number of network interfaces",
    "spindle-use": "Spindles used: the backend parameter spindle_use, or under exclusive storage the sum of the"
    " disks' own spindles",
}
"""What each parameter of a spec means."""


def amount_of(name: str, unit: str = "") -> Schema:
    """Return the schema of a parameter of a spec; `unit` ends its description."""
    return {**(SIZE if name in SPEC_SIZES else count_of(name)), "description": f"{_AMOUNTS[name]}{unit}."}


def whole(text: str, *, least: int = 0, most: int | None = None) -> Schema:
    """Return the schema of a whole number with this description."""
    return {"type": "integer", "minimum": least, **({} if most is None else {"maximum": most}), "description": text}


def flag(text: str) -> Schema:
    """Return the schema of true or false with this description."""
    return {"type": "boolean", "description": text}


def list_of(
    items: Schema, text: str = "", *, least: int | None = None, most: int | None = None, unique: bool = False
) -> Schema:
    """Return the schema of a list with this description."""
    bounds = {"minItems": least, "maxItems": most, "uniqueItems": unique or None}
    return described({"type": "array", "items": items, **{k: v for k, v in bounds.items() if v is not None}}, text)


NODES: Final[Schema] = list_of(NAME, least=1, most=2, unique=True)


def closed(properties: Schema, text: str = "", required: Iterable[str] = ()) -> Schema:
    """Return the schema of a mapping with only these keys, as `object_of`, in another order of keywords."""
    head = described({"type": "object"}, text) | {"properties": properties}
    return head | ({"required": [*required]} if required else {}) | {"additionalProperties": False}


def object_of(properties: Schema, text: str = "", *, required: tuple[str, ...] = (), minimum: int = 0) -> Schema:
    """Return the schema of a mapping with only these keys, at least `minimum` of them, and with this description."""
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = list(required)
    if minimum:
        schema["minProperties"] = minimum
    return described(schema, text)


def map_of(of: Schema) -> Schema:
    """Return a mapping of names that the policy chooses (specs, nodes) to values."""
    return {"type": "object", "additionalProperties": of, "minProperties": 1}


def _leaf(parameter: Parameter, level: Level) -> Schema:
    schema = _plain_leaf(parameter)
    if level is not Level.CLUSTER and parameter.family != "alloc_policy":
        text = "the group's or cluster's" if level is Level.NODE else "the cluster's"
        inherits = parameter.family in INHERITED_FAMILIES
        follow = f"; {text} applies" if inherits else ""
        inherit = {"const": INHERIT, "description": f"Remove the own value{follow}."}
        whose = f"its-{'group' if level is Level.NODE else 'cluster'}s" if inherits else "none"
        schema = {SHAPE: f"{_shape(parameter)}-or-{whose}", "anyOf": [*schema.get("anyOf", [schema]), inherit]}
    elif parameter.choices:
        schema = {SHAPE: _shape(parameter), **schema}
    return {**schema, "description": _describe(parameter), **_examples(parameter)}


def _shape(parameter: Parameter) -> str:
    """Return a name for the shape of the parameter's values."""
    if parameter.unit == KIB_PER_SECOND:
        return "rate"
    match parameter.type:
        case Type.SIZE | Type.MIB:
            return "size"
        case Type.INT | Type.FLOAT if not parameter.numbers:
            bounds = (("from", parameter.minimum), ("to", _largest(parameter)))
            return "-".join(["number", *(f"{word}-{bound}" for word, bound in bounds if bound is not None)])
        case Type.STRING if not parameter.form:
            return "text" if parameter.can_be_empty else "words"
        case Type.BOOL:
            return "boolean"
    return parameter.path[-1]


def _examples(parameter: Parameter) -> Schema:
    """Return a value that surely can be written, for editors to offer: an example, or Ganeti's default."""
    default = parameter.new_default[1] if parameter.new_default else parameter.default
    shown = default if parameter.example is None else parameter.example
    is_text = isinstance(shown, int | float | str) and not isinstance(shown, bool) and shown != ""
    return {"examples": [shown]} if is_text and not parameter.choices and not parameter.numbers else {}


def _describe(parameter: Parameter) -> str:
    parts = [parameter.description]
    if parameter.type is Type.UID_RANGES:
        parts.append('Each entry is a range ("1000-1010") or one user ID (2000).')
    if parameter.unit:
        parts.append(f"Unit: {parameter.unit}.")
    if parameter.default not in (None, "") and parameter.type is not Type.MINMAX:
        newer = parameter.new_default
        since = f" ({_words(newer[1])} from {newer[0]})" if newer else ""
        parts.append(f"Ganeti's default: {_words(parameter.default)}{since}.")
    return " ".join([*parts, effect_sentence(parameter)])


def effect_sentence(parameter: Parameter) -> str:
    """Return when a change of a parameter takes effect, as a sentence."""
    return f"A change takes effect {parameter.takes_effect}.".replace("takes effect never", "never takes effect")


def _largest(parameter: Parameter) -> int | None:
    """Return the largest number that any release takes; None where there is none."""
    return parameter.new_maximum[1] if parameter.new_maximum else parameter.maximum


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return str(value) if value != {} else "none"


def _plain_leaf(parameter: Parameter) -> Schema:
    words: Schema = {"enum": list(parameter.choices)} if parameter.choices else {"type": "string"}
    if parameter.choices == DISK_TEMPLATES:
        words = {SHAPE: "disk-template", **words}
    several: Schema = {"type": "array", "items": words, "uniqueItems": True}
    if not parameter.can_be_empty:
        several["minItems"] = 1
    match parameter.type:
        case Type.SIZE | Type.MIB:
            return {**SIZE}
        case Type.INT:
            return _number(parameter)
        case Type.FLOAT:
            return {"type": "number", "minimum": _LEAST_RATIO, "maximum": parameter.maximum}
        case Type.BOOL:
            return {"type": "boolean"}
        case Type.CHOICE:
            return words
        case Type.LIST | Type.SET:
            return several
        case Type.DICT:
            return {"type": "object", "additionalProperties": {"type": ["string", "boolean", "integer", "null"]}}
        case Type.UID_RANGES:
            return {"type": "array", "items": {**UID_RANGE}}
        case Type.MINMAX:
            return {"type": "array", "minItems": 1, "items": _pair()}
    form = {"pattern": parameter.form} if parameter.form else {}
    return {"type": "string"} | form | ({} if parameter.can_be_empty else {"minLength": 1})


def _number(parameter: Parameter) -> Schema:
    if parameter.unit == KIB_PER_SECOND:
        return {SHAPE: "rate", "anyOf": [text_like("rate"), {"type": "integer"}]}
    if parameter.numbers:
        return {"type": "integer", "enum": [*parameter.numbers]}
    bounds = {"minimum": parameter.minimum, "maximum": _largest(parameter)}
    return {"type": "integer"} | {keyword: bound for keyword, bound in bounds.items() if bound is not None}


def _pair() -> Schema:
    bound = {"$ref": "#/definitions/spec"}
    return closed(
        {
            "name": name_of("For people, guards and tests; Ganeti does not store it."),
            "min": described(bound, "The lower bound, with all six parameters."),
            "max": described(bound, "The upper bound, with all six parameters."),
        },
        "One size: an instance fits when it lies inside min and max for all six parameters.",
        required=("min", "max"),
    )


_FAMILY_TEXT: Final = {
    "ipolicy": "Instance policy: which instances are legal, and how full nodes may be.",
    "diskparams": "Disk parameters per disk template.",
    "ndparams": "Node parameters.",
    "hv_state": "Static memory and CPU figures per hypervisor. Ganeti stores them and reads them nowhere; gpolicy's own"
    " capacity model uses them.",
    "disk_state": "Static disk figures per volume group, under `plain`. Ganeti stores them and reads them nowhere.",
    "beparams": "Defaults of instances' backend parameters.",
    "hvparams": "Defaults of instances' hypervisor parameters, per hypervisor.",
    "nicparams": "Defaults of instances' network interfaces.",
    "enabled_data_collectors": "Which collectors the monitoring daemon runs.",
    "data_collector_interval": "How often collectors run.",
}

_BELOW_TEXT: Final = {
    "diskparams": "Parameters of disks of template {}.",
    "disk_state": "Volume groups by name.",
    "hv_state": "Figures of the hypervisor {}.",
    "hvparams": "Parameters of the hypervisor {}.",
    "ipolicy": "The standard instance of capacity estimates. Must lie inside at least one size of `minmax`.",
}
"""By family, for the keys below it that have keys themselves."""


def parameter_properties(level: Level) -> Schema:
    """Return the properties of a document about an object at `level`: one per parameter that it can set."""
    properties: Schema = {}
    for parameter in parameters_of(level):
        below = properties
        for depth, key in enumerate(parameter.path[:-1]):
            if key == "*":
                continue
            text = _BELOW_TEXT[parameter.family].format(key) if depth else _FAMILY_TEXT[key]
            name = {SHAPE: f"hypervisor-figures-of-{level}"} if depth and parameter.family == "hv_state" else {}
            entry = below.setdefault(key, {**name, "type": "object", "description": text})
            if parameter.path[depth + 1] == "*":
                names = closed({}, "Figures of the volume group of this name.")
                below = entry.setdefault("additionalProperties", names)["properties"]
            else:
                entry.setdefault("additionalProperties", False)
                below = entry.setdefault("properties", {})
        below[parameter.path[-1]] = _leaf(parameter, level)
    return properties


def node_failures(text: str, *, least: int = 0) -> Schema:
    """Return the schema of a number of nodes that fail at once."""
    return whole(text, least=least, most=MOST_NODE_FAILURES)


def oversubscription(text: str) -> Schema:
    """Return the schema of a ratio of over-subscription."""
    return {"type": "number", "exclusiveMinimum": 0, "maximum": GREATEST_OVERSUBSCRIPTION, "description": text}


def term_properties(of: str) -> Schema:
    """Return the keys that Ganeti does not know (`gpolicy.cluster.terms`)."""
    share: Schema = text_like("share")
    names: Schema = {"type": "array", "items": NAME, "uniqueItems": True, "minItems": 1}
    return {
        "limits": object_of(
            {
                "max_node_failures": node_failures(
                    "How many nodes of a group may fail at once, and every instance still has its"
                    " place. Ganeti's own tools: 1."
                ),
                "oversubscription": oversubscription(
                    "The greatest memories of a node's instances together may be this many times"
                    " its memory for instances; each instance is guaranteed its least."
                ),
                "cpus_after_failure": flag(
                    "True: nodes that take over must keep their vcpu-ratio after as many failures as"
                    " may be. Default: true for redundancy and guards, false for capacity and place (as hspace and"
                    " hail count)."
                ),
            },
            f"Limits of capacity of {of}, beyond those that Ganeti knows. All verbs that count honour"
            " them; no command of Ganeti is made of them.",
            minimum=1,
        ),
        "physical_volumes": object_of(
            {
                "exclude": described(
                    names,
                    "Volumes that instances never get: names or globs (/dev/sda*), such as the one"
                    " of the root file system.",
                ),
                "volume_groups": described(
                    map_of(names),
                    "Volumes (names or globs) by the volume group that they are in. Others are in the cluster's own.",
                ),
                "margin": described(
                    share, "How far the sizes of volumes may differ under exclusive storage. Ganeti: 1%."
                ),
                "reserve": described(
                    share, "Share of each volume that is not counted under exclusive storage. Ganeti: 2%."
                ),
            },
            f"What counts of the physical volumes of {of}. Ganeti shows all volumes of a node and does"
            " not say which are in which volume group.",
            minimum=1,
        ),
    }


# --- shapes that stand in a schema several times ----------------------------------------------------------------------

_SAID_AT_EACH_PLACE: Final = ("description", "examples")


def share_shapes(schema: Schema) -> Schema:
    """Return `schema` with the named shapes that it has more than once as definitions."""
    places = Counter[Any]()
    shared: Schema = {}

    def count(part: Schema) -> Schema:
        places[part.get(SHAPE)] += SHAPE in part
        return part

    def change(part: Schema) -> Schema:
        own = {key: below for key, below in part.items() if key != SHAPE}
        name = part.get(SHAPE)
        if places[name] < 2:
            return own
        said: Schema = {key: own[key] for key in _SAID_AT_EACH_PLACE if key in own}
        shape = {key: below for key, below in own.items() if key not in said}
        if shared.setdefault(f"{VALUE}{name}", shape) != shape:
            return own  # two parameters of one name take different values
        return {"$ref": f"{REFERENCE}{name}", **said}

    rebuilt(schema, count)
    whole: Schema = rebuilt(schema, change)
    return {**whole, "definitions": {**whole["definitions"], **shared}} if shared else whole
