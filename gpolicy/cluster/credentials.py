"""User and password for the remote API: from a file, the environment or netrc; never from a URL or an option.

Nothing here ever prints a password: not in messages, not in `repr`, not in chained exceptions.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from gpolicy.cluster.json_input import decode_text
from gpolicy.errors import InputError, RequestError

USER_VARIABLE = "GPOLICY_RAPI_USER"
PASSWORD_VARIABLE = "GPOLICY_RAPI_PASSWORD"  # noqa: S105 (the name of a variable)
HOSTS_VARIABLE = "GPOLICY_RAPI_HOSTS"
LOGIN = re.compile(r"netrc(:.+)?|environment(:[A-Z][A-Z0-9_]{0,60})?", re.ASCII)
"""Where a settings file may say that user and password are: both sources name the host that they are for."""

_LARGEST_FILE = 64 * 1024


@dataclass(frozen=True, slots=True)
class Credentials:
    """User and password for the remote API."""

    user: str
    password: str = field(repr=False)


def find_credentials(host: str, *, file: Path | None, environ: Mapping[str, str]) -> Credentials | None:
    """Return the credentials for `host`: those in `file`, else in the environment, else in netrc; None without any.

    The netrc file is the one that NETRC names, or ~/.netrc; only an entry for exactly this host counts. Raise
    InputError if a file cannot be read, is readable by others or is malformed.
    """
    if file is not None:
        words = [line.strip() for line in _read_secret(file).splitlines() if line.strip()]
        if len(words) == 1:  # as in Ganeti's own file of users
            words = words[0].split(None, 2)[:2]
        if len(words) != 2:
            hint = "write the user on the first line and the password on the second"
            raise InputError(f"{file}: should hold a user and a password", hint=hint)
        return _checked(Credentials(words[0], words[1]), str(file))
    user, password = environ.get(USER_VARIABLE), environ.get(PASSWORD_VARIABLE)
    if user and password:
        return _checked(Credentials(user, password), f"{USER_VARIABLE} and {PASSWORD_VARIABLE}")
    if user or password:
        missing = PASSWORD_VARIABLE if user else USER_VARIABLE
        raise RequestError(f"{missing} is not set, but its other half is", hint=f"set both, or unset {USER_VARIABLE}")
    return _from_netrc(host, environ)


def find_login(host: str, login: str, environ: Mapping[str, str]) -> Credentials | None:
    """Return the credentials for a `host` that a settings file named, from where it says (`LOGIN`).

    `netrc` is the user's netrc file, `netrc:FILE` another one. `environment:NAME` are GPOLICY_RAPI_USER_NAME and
    GPOLICY_RAPI_PASSWORD_NAME; they go only to hosts that GPOLICY_RAPI_HOSTS_NAME lists, as globs with commas between
    them. So whoever can change the file cannot choose who gets a password. None if netrc has none; raise RequestError
    if the environment has none for the host.
    """
    kind, _, rest = login.partition(":")
    if kind == "netrc":
        return _from_netrc(host, {**environ, "NETRC": rest} if rest else environ)
    variables = (USER_VARIABLE, PASSWORD_VARIABLE, HOSTS_VARIABLE)
    user, password, hosts = (f"{name}_{rest}" if rest else name for name in variables)
    if missing := [name for name in (user, password, hosts) if not environ.get(name)]:
        message = f"{missing[0]} is not set, which `credentials` of the settings names"
        raise RequestError(message, hint=f"set {missing[0]}")
    if not any(fnmatchcase(host, glob.strip()) for glob in environ[hosts].split(",")):
        message = f"{hosts} does not list {host}: the password in {password} is not for it"
        raise RequestError(message, hint=f"if it is, add the host to {hosts}")
    return _checked(Credentials(environ[user], environ[password]), f"{user} and {password}")


def _from_netrc(host: str, environ: Mapping[str, str]) -> Credentials | None:
    import netrc  # noqa: PLC0415 (only needed here)

    home = environ.get("HOME")
    path = Path(environ["NETRC"]) if environ.get("NETRC") else Path(home) / ".netrc" if home else None
    if path is None or not path.is_file():
        return None
    text = _read_secret(path)
    try:
        entries = netrc.netrc(str(path)).hosts if host in text else {}
    except (netrc.NetrcParseError, OSError, ValueError):  # their messages may quote a password
        raise InputError(f"{path}: cannot be read as a netrc file") from None
    entry = entries.get(host)
    if entry is None or not entry[0] or not entry[2]:
        return None
    return _checked(Credentials(entry[0], entry[2]), str(path))


def _checked(credentials: Credentials, where: str) -> Credentials:
    if ":" in credentials.user:
        raise InputError(f"{where}: a user name cannot contain a colon")
    return credentials


def _read_secret(path: Path) -> str:
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise InputError(f"{path}: others can read this file with a password in it", hint=f"chmod 600 {path}")
            return decode_text(file.read(_LARGEST_FILE), str(path))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
