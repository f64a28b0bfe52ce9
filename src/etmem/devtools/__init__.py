"""ExecuTorch's developer tools: ETRecord, ETDump and Inspector, with memory in them.

``parse_memory`` is for the stock Inspector's ``delegate_metadata_parser``; ``MemoryInspector`` is used as
Inspector is. Importing this package needs neither torch, executorch nor pandas; ``MemoryInspector`` does.
"""

from __future__ import annotations

from etmem.devtools.etdump import ETDump, read_etdump
from etmem.devtools.etrecord import ETRecord, read_etrecord
from etmem.devtools.inspector import MemoryInspector
from etmem.devtools.memory_events import parse_memory
from etmem.devtools.sources import with_sources

__all__ = [
    "ETDump",
    "ETRecord",
    "MemoryInspector",
    "parse_memory",
    "read_etdump",
    "read_etrecord",
    "with_sources",
]
