"""New texts of policies, as values: in the canonical form, and with fixes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from gpolicy.errors import InputError
from gpolicy.opening import FileToWrite, reason
from gpolicy.policy.files import boundary, policy_files
from gpolicy.policy.yaml_reader import MAX_BYTES
from gpolicy.progress import Working, quietly
from gpolicy.writing.new_files import Replacement, replace_files

if TYPE_CHECKING:
    import gpolicy
    from gpolicy.checking.fixing import FixedPolicy
    from gpolicy.checking.settings_tables import Overrides
    from gpolicy.formatting.formatting import Formatted


@dataclass(frozen=True, slots=True, kw_only=True)
class FormattedFile:
    """A file, its `text`, and its canonical form. `target` is where it is written; else `unwritable` tells why not."""

    name: str
    text: str
    formatted: Formatted
    target: FileToWrite | None = None
    unwritable: str = ""

    @property
    def changed(self) -> bool:
        """Whether the canonical form is another text."""
        return self.formatted.text != self.text


def format_policies(paths: Sequence[Path], *, working: Working = quietly) -> list[FormattedFile]:
    """Return each file of the policies at `paths` in the canonical form. Values never change; comments stay.

    A file that cannot be formatted safely keeps its text. Raise InputError for a file that cannot be read.

    For example, `write_formatted(format_policies([Path("policies/berlin")]))` does what `gpolicy fmt` does.
    """
    files = {file: within for path in reversed(paths) for file in policy_files(path) for within in (boundary(path),)}
    done = []
    with working("formatting") as tell:
        for path, within in sorted(files.items()):
            tell(str(path))
            try:
                data = within.read(path, MAX_BYTES)
            except OSError as error:
                raise InputError(f"{path}: {reason(error)}", hint="nothing was changed") from None
            file = format_data(data, str(path))
            try:
                done.append(replace(file, target=within.target(path)))
            except OSError as error:
                done.append(replace(file, unwritable=reason(error)))
    return done


def format_data(data: bytes, name: str) -> FormattedFile:
    """Return the content of a file in the canonical form, without a place. Raise InputError if it is no UTF-8 text."""
    from gpolicy.formatting.formatting import format_text  # noqa: PLC0415 (others format nothing)

    if len(data) > MAX_BYTES:
        raise InputError(f"{name}: larger than {MAX_BYTES // 1024**2} MiB", hint="nothing was changed")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: not UTF-8 text (byte {error.start})", hint="nothing was changed") from None
    return FormattedFile(name=name, text=text, formatted=format_text(text, name))


def write_formatted(files: Iterable[FormattedFile]) -> list[FormattedFile]:
    """Write the files that change, all or none, and return them. What lies behind a link stays.

    Raise GpolicyError if one cannot be written, or has changed since it was read.
    """
    written, replacements = [], []
    for file in files:
        if file.changed and file.target is not None:
            old, new = file.text.encode(), file.formatted.text.encode()
            replacements.append(Replacement(Path(file.name), old, new, file.target))
            written.append(file)
    replace_files(replacements)
    return written


def fix_policies(
    roots: Sequence[Path],
    state: gpolicy.ClusterState | None = None,
    *,
    today: date,
    overrides: Overrides | None = None,
    working: Working = quietly,
) -> FixedPolicy:
    """Return the policies at `roots` with all fixes that make them no worse.

    With the `state` of a cluster, the rules that need one run as well. Waivers that end before `today` are no longer
    in force. `overrides` go before the settings of the repository. Raise InputError for what cannot be read.

    For example, `fixed = fix_policies([Path("policies/berlin")], today=date.today())`, and then
    `write_texts(fixed.texts, *fixed.policies)` writes them.
    """
    from gpolicy.checking.checking import Checker, editable_files  # noqa: PLC0415 (others need no rules)
    from gpolicy.checking.fixing import CheckRound, fix_policy  # noqa: PLC0415
    from gpolicy.checking.settings_tables import NONE  # noqa: PLC0415
    from gpolicy.forecast.bridge import FORECAST  # noqa: PLC0415

    checker = Checker(roots, state, overrides or NONE, today=today, forecast=FORECAST)
    editable: dict[str, FileToWrite] = {}

    def check(texts: Mapping[str, str]) -> CheckRound:
        checked = checker.check(texts)
        if not texts:
            editable.update(editable_files(item.policy for item in checked))
        return CheckRound.of(checked, editable)

    with working("fixing"):
        return fix_policy(check)
