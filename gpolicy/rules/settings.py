"""What a repository wants of the rules: which count, how bad each is, and their numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from gpolicy.findings import RuleInfo, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one check. `severities` by rule code; `parameters` by rule code, then by name."""

    severities: Mapping[str, Severity] = field(default_factory=dict)
    parameters: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def parameter(self, info: RuleInfo, name: str) -> float:
        """Return the number `name` of a rule: the repository's, or the rule's default. KeyError for an unknown one."""
        defaults = {parameter.name: parameter.default for parameter in info.parameters}
        return self.parameters.get(info.code, {}).get(name, defaults[name])


DEFAULT: Final = Settings()
