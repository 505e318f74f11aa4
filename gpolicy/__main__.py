"""Start gpolicy. `--version` answers before anything else is imported."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line; return the exit code."""
    if sys.argv[1:] in (["--version"], ["-V"]) and sys.stdout is not None:
        from gpolicy import __version__  # noqa: PLC0415

        try:
            sys.stdout.write(f"gpolicy {__version__}\n")
            sys.stdout.flush()
        except OSError as error:
            sys.stderr.write(f"gpolicy: the output: {error.strerror}\n")
            sys.stdout = None  # type: ignore[assignment] (so that leaving does not write again)
            return 3
        return 0
    from gpolicy.cli.running import run  # noqa: PLC0415

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
