"""Start gpolicy. `--version` answers before anything else is imported."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line; return the exit code."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from gpolicy import __version__  # noqa: PLC0415

        sys.stdout.write(f"gpolicy {__version__}\n")
        return 0
    from gpolicy.cli.running import run  # noqa: PLC0415

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
