"""What `gpolicy --version` says: read without the rest of gpolicy, so that it answers at once."""

import os
import platform

from gpolicy import __version__
from gpolicy.ganeti.releases import VERSIONS


def versions() -> str:
    """Return the versions of gpolicy, of its engine, of Python, and of the Ganeti releases that it knows."""
    return "\n".join(
        (
            f"gpolicy {__version__}",
            f"engine: {_engine()}",
            f"Python: {platform.python_version()}",
            f"Ganeti: {', '.join(VERSIONS)}",
        )
    )


def _engine() -> str:
    """Say which allocator counts here. Whether the engine is of these sources only a count finds out."""
    path = os.path.join(os.path.dirname(__file__), "allocator", "native", "engine.so")  # noqa: PTH118, PTH120 (fast)
    if not os.path.exists(path):  # noqa: PTH110
        why = "no C compiler worked; `pip install -v` says why"
        return f"none was compiled ({why}): the slow reference counts instead, with the same answers"
    try:
        import ctypes  # noqa: PLC0415

        ctypes.CDLL(path)
    except (OSError, ImportError) as error:
        return f"cannot be loaded: the slow reference counts instead, with the same answers ({error})"
    return "compiled"
