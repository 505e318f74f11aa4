"""The fixtures of services.py and comment_server.py, where the type checker sees them."""

from __future__ import annotations

from comment_server import server
from services import sources, workspace

__all__ = ["server", "sources", "workspace"]
