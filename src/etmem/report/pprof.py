"""pprof's profile.proto under gzip: what is in use at the higher peak, and what was allocated, by path.

Field numbers are those of github.com/google/pprof/proto/profile.proto.
"""

from __future__ import annotations

import gzip

from etmem.report.protobuf import block, number, packed, present
from etmem.report.stacks import AT, StackRow, path_of
from etmem.report.view import View

SAMPLE_TYPES = (
    ("inuse_objects", "count"),
    ("inuse_space", "bytes"),
    ("alloc_objects", "count"),
    ("alloc_space", "bytes"),
)


def render(view: View) -> bytes:
    """The same trace gives the same bytes: the time is that of the run."""
    return gzip.compress(profile(view), mtime=0)


def profile(view: View) -> bytes:
    strings = _Strings()
    stacks, at = view.stacks, AT.index(view.highest)
    samples = [_sample(view, strings, row, at) for row in stacks.rows]
    functions = [
        block(5, number(1, index) + number(2, name) + number(3, name))
        for index, name in enumerate(map(strings.index, stacks.frames), start=1)
    ]
    locations = [block(4, number(1, index) + block(4, number(1, index))) for index in range(1, len(stacks.frames) + 1)]
    types = [block(1, _value_type(strings, *pair)) for pair in SAMPLE_TYPES]
    header = view.context.trace.header
    tail = (
        number(9, header.start_realtime_ns)
        + block(11, _value_type(strings, "space", "bytes"))
        + number(12, 1)
        + number(13, strings.index(f"{view.title}: in use is what is live at the peak of {view.highest}"))
        + number(14, strings.index("inuse_space"))
    )
    table = [block(6, text.encode("utf-8", "replace")) for text in strings]
    return b"".join([*types, *samples, *locations, *functions, *table, tail])


def _sample(view: View, strings: _Strings, row: StackRow, at: int) -> bytes:
    key = view.context.keys[row.key]
    live, allocated = row.live[at], row.allocated
    labels = {
        "owner": key.owner,
        "instance": key.instance.label if key.instance else "",
        "category": key.category.value,
        "backing": "file" if row.file else "private",
    }
    # Leaf first.
    where = packed(1, [index + 1 for index in reversed(path_of(row))])
    values = packed(2, [live.blocks, live.bytes, allocated.blocks, allocated.bytes])
    marks = [block(3, number(1, strings.index(k)) + present(2, strings.index(v))) for k, v in labels.items() if v]
    return block(2, where + values + b"".join(marks))


def _value_type(strings: _Strings, kind: str, unit: str) -> bytes:
    return number(1, strings.index(kind)) + number(2, strings.index(unit))


class _Strings(dict[str, int]):
    """The string table; entry 0 is empty."""

    def __init__(self) -> None:
        super().__init__({"": 0})

    def index(self, text: str) -> int:
        return self.setdefault(text, len(self))
