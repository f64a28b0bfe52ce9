"""The records of ``native/include/etmem/trace_format.h`` as NumPy dtypes and structs, and nothing more."""

from __future__ import annotations

import re
from enum import IntEnum, IntFlag
from struct import Struct

import numpy as np

MAGIC = b"ETMEMTR\1"
VERSION = 2
VERSIONS = (1, 2)
"""Those that are read. 2 has heaps of devices, counters, labels and misuse."""
HEADER_BYTES = 4096
CHUNK_BYTES = 64 * 1024
CHUNK_MAGIC = 0x48435445
BYTE_ORDER = 0x01020304
SWAPPED_BYTE_ORDER = 0x04030201

HEADER = Struct("<8s8I16s6Q2I")
CHUNK = Struct("<4I2Q4Q")
META = Struct("<2IQ")

CHUNK_DTYPE = np.dtype(
    {
        "names": ["magic", "kind", "thread", "sequence", "time_ns", "stamp"],
        "formats": ["<u4", "<u4", "<u4", "<u4", "<u8", "<u8"],
        "offsets": [0, 4, 8, 12, 16, 24],
        "itemsize": CHUNK.size,
    }
)

EVENT_DTYPE = np.dtype(
    {
        "names": ["stamp", "address", "word", "scope", "stack"],
        "formats": ["<u8", "<u8", "<u8", "<u4", "<u4"],
        "offsets": [0, 8, 16, 24, 28],
        "itemsize": 32,
    }
)
"""``word`` is size in its low 48 bits, then kind and flags."""

SIZE_BITS = 48
SIZE_MASK = (1 << SIZE_BITS) - 1


class Status(IntFlag):
    CLOSED = 1
    STOPPED = 2
    DISK_FULL = 4
    FORKED_CHILD = 8


class ChunkKind(IntEnum):
    EVENTS = 1
    META = 2


class MetaType(IntEnum):
    END = 0
    STRING = 1
    SCOPE_BEGIN = 2
    SCOPE_END = 3
    THREAD = 4
    THREAD_END = 5
    CLAIM = 6
    HEAP = 7
    STACK = 8
    FILE_MAP = 9
    RSS = 10
    SNAPSHOT = 11
    SNAPSHOT_MAPS = 12
    SNAPSHOT_PAGES = 13
    SEGMENT = 14
    SEGMENT_FREE = 15
    NOTE = 16
    OWN = 17
    MODULE = 18
    PYTHON_STACK = 19
    COUNTER = 20
    LABEL = 21
    MISUSE = 22


STRING = Struct("<2I")
SCOPE_BEGIN = Struct("<6I2qQ")
SCOPE_END = Struct("<2IQ")
THREAD = Struct("<4I3Q")
THREAD_END = Struct("<2I")
CLAIM = Struct("<2Q4I")
HEAP = Struct("<6I")
STACK = Struct("<2I")
FILE_MAP = Struct("<3Q2I")
RSS = Struct("<2I5Q")
SNAPSHOT = Struct("<4I6Q")
SNAPSHOT_PART = Struct("<4I")
SEGMENT = Struct("<3Q6I")
SEGMENT_FREE = Struct("<2I")
NOTE = Struct("<2I")
OWN = Struct("<2Q2I")
MODULE = Struct("<2Q4I")
PYTHON_STACK = Struct("<2I")
PYTHON_FRAME = Struct("<4I")
COUNTER = Struct("<4IqQ")
LABEL = Struct("<2Q2I")
MISUSE = Struct("<4I")

SNAPSHOT_READ = 1 | 2
"""SnapshotFlags that say that the pages were read."""

_ADDRESS = "[0-9a-f]{1,15}"
"""No process has more digits of its own; the vsyscall page, which is the kernel's, has."""
MAPPING = re.compile(rf"(?:{_ADDRESS}-{_ADDRESS}|ffffffffff600000-ffffffffff601000) [-rwxsp]{{4}}")
"""How each line of /proc/self/maps begins."""
MAPS_LINE = re.compile(rf"({_ADDRESS})-({_ADDRESS}) ([-rwxsp]{{4}}) ([0-9a-f]{{1,15}}) \S+ \d+\s*(.*)$")
"""A line of /proc/self/maps that is the process's own: start, end, permissions, offset, path."""
