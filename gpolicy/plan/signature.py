"""Detached signatures of plan files, verified by OpenSSH's `ssh-keygen -Y`, which every master has."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpolicy.cluster.json_input import decode_text
from gpolicy.cluster.process import Output, run
from gpolicy.errors import InputError, UnreachableError

NAMESPACE: Final = "gpolicy-plan"
"""The namespace of the signature: one that was made for another purpose does not count."""

_KEY: Final = re.compile(r" with (\S+) key (SHA256:[A-Za-z0-9+/]{43})\s*\Z")  # the end of what verify says
_SECONDS: Final = 30.0
_LARGEST_ANSWER: Final = 1024**2
_LARGEST_SIGNATURE: Final = 64 * 1024  # bytes; ssh-keygen takes minutes over a large file
_LONGEST_SHOWN: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Signers:
    """Whose signature is wanted: a file in the form of ssh's ALLOWED SIGNERS, and the signature itself.

    `search_path` is where ssh-keygen is looked for (PATH); nothing else of the environment reaches it.
    """

    allowed: Path
    signature: Path
    search_path: str


def signer_of(data: bytes, signers: Signers) -> str:
    """Return who of the allowed signers has signed `data`, with the key. Raise InputError if nobody can tell.

    A name is a pattern in the file of allowed signers, so it may fit anybody; the fingerprint is that of one key.
    """
    for file, what in ((signers.allowed, "allowed signers"), (signers.signature, "signature")):
        if not file.is_file():
            hint = f"sign the plan: ssh-keygen -Y sign -n {NAMESPACE} -f KEY PLAN.JSON" if what == "signature" else None
            raise InputError(f"{file}: there is no file with the {what}", hint=hint)
    if (size := signers.signature.stat().st_size) > _LARGEST_SIGNATURE:
        raise InputError(f"{signers.signature}: {size:,} bytes are no signature")
    signature, allowed = str(signers.signature.absolute()), str(signers.allowed.absolute())
    found = _ask(signers, b"", "find-principals", "-s", signature, "-f", allowed)
    principals = decode_text(found.stdout, "ssh-keygen -Y find-principals").splitlines() if found.code == 0 else []
    if not principals:
        why = _reason(found)
        raise InputError(f"{signers.signature}: no signer in {signers.allowed} made this signature{why}")
    for principal in principals:
        verified = _ask(signers, data, "verify", "-n", NAMESPACE, "-f", allowed, "-I", principal, "-s", signature)
        key = _KEY.search(decode_text(verified.stdout, "ssh-keygen -Y verify"))
        if verified.code == 0 and key is not None:
            return f"{principal} ({key[1]} {key[2]})"
    hint = f"write each key on one line of {signers.allowed}: ssh-keygen tries only the first line that has the key"
    raise InputError(f"{signers.signature}: is not a valid signature of this plan{_reason(verified)}", hint=hint)


def _ask(signers: Signers, data: bytes, what: str, *options: str) -> Output:
    environ: Mapping[str, str] = {"PATH": signers.search_path, "LC_ALL": "C"}
    with tempfile.TemporaryFile() as file:  # ssh-keygen reads it from standard input
        file.write(data)
        file.flush()
        file.seek(0)
        argv = ["ssh-keygen", "-Y", what, *options]
        try:
            return run(argv, environ=environ, seconds=_SECONDS, limit=_LARGEST_ANSWER, stdin=file.fileno())
        except UnreachableError as error:
            hint = "ssh-keygen verifies signatures: it comes with OpenSSH 8.2 and later"
            raise InputError(f"the signature cannot be verified: {error.message}", hint=hint) from None


def _reason(output: Output) -> str:
    return f": {output.complaint[:_LONGEST_SHOWN]}" if output.complaint else ""
