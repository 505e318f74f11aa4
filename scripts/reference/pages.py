"""The pages of docs/reference/."""

from __future__ import annotations

from scripts.reference.commands import commands_page
from scripts.reference.markdown import markdown
from scripts.reference.output import output_page
from scripts.reference.parameters import parameters_page
from scripts.reference.policy import policy_page
from scripts.reference.python_interface import python_page
from scripts.reference.rules import rules_page


def pages() -> dict[str, str]:
    """Return the text of each page by its path from the top of the repository."""
    written = {
        "commands": commands_page(),
        "output": output_page(),
        "policy": policy_page(),
        "parameters": parameters_page(),
        "python": python_page(),
        "rules": rules_page(),
    }
    return {f"docs/reference/{name}.md": markdown(blocks) for name, blocks in written.items()}
