"""The real YAML language server (what VS Code's YAML extension runs), spoken to as an editor does."""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

PACKAGE: Final = "yaml-language-server"
MARK: Final = "|"
"""Where the cursor stands in a text given to `complete` or `hover`."""

_PATIENCE: Final = 30.0  # seconds for one answer
_SETTLED: Final = 0.4  # seconds without new diagnostics: the server has said what it has to say


def server_script() -> Path | None:
    """Return the server's script: below the directory that GPOLICY_YAML_SERVER names, or on the PATH."""
    installed = os.environ.get("GPOLICY_YAML_SERVER")
    if installed:
        return Path(installed) / "node_modules" / PACKAGE / "bin" / PACKAGE
    found = shutil.which(PACKAGE)
    return Path(found).resolve() if found else None


def server_version(script: Path) -> str:
    """Return the release of the server."""
    about: dict[str, str] = json.loads((script.parent.parent / "package.json").read_text(encoding="utf-8"))
    return about["version"]


class LanguageServer:
    """One running server; a context manager. Texts are opened as files of `directory`."""

    def __init__(self, script: Path, directory: Path, settings: dict[str, Any] | None = None) -> None:
        self._directory = directory
        self._settings = {
            "validate": True,
            "completion": True,
            "hover": True,
            "schemaStore": {"enable": False},
            "format": {"enable": False},
            **(settings or {}),
        }
        self._server = subprocess.Popen(
            ["node", str(script), "--stdio"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=directory,
        )
        self._answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self._diagnostics: dict[str, list[dict[str, Any]]] = {}
        self._number = 0
        self._files = 0
        threading.Thread(target=self._listen, daemon=True).start()
        self._ask(
            "initialize",
            {
                "processId": os.getpid(),
                "rootUri": directory.as_uri(),
                "workspaceFolders": [{"uri": directory.as_uri(), "name": "policy"}],
                "capabilities": {
                    "workspace": {"configuration": True, "workspaceFolders": True},
                    "textDocument": {
                        "completion": {
                            "completionItem": {"snippetSupport": True, "documentationFormat": ["markdown", "plaintext"]}
                        },
                        "hover": {"contentFormat": ["markdown", "plaintext"]},
                    },
                },
            },
        )
        self._tell("initialized", {})
        self._tell("workspace/didChangeConfiguration", {"settings": {"yaml": self._settings}})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.terminate()
        self._server.wait(10)
        for stream in (self._server.stdin, self._server.stdout):
            if stream is not None:
                stream.close()

    def complete(self, text: str, file: str = "") -> list[dict[str, Any]]:
        """Return what the server offers at the `|` in `text`."""
        answer = self._ask("textDocument/completion", self._at_cursor(text, file))
        items: list[dict[str, Any]] = answer["items"] if isinstance(answer, dict) else answer or []
        return items

    def labels(self, text: str, file: str = "") -> list[str]:
        """Return the words offered at the `|` in `text`, each once, in the server's order."""
        return list(dict.fromkeys(str(item["label"]) for item in self.complete(text, file)))

    def hover(self, text: str, file: str = "") -> str:
        """Return what the server says of the word at the `|` in `text`."""
        answer = self._ask("textDocument/hover", self._at_cursor(text, file))
        if not answer:
            return ""
        contents = answer["contents"]
        return str(contents["value"] if isinstance(contents, dict) else contents)

    def diagnostics(self, text: str, file: str = "", *, settle: float = _SETTLED) -> list[tuple[int, str]]:
        """Return line (from 1) and message of what the server finds wrong in `text`.

        Just after its start a server may speak twice; the last word counts that nothing follows for `settle` seconds.
        """
        return self._marks(self._open(text, file), settle)

    def all_diagnostics(self, texts: Iterable[str]) -> list[list[tuple[int, str]]]:
        """Return the same for many texts, which the server looks at together."""
        return [self._marks(uri, 0.0) for uri in [self._open(text, "") for text in texts]]

    def _marks(self, uri: str, settle: float) -> list[tuple[int, str]]:
        limit = time.monotonic() + _PATIENCE
        while uri not in self._diagnostics and time.monotonic() < limit:
            time.sleep(0.01)
        before: list[dict[str, Any]] | None = None
        while before is not self._diagnostics[uri]:
            before = self._diagnostics[uri]
            time.sleep(settle)
        return [(found["range"]["start"]["line"] + 1, found["message"]) for found in self._diagnostics[uri]]

    def _at_cursor(self, text: str, file: str) -> dict[str, Any]:
        before, mark, behind = text.partition(MARK)
        assert mark, "no cursor in the text"
        uri = self._open(before + behind, file)
        line = before.count("\n")
        return {
            "textDocument": {"uri": uri},
            "position": {"line": line, "character": len(before) - before.rfind("\n") - 1},
            "context": {"triggerKind": 1},
        }

    def _open(self, text: str, file: str) -> str:
        """Open `text` as a new file beside `file`, or of the policy's directory."""
        self._files += 1
        folder = (self._directory / file).parent if file else self._directory
        uri = (folder / f"open-{self._files}.yaml").as_uri()
        document = {"uri": uri, "languageId": "yaml", "version": 1, "text": text}
        self._tell("textDocument/didOpen", {"textDocument": document})
        return uri

    def _ask(self, method: str, parameters: Any) -> Any:
        self._number += 1
        self._send({"id": self._number, "method": method, "params": parameters})
        while True:
            answer = self._answers.get(timeout=_PATIENCE)
            if answer["id"] == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def _tell(self, method: str, parameters: Any) -> None:
        self._send({"method": method, "params": parameters})

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._server.stdin is not None
        self._server.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._server.stdin.flush()

    def _listen(self) -> None:
        stream = self._server.stdout
        assert stream is not None
        while True:
            length = 0
            while line := stream.readline().strip():
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            if not length:
                return
            message = json.loads(stream.read(length))
            if "method" not in message:
                self._answers.put(message)
            elif message["method"] == "textDocument/publishDiagnostics":
                self._diagnostics[message["params"]["uri"]] = message["params"]["diagnostics"]
            elif "id" in message:  # the server asks: for its settings, or to register something
                self._send({"id": message["id"], "result": self._answer(message)})

    def _answer(self, message: dict[str, Any]) -> Any:
        if message["method"] != "workspace/configuration":
            return None
        wanted = {"yaml": self._settings, "files": {"associations": {}}}
        return [wanted.get(item.get("section", ""), {}) for item in message["params"]["items"]]
