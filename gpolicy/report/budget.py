"""How much a comment may hold. (What writes one is not imported to hold a number against it.)"""

from __future__ import annotations

from typing import Final

COMMENT_BUDGET: Final = 65_536
"""What a comment on GitHub may hold, in characters. We count bytes, which are never fewer."""

LEAST_BUDGET: Final = 4_000
"""What verdict, marker and the notices of what was left out need."""
