"""`gpolicy post` in the environment of a job."""

from __future__ import annotations

import os
from collections.abc import Mapping
from unittest import mock

from gpolicy.cli.running import run


def post(arguments: list[str], environ: Mapping[str, str]) -> int:
    """Run `gpolicy post` with only these variables; return the exit code."""
    with mock.patch.dict(os.environ, environ, clear=True):
        return run(["post", *arguments])
