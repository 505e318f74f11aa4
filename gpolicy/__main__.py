"""Start gpolicy. `--version` answers before anything else is imported."""

import gc
import os
import sys


def main() -> int:
    """Run the command line; return the exit code."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        return _version()
    from gpolicy.cli.running import run  # noqa: PLC0415

    code = run(sys.argv[1:])
    gc.freeze()  # Python would search all objects for cycles before it ends: 6 ms of a short run
    return code


def _version() -> int:
    from gpolicy.versions import versions  # noqa: PLC0415

    try:
        print(versions(), flush=True)  # noqa: T201 (which does nothing when the output is closed)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # leaving would write again
        if isinstance(error, BrokenPipeError):  # the reader of our output has closed it
            return 0
        sys.stderr.write(f"gpolicy: the output: {error.strerror}\n")
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
