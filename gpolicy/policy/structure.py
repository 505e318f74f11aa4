"""Rules about the shape of a policy, found by reading and by the schemas. They have no check of their own.

The catalogue (`gpolicy.checking.catalogue`) shows them beside the rules about meaning.
"""

from __future__ import annotations

from typing import Final

from gpolicy.findings import UNREADABLE, error_rule, warning_rule

UNREADABLE_FILE: Final = error_rule("GP001", "unreadable-file", UNREADABLE)
YAML_SYNTAX: Final = error_rule("GP002", "yaml-syntax", UNREADABLE)
DUPLICATE_KEY: Final = error_rule("GP003", "duplicate-key", UNREADABLE)
ALIAS_BOMB: Final = error_rule("GP004", "too-large", UNREADABLE)
UNSUPPORTED_YAML: Final = error_rule("GP005", "unsupported-yaml", UNREADABLE)
NOT_A_POLICY: Final = error_rule("GP010", "not-a-policy", UNREADABLE)
UNKNOWN_KEY: Final = error_rule("GP011", "unknown-key", UNREADABLE)
WRONG_VALUE: Final = error_rule("GP012", "wrong-value", UNREADABLE)
MISSING_KEY: Final = error_rule("GP013", "missing-key", UNREADABLE)
EMPTY_VALUE: Final = error_rule("GP014", "empty-value", UNREADABLE)
SIZE_ROUNDED: Final = warning_rule("GP015", "size-rounded")
NOT_PLAIN_TEXT: Final = error_rule("GP016", "not-plain-text", UNREADABLE)
DUPLICATE_OBJECT: Final = error_rule("GP020", "duplicate-object", UNREADABLE)
EXTENDS_UNKNOWN: Final = error_rule("GP021", "extends-unknown", UNREADABLE)
EXTENDS_CYCLE: Final = error_rule("GP022", "extends-cycle", UNREADABLE)
EXTENDS_CONFLICT: Final = warning_rule("GP023", "extends-conflict")
SEVERAL_CLUSTERS: Final = error_rule("GP024", "several-clusters", UNREADABLE)
UNKNOWN_SNAPSHOT: Final = error_rule("GP025", "unknown-snapshot", UNREADABLE)
SETTINGS_MISTAKE: Final = error_rule(
    "GP028", "settings-mistake", "verbs that work on many clusters would stop, or act on the wrong one"
)
FILE_NOT_READ: Final = warning_rule("GP026", "file-not-read")
NOTHING_DECLARED: Final = warning_rule("GP027", "nothing-declared")
