"""Pages of docs/ whose commands are run: their blocks show what the commands answer now.

A block `console` holds commands and their output: a command begins with `$ `. A block `yaml title="FILE"` is written to
FILE first, or appended to it with the title "FILE, at the end".
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
PAGES: Final = (
    "docs/tutorial.md",
    *(f"docs/guides/{name}.md" for name in ("add-a-size", "adopt", "capacity", "evacuate", "remedy", "suggest")),
)
_BLOCK = re.compile(
    r'^(?P<indent> *)```(?:console|yaml title="(?P<title>[^"]+)")\n(?P<text>.*?)(?=^ *```$)', re.MULTILINE | re.DOTALL
)


def run_page(page: str, python: Path) -> str:
    """Return the text of a page with its commands answered, run in order in one directory that holds `policies/`.

    `python` runs gpolicy.
    """
    with tempfile.TemporaryDirectory() as programs, tempfile.TemporaryDirectory() as name:
        directory, program = Path(name), Path(programs) / "gpolicy"
        program.write_text(f'#!/bin/sh\nexec "{python}" -I -m gpolicy "$@"\n', encoding="utf-8")
        program.chmod(0o755)
        shutil.copytree(ROOT / "policies", directory / "policies")
        environ = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": name, "LANG": "C.UTF-8"}
        text = (ROOT / page).read_text(encoding="utf-8")
        return _BLOCK.sub(lambda block: _done(block, directory, environ), text)


def _done(block: re.Match[str], directory: Path, environ: dict[str, str]) -> str:
    if block["title"] is None:
        commands = re.findall(r"^ *\$ (.*)\n", block["text"], re.MULTILINE)
        lines = [line for command in commands for line in (f"$ {command}", *_output(command, directory, environ))]
        return "".join(f"{block['indent']}{line}".rstrip() + "\n" for line in ("```console", *lines))
    path, _, at_the_end = block["title"].partition(", ")
    with (directory / path).open("a" if at_the_end else "w", encoding="utf-8") as file:
        file.write(block["text"])
    return block[0]


def _output(command: str, directory: Path, environ: dict[str, str]) -> list[str]:
    done = subprocess.run(
        ["/bin/bash", "-c", command],
        cwd=directory,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout.splitlines()
