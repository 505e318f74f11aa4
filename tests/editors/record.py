"""Record what the YAML server answers to the named cases: `GPOLICY_YAML_SERVER=DIR python -m tests.editors.record`."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from gpolicy.writing.documents import SCHEMA_FILE, schema_text
from tests.editors.editor_cases import CASES, answer_of
from tests.editors.language_server import LanguageServer, server_script, server_version


def main() -> int:
    script = server_script()
    if script is None:
        sys.stderr.write("no yaml-language-server here; see tests/editors/test_yaml_server.py\n")
        return 3
    with tempfile.TemporaryDirectory() as name:
        schema = Path(name) / SCHEMA_FILE
        schema.parent.mkdir()
        schema.write_text(schema_text(), encoding="utf-8")
        with LanguageServer(script, Path(name)) as server:
            answers = {title: answer_of(server, case) for title, case in CASES.items()}
    recorded = {"server": f"yaml-language-server {server_version(script)}", "answers": answers}
    text = json.dumps(recorded, indent=1, ensure_ascii=False) + "\n"
    (Path(__file__).parent / "recorded.json").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
