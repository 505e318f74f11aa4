"""hspace, hail, hbal and hroller under htools' own options, inputs and outputs, on top of `gpolicy.allocator`."""

import gc
import sys
import warnings

from gpolicy.errors import RequestError

PROGRAMS = ("hspace", "hail", "hbal", "hroller")
_HELP = """Usage: gpolicy htools hspace|hail|hbal|hroller [OPTION...]

Run the allocator under htools' own option names, inputs and outputs.

  hspace  how many instances fit on a cluster
  hail    where a new instance goes, or where instances move to (an iallocator)
  hbal    which moves balance a node group
  hroller which nodes can be rebooted together

`gpolicy help htools PROGRAM` lists the options of a program.
"""


def run(argv: list[str]) -> int:
    """Run `argv[0]` ("hspace", "hail", "hbal" or "hroller") with the other arguments and return the exit code.

    Writes to stdout and stderr. Raises RequestError for another program's name.
    """
    if argv and argv[0] in {"--help", "-h"}:
        sys.stdout.write(_HELP)
        return 0
    if not argv or argv[0] not in PROGRAMS:
        message = f"unknown program '{argv[0]}'" if argv else "no program given"
        raise RequestError(message, hint="use hspace, hail, hbal or hroller")
    from gpolicy.htools.backends import run_program  # noqa: PLC0415 - only what is needed

    # a run makes many objects and hardly a cycle: collecting them would take a good part of the time
    collecting = gc.isenabled()
    gc.disable()
    try:
        with warnings.catch_warnings():
            # all there is to warn of is an allocator that is slow, which stdout must not show
            warnings.simplefilter("once")
            warnings.showwarning = _note
            return run_program(argv[0], argv[1:])
    finally:
        if collecting:
            gc.enable()


def _note(message: Warning | str, *_details: object, **_more: object) -> None:
    sys.stderr.write(f"Note: {message}\n")
