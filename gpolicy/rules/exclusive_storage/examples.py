"""Parts of the examples of rules about exclusive storage."""

from __future__ import annotations

from typing import Final

from gpolicy.rules.examples import bounds

DEDICATED: Final = "gpolicy: v1\nkind: NodeGroup\nname: dedicated\n"
EXCLUSIVE: Final = f"{DEDICATED}ndparams: {{exclusive_storage: true}}\n"
HARDWARE: Final = "hardware: {memory: 256G, cpus: 32, pv_count: 12, pv_size: 1T}\n"
WHOLE_NODES: Final = "ipolicy:\n  vcpu-ratio: 1\n  disk-templates: [plain]\n  minmax:\n    - name: "
FULL: Final = "full\n      " + bounds("248G 250G", "30 30", "11000G 11930G", "12 12")
