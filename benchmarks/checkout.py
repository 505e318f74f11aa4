"""The checkout that is measured: the one that this directory lies in, whatever else is installed.

Import it before anything of gpolicy.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

sys.path.insert(0, str(ROOT))
sys.path.insert(1, str(ROOT / "tests"))  # benchmarks may ask questions as the tests make them
