from __future__ import annotations

from pathlib import Path

import pytest

from gpolicy.cluster.credentials import Credentials, find_credentials
from gpolicy.errors import GpolicyError, InputError, RequestError


def private(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o600)
    return path


@pytest.mark.parametrize("text", ["tool\nhush\n", "tool hush\n", "\n  tool\n\nhush", "tool hush write\n"])
def test_from_a_file(tmp_path: Path, text: str) -> None:
    found = find_credentials("host", file=private(tmp_path / "login", text), environ={})
    assert found == Credentials("tool", "hush")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o610])
def test_a_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    file = private(tmp_path / "login", "tool\nhush\n")
    file.chmod(mode)
    with pytest.raises(InputError, match="others can read") as caught:
        find_credentials("host", file=file, environ={})
    assert "chmod 600" in (caught.value.hint or "")


@pytest.mark.parametrize("text", ["", "hush", "a\nb\nhush\n", "to:ol\nhush", "\0\1hush"])
def test_a_malformed_credentials_file(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError) as caught:
        find_credentials("host", file=private(tmp_path / "login", text), environ={})
    assert "hush" not in f"{caught.value!r} {caught.value.hint}"


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        find_credentials("host", file=tmp_path / "login", environ={})


def test_from_the_environment_before_netrc(tmp_path: Path) -> None:
    netrc = private(tmp_path / "netrc", "machine host login other password hidden\n")
    environ = {"GPOLICY_RAPI_USER": "tool", "GPOLICY_RAPI_PASSWORD": "hush", "NETRC": str(netrc)}
    assert find_credentials("host", file=None, environ=environ) == Credentials("tool", "hush")
    file = private(tmp_path / "login", "first\none\n")
    assert find_credentials("host", file=file, environ=environ) == Credentials("first", "one")


@pytest.mark.parametrize("name", ["GPOLICY_RAPI_USER", "GPOLICY_RAPI_PASSWORD"])
def test_a_user_without_a_password_in_the_environment_is_an_error(name: str) -> None:
    with pytest.raises(RequestError, match="is not set") as caught:
        find_credentials("host", file=None, environ={name: "hush"})
    assert "hush" not in f"{caught.value!r} {caught.value.hint}"


def test_from_netrc_for_exactly_this_host(tmp_path: Path) -> None:
    private(tmp_path / ".netrc", "machine host login tool password hush\ndefault login x password y\n")
    assert find_credentials("host", file=None, environ={"HOME": str(tmp_path)}) == Credentials("tool", "hush")
    assert find_credentials("other", file=None, environ={"HOME": str(tmp_path)}) is None
    assert find_credentials("host", file=None, environ={}) is None


def test_a_broken_netrc_does_not_show_its_password(tmp_path: Path) -> None:
    private(tmp_path / ".netrc", "machine host login tool password hush hush2 hush3\n")
    with pytest.raises(GpolicyError, match="netrc") as caught:
        find_credentials("host", file=None, environ={"HOME": str(tmp_path)})
    assert "hush" not in repr(caught.value)
    assert caught.value.__cause__ is None


def test_a_password_is_not_in_repr() -> None:
    assert "hush" not in f"{Credentials('tool', 'hush')!r} {Credentials('tool', 'hush')}"


def test_no_password_is_shown() -> None:
    assert repr(Credentials("tool", "hush")) == "Credentials(user='tool')"
