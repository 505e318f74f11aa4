"""The fixture of comment_server.py, where the type checker sees it."""

from __future__ import annotations

from tests.posting.comment_server import server

__all__ = ["server"]
