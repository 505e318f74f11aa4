"""The fixture of comment_server.py, where the type checker sees it."""

from __future__ import annotations

import os

import pytest

from tests.posting.comment_server import server

__all__ = ["server"]


@pytest.fixture(autouse=True)
def no_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server speaks plain HTTP: let no request take the time to load the certificates of this system."""
    monkeypatch.setenv("SSL_CERT_FILE", os.devnull)
