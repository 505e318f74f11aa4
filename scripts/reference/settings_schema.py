"""The JSON Schema of gpolicy.toml, made from the catalogue: editors complete rules and their parameters with it."""

from __future__ import annotations

from typing import Final

from gpolicy.checking.catalogue import CATALOGUE
from gpolicy.checking.settings_tables import FAIL_ON
from gpolicy.cluster.credentials import LOGIN
from gpolicy.data import read_data
from gpolicy.findings import HOUSE, RuleInfo, Severity
from gpolicy.fleet.named_clusters import LABEL, LONGEST_PAUSE, NAME
from gpolicy.policy.conformance import Schema
from gpolicy.policy.model import RULE_NAME
from scripts.schemas.parameters import SHAPE, closed, object_of, share_shapes

FILE_NAME: Final = "gpolicy-toml.json"

_FAMILY: Final = "^[Gg][Pp][0-9]{0,2}$"
_RULE: Final = "A rule by its code or name, or a family by the beginning of its codes."
_CLUSTER_KEYS: Final = {
    "policy": "The policy of the cluster: a directory or a file, relative to the directory of this file.",
    "state": "Where the cluster's state is read from, as for `--state`. Files are relative to the directory of this"
    " file.",
    "destination": "How `gpolicy apply` reaches the cluster, as for `--to`. Default: `state`, if it is one.",
    "ca": "File with the certificate (PEM) that the remote API must show, relative to the directory of this file."
    " Default: the system's authorities.",
    "credentials": "Where user and password for the remote API are: `netrc` (default), `netrc:FILE`, `environment` or"
    " `environment:NAME`. They go only to a host that is named there.",
    "labels": "Words to choose clusters by: `--label stage=canary`.",
}
_ROLLOUT_KEYS: Final = {
    "waves": "Labels `KEY=VALUE` in the order of a roll-out; VALUE may be a glob. The clusters of a label are a wave. A"
    ' cluster belongs to the first label that it has. `"name=*"` is for all others.',
    "pause": "Seconds between the end of a wave and the look at its clusters. Default: 0.",
}
_HOUSE_RULE: Final = {
    "type": "string",
    "pattern": f"^{HOUSE}{RULE_NAME.removeprefix('^')}",
    "description": "A house rule, by the name of its Rule document: house/NAME.",
}


def settings_schema() -> Schema:
    """Return the schema (draft 7). What it cannot say, the reader of the file does."""
    families = "; ".join(f"{prefix}: {title}" for prefix, title in read_data("reference.toml")["families"].items())
    meaning = "A family: all of its rules, errors too, except errors that nobody can accept."
    family = {"type": "string", "pattern": _FAMILY, "description": f"{meaning} {families}."}
    ignorable, staying = (
        [word for info in CATALOGUE if bool(info.stays) is stays for word in (info.code, info.name)]
        for stays in (False, True)
    )
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "gpolicy.toml",
        "description": "Settings of `gpolicy check`: which rules count, their severities and their parameters; the"
        " clusters that verbs know by name; and the waves of a roll-out.",
        "type": "object",
        "properties": {
            "exclude": {
                "type": "array",
                "description": "YAML files that are no part of a policy, by globs from the directory of this file.",
                "items": {"type": "string", "pattern": "^[^/].*[^./]|^[^./]$"},
            },
            "check": _check(),
            "rules": _parameters(),
            "clusters": _clusters(),
            "rollout": _rollout(),
        },
        "additionalProperties": False,
        "definitions": {
            "ignorable": {
                "anyOf": [{"enum": ignorable}, family, _HOUSE_RULE],
                "description": f"{_RULE} Errors that no plan can have (see `gpolicy explain`) stay.",
            },
            "rule": {
                "anyOf": [{"$ref": "#/definitions/ignorable"}, {"enum": staying}],
                "description": _RULE,
            },
        },
    }
    return share_shapes(schema)


def _check() -> Schema:
    properties = {
        "select": {
            **_list("rule", "Only these rules count; default: all. The most precise word about a rule decides."),
            "minItems": 1,
        },
        "ignore": _list(
            "ignorable",
            "These rules do not count. A family (GP2) means its errors too, except those that nobody can accept.",
        ),
        "fail-on": {
            "enum": list(FAIL_ON),
            "default": str(Severity.ERROR),
            "description": "The lowest severity that makes `gpolicy check` fail.",
        },
        "baseline": {
            "type": "string",
            "minLength": 1,
            "description": "The baseline: a file of accepted findings, relative to the directory of this file."
            " `gpolicy check --write-baseline FILE` writes it.",
        },
        "severity": _map(
            "The severity of rules, by code, name or family.",
            {"enum": [str(severity) for severity in Severity]},
            {"$ref": "#/definitions/rule"},
        ),
        "per-file-ignores": _map(
            "Rules that do not count in some files, by a glob from the directory of this file. A family means its"
            " errors too, as in `ignore`.",
            _list("ignorable", "These rules do not count there."),
        ),
    }
    return closed(properties, "Which findings count, and what they cause.")


def _parameters() -> Schema:
    tables = {word: _numbers(info) for info in CATALOGUE if info.parameters for word in (info.name, info.code)}
    return closed(tables, "Parameters of rules: a table for each rule, by name or code.")


def _clusters() -> Schema:
    texts: dict[str, Schema] = {
        key: {"type": "string", "minLength": 1, "description": about}
        for key, about in _CLUSTER_KEYS.items()
        if key != "labels"
    }
    texts["credentials"]["pattern"] = f"^({LOGIN.pattern})$"
    label = {"pattern": f"^{LABEL.pattern}$"}
    labels = {
        "type": "object",
        "description": _CLUSTER_KEYS["labels"],
        "additionalProperties": {"type": "string", **label},
    }
    cluster = closed({**texts, "labels": {**labels, "propertyNames": label}}, required=("state",))
    return _map("Clusters by name: a table for each.", cluster, {"pattern": f"^{NAME.pattern}$"})


def _rollout() -> Schema:
    about = _ROLLOUT_KEYS
    label = {"type": "string", "pattern": "^[^=]+=.+$"}
    waves = {"type": "array", "description": about["waves"], "items": label, "minItems": 1, "uniqueItems": True}
    pause = {"type": "number", "minimum": 0, "maximum": LONGEST_PAUSE, "default": 0}
    properties = {"waves": waves, "pause": {"description": about["pause"], **pause}}
    return closed(properties, "The order in which `gpolicy apply --all` comes to the clusters.", required=("waves",))


def _numbers(info: RuleInfo) -> Schema:
    numbers = {
        parameter.name: {
            "type": "number",
            "minimum": parameter.least,
            "maximum": parameter.most,
            "default": parameter.default,
            "description": info.text.parameters.get(parameter.name, ""),
        }
        for parameter in info.parameters
    }
    return {SHAPE: info.name, "description": info.text.summary, **object_of(numbers)}


def _list(definition: str, description: str) -> Schema:
    return {"type": "array", "description": description, "items": {"$ref": f"#/definitions/{definition}"}}


def _map(description: str, of: Schema, names: Schema | None = None) -> Schema:
    about = {"propertyNames": names} if names else {}
    return {"type": "object", "description": description, **about, "additionalProperties": of}
