"""The settings of a check: which rules count, their severities and parameters, and the baseline."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from os.path import relpath
from pathlib import Path
from typing import Final

from gpolicy.errors import InputError
from gpolicy.findings import HOUSE_CODE, Finding, RuleInfo, Severity, Span, warning_rule
from gpolicy.guessing import closest
from gpolicy.policy.files import matches_glob, policy_files, relative_path, yaml_files
from gpolicy.policy.kinds import Policy
from gpolicy.policy.source_file import NOT_A_POLICY


@dataclass(frozen=True, slots=True, kw_only=True)
class PerFile:
    """Rules (their keys) that do not count in files that match `glob`, below `directory`. `span`: where that stands.

    Without codes: of `exclude`, the files are no part of a policy.
    """

    glob: str
    codes: frozenset[str]
    directory: Path
    span: Span | None = None

    def matches(self, file: str) -> bool:
        """Return whether the glob names a file."""
        return matches_glob(relative_path(file, self.directory), self.glob)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one check. `severities` by a rule's key; `parameters` by rule code, then by name.

    `ignored` are the keys of rules that do not count anywhere, `kept` the house rules that count though their code is
    ignored; `asked` the codes of those that are named, which count although they are off otherwise; `fail_on` is the
    least severity that makes a check fail, None if nothing does; `source` is the file that the settings come from.
    `ganeti_version` is the release of Ganeti to check for, None for the cluster's or else the policy's.
    """

    severities: Mapping[str, Severity] = field(default_factory=dict)
    parameters: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    ignored: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()
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
        keys, file = {finding.key, finding.code}, finding.span.file if finding.span else ""
        if finding.key in self.ignored or (finding.code in self.ignored and finding.key not in self.kept):
            return False
        return not any(file and not item.codes.isdisjoint(keys) and item.matches(file) for item in self.per_file)

    def can_count(self, info: RuleInfo) -> bool:
        """Return whether any finding of a rule can count."""
        return info.code not in self.ignored or (info.code == HOUSE_CODE and bool(self.kept))

    def with_severity(self, finding: Finding) -> Finding:
        """Return the finding with the severity that the settings give its rule."""
        wanted = self.severity_of(finding)
        return finding if wanted in (None, finding.severity) else replace(finding, severity=wanted or finding.severity)

    def severity_of(self, finding: Finding) -> Severity | None:
        """Return the severity that the settings give the rule of a finding; None if they say nothing of it."""
        return self.severities.get(finding.key, self.severities.get(finding.code))

    def fails(self, finding: Finding) -> bool:
        """Return whether a finding makes the check fail."""
        return self.fail_on is not None and finding.severity.rank <= self.fail_on.rank


DEFAULT: Final = Settings()

_MOST_GLOBS: Final = 100
_LONGEST_GLOB: Final = 1000

IDLE_GLOB: Final = warning_rule("GP916", "ignored-files-missing")


def idle_globs(settings: Settings, policy: Policy, found: Sequence[Finding]) -> Iterator[Finding]:
    """Yield a finding for each glob of the settings that matches no file of any policy; none in too large a tree.

    What was `found` in the files that are meant instead follows from it.
    """
    idle = [item for item in settings.per_file[:_MOST_GLOBS] if len(item.glob) < _LONGEST_GLOB]
    idle = [item for item in idle if not any(item.matches(file) for file in policy.paths)]
    ignoring = [item for item in idle if item.codes]
    excluding = [item for item in idle if not item.codes and not item.glob.removeprefix("./").startswith(".")]
    kinds = ((policy_files, "no file of a policy", ignoring), (yaml_files, "no YAML file to exclude", excluding))
    for finds, what, some_idle in kinds:
        files = list[str]()
        with suppress(InputError):
            for item in some_idle[:1]:
                files = [relative_path(str(file), item.directory) for file in finds(item.directory)]
        for item in some_idle if files else ():
            if not any(matches_glob(path, item.glob) for path in files):
                near = replace(item, glob=_glob_meant(item, files) or item.glob)
                codes = item.codes or {NOT_A_POLICY.code}
                about = (one for one in found if one.span and near.matches(one.span.file))
                hint = f"write the path from {item.directory.name}/, where this file is, or remove the entry"
                hint = f"Did you mean `{near.glob}`?" if near != item else hint
                span = item.span
                if span is not None and policy.root is not None and not policy.root.is_absolute():
                    span = replace(span, file=relpath(span.file))
                said = IDLE_GLOB.finding(f"{item.glob!r} matches {what}", span, hint=hint)
                same = (one for one in about if not codes.isdisjoint((one.key, one.code)))
                yield replace(said, consequences=tuple(same))


def _glob_meant(item: PerFile, files: Sequence[str]) -> str | None:
    """Return the glob that names some of the files, and is most like that of an item; None if none is."""
    deeper = f"*/{item.glob.removeprefix('./')}"
    for glob in (deeper, item.glob.replace(".yml", ".yaml"), item.glob.replace(".yaml", ".yml")):
        if any(matches_glob(path, glob) for path in files):
            return glob
    name = item.glob.rpartition("/")[2] if "*" in item.glob else "*"
    known = {f"{Path(path).parent.as_posix()}/{each}" for path in files for each in (name, "**")}
    known = {glob for glob in known if any(matches_glob(path, glob) for path in files)}
    known |= {*files} if name == "*" else set()
    return closest(item.glob, known)
