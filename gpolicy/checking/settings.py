"""The settings of a check: which rules count, their severities and parameters, and the baseline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from gpolicy.findings import HOUSE_CODE, Finding, RuleInfo, Severity, Span
from gpolicy.policy.boundary import relative_path


@dataclass(frozen=True, slots=True, kw_only=True)
class PerFile:
    """Rules (their keys) that do not count in files that match `glob`, whose path is taken from `directory`.

    `span` is where the settings say so.
    """

    glob: str
    codes: frozenset[str]
    directory: Path
    span: Span | None = None

    def matches(self, file: str) -> bool:
        """Return whether the glob names a file."""
        return self.matches_path(relative_path(file, self.directory))

    def matches_path(self, path: str) -> bool:
        """Return whether the glob names the file of a path from the directory.

        By its whole path, by the end of it, or by a directory above it. As in other linters, `*` goes over slashes.
        """
        glob = self.glob.removeprefix("./").rstrip("/")
        return any(fnmatchcase(path, pattern) for pattern in (glob, f"*/{glob}", f"{glob}/*"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one check. `severities` by a rule's key; `parameters` by rule code, then by name.

    `ignored` are the keys of rules that do not count anywhere, `kept` the house rules that count though their code is
    ignored; `fail_on` is the least severity that makes a check
    fail, None if nothing does; `source` is the file that the settings come from. `ganeti_version` is the release of
    Ganeti to check for, None for the cluster's or else the policy's.
    """

    severities: Mapping[str, Severity] = field(default_factory=dict)
    parameters: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    ignored: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()
    per_file: tuple[PerFile, ...] = ()
    fail_on: Severity | None = Severity.ERROR
    baseline: Path | None = None
    source: Path | None = None
    ganeti_version: str | None = None

    def parameter(self, info: RuleInfo, name: str) -> float:
        """Return the number `name` of a rule: the repository's, or the rule's default. KeyError for an unknown one."""
        defaults = {parameter.name: parameter.default for parameter in info.parameters}
        return self.parameters.get(info.code, {}).get(name, defaults[name])

    def counts(self, finding: Finding) -> bool:
        """Return whether a finding counts by the settings."""
        if finding.key in self.ignored or (finding.code in self.ignored and finding.key not in self.kept):
            return False
        return not (self.per_file and finding.span and self._is_ignored_in(finding.span.file, finding))

    def can_count(self, info: RuleInfo) -> bool:
        """Return whether any finding of a rule can count."""
        return info.code not in self.ignored or (info.code == HOUSE_CODE and bool(self.kept))

    def with_severity(self, finding: Finding) -> Finding:
        """Return the finding with the severity that the settings give its rule."""
        wanted = self._severity(finding)
        return finding if wanted in (None, finding.severity) else replace(finding, severity=wanted or finding.severity)

    def sets_severity(self, finding: Finding) -> bool:
        """Return whether the settings give the rule of a finding a severity."""
        return self._severity(finding) is not None

    def _severity(self, finding: Finding) -> Severity | None:
        return self.severities.get(finding.key, self.severities.get(finding.code))

    def fails(self, finding: Finding) -> bool:
        """Return whether a finding makes the check fail."""
        return self.fail_on is not None and finding.severity.rank <= self.fail_on.rank

    def _is_ignored_in(self, file: str, finding: Finding) -> bool:
        keys = {finding.key, finding.code}
        return any(not item.codes.isdisjoint(keys) and item.matches(file) for item in self.per_file)


DEFAULT: Final = Settings()
