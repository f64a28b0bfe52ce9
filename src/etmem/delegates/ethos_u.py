"""What one Ethos-U delegate needs: read from Vela's stream, a list of named blocks of bytes.

Weights and commands are used where they are. Each execute asks the temp allocator for the scratch that Vela has
planned, inputs and outputs in it; it is given back at the end of the call.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from etmem.delegates.estimating import BlobBlock, BlobEstimate, CannotEstimate, Life, Machine, NamedUse, Sureness
from etmem.model.words import Category

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_BLOCK = struct.Struct("<16sIB11x")
"""Name, bytes without padding, and whether the data is a key of named data instead."""
_ALIGNMENT = 16
_FIRST, _LAST = "vela_bin_stream", "vela_end_stream"
_NAMES = frozenset((_FIRST, _LAST, "cmd_data", "weight_data", "scratch_size", "scratch_data", "inputs", "outputs"))
_EXTERNAL = 1
_HANDLE_WORDS = 9
"""Of the handle that ``init`` makes with ``new``."""


def estimate(blob: memoryview, machine: Machine, options: Mapping[str, str]) -> BlobEstimate:  # noqa: ARG001
    """See ``etmem.delegates.estimating``."""
    named: list[NamedUse] = []
    scratch: int | None = None
    for name, data, external in _blocks(blob):
        if external:
            named.append(NamedUse(_text(data), kept=True))
        elif name == "scratch_size":
            if len(data) < 4:
                raise CannotEstimate(f"a scratch size of {len(data)} bytes in an Ethos-U blob")
            (scratch,) = struct.unpack_from("<I", data)
        elif name == "scratch_data":
            scratch = len(data)
    if scratch is None:
        raise CannotEstimate("an Ethos-U blob without a scratch size")
    handle = _HANDLE_WORDS * machine.pointer_bytes
    return BlobEstimate(
        named_data=tuple(named),
        blocks=(BlobBlock(Category.METADATA, handle, Life.LOADED, Sureness.COMPUTED, "handle"),),
        workspace=None,
        blob_kept=True,
        temp=(scratch, _ALIGNMENT),
    )


def _blocks(blob: memoryview) -> Iterator[tuple[str, memoryview, bool]]:
    """(name, data, whether it is a key) of each block up to the last, which has to end the blob."""
    place, name = 0, ""
    while name != _LAST:
        if place + _BLOCK.size > len(blob):
            raise CannotEstimate(f"an Ethos-U blob that ends before its {_LAST}")
        raw, size, flag = _BLOCK.unpack_from(blob, place)
        name = _text(raw.split(b"\0", 1)[0])
        if name not in _NAMES or (place == 0) != (name == _FIRST):
            raise CannotEstimate(f"an Ethos-U blob with a block {name!r} at byte {place:,}")
        start = place + _BLOCK.size
        place = start + -(-size // _ALIGNMENT) * _ALIGNMENT
        if place > len(blob):
            raise CannotEstimate(f"block {name!r} of an Ethos-U blob ends at byte {place:,} of {len(blob):,}")
        yield name, blob[start : start + size], flag == _EXTERNAL
    if place != len(blob):
        raise CannotEstimate(f"{len(blob) - place:,} bytes behind the end of an Ethos-U stream")


def _text(data: bytes | memoryview) -> str:
    return bytes(data[:128]).decode("ascii", "replace")
