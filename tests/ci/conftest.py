"""The fixtures of services.py and comment_server.py, where the type checker sees them."""

from __future__ import annotations

from tests.ci.services import sources, workspace
from tests.posting.comment_server import server

__all__ = ["server", "sources", "workspace"]
