"""The fixtures of cluster_fixtures.py, where the type checker sees them: it takes one conftest alone."""

from __future__ import annotations

from cluster_fixtures import cluster, fresh

__all__ = ["cluster", "fresh"]
