"""ETDumps: what a run recorded, with allocation events, read from the file and written to it.

The stock Inspector raises on a file with an allocation event; here such a file is read, whoever wrote it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from etmem.devtools.etdump_schema import ETDUMP, IDENTIFIER
from etmem.model.errors import InputError, reason
from etmem.program.flatbuffer import Buffer, MalformedError, Table

UNSET = -1
"""Of chains, instructions and delegates' identifiers."""

_HINT = "Give the file that ETDumpGen::get_etdump_data() or etmem profile --etdump wrote."


@dataclass(frozen=True)
class ProfileEvent:
    name: str | None
    chain: int
    instruction: int
    delegate_id: int
    delegate_name: str | None
    """The delegate's identifier, where it is a text."""
    metadata: bytes | None
    start: int
    """In ticks of the platform, nanoseconds unless it says otherwise."""
    end: int


@dataclass(frozen=True)
class AllocationEvent:
    allocator: int
    """As in the file: counted from 1, although the schema's comment makes it an index."""
    bytes: int


@dataclass(frozen=True)
class DebugEvent:
    """That an intermediate output was logged; the value is not read."""

    name: str | None
    chain: int
    instruction: int


Event = ProfileEvent | AllocationEvent | DebugEvent


@dataclass(frozen=True)
class Block:
    """One profiling block: ``Default`` for loading, ``Execute`` for an inference."""

    name: str
    bundled_input: int
    allocators: tuple[str, ...]
    events: tuple[Event, ...]

    @property
    def profile_events(self) -> tuple[ProfileEvent, ...]:
        return tuple(event for event in self.events if isinstance(event, ProfileEvent))

    @property
    def allocations(self) -> tuple[tuple[str, int], ...]:
        """(allocator, bytes) of each allocation event; a producer that counts from 0 is told by an id of 0."""
        events = [event for event in self.events if isinstance(event, AllocationEvent)]
        first = 0 if any(event.allocator == 0 for event in events) else 1
        return tuple((self._allocator(event.allocator - first), event.bytes) for event in events)

    def _allocator(self, index: int) -> str:
        return self.allocators[index] if 0 <= index < len(self.allocators) else f"allocator {index}"


@dataclass(frozen=True)
class ETDump:
    path: str
    version: int
    blocks: tuple[Block, ...]

    @property
    def debugs(self) -> bool:
        """Whether it holds values, which a rewritten file would lack."""
        return any(isinstance(event, DebugEvent) for block in self.blocks for event in block.events)

    def without(self, *identifiers: str) -> ETDump:
        """Without allocation events, which the stock Inspector raises on, and without some delegate events."""

        def kept(event: Event) -> bool:
            named = isinstance(event, ProfileEvent) and event.delegate_name in identifiers
            return not named and not isinstance(event, AllocationEvent)

        return replace(
            self, blocks=tuple(replace(block, events=tuple(filter(kept, block.events))) for block in self.blocks)
        )


def read_etdump(path: str | Path) -> ETDump:
    """Raises InputError for what is no ETDump, is torn, or does not fit the schema."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot read the ETDump: {reason(error)}") from None
    return parse_etdump(data, str(path))


def parse_etdump(data: bytes, path: str = "ETDump") -> ETDump:
    """The same from bytes, with or without the size in front. Raises InputError."""
    start = _start(data, path)
    try:
        root = Buffer(memoryview(data)[start:], ETDUMP).root("ETDump")
        return ETDump(path, root.integer("version"), tuple(_block(table) for table in root.tables("run_data")))
    except MalformedError as error:
        raise InputError(f"{path} is a damaged ETDump: {error}", _HINT) from None


def _start(data: bytes, path: str) -> int:
    if data[8:12] == IDENTIFIER:
        size = int.from_bytes(data[:4], "little")
        if size > len(data) - 4:
            raise InputError(f"{path} is a torn ETDump: {len(data) - 4:,} of {size:,} bytes", _HINT)
        return 4
    if data[4:8] == IDENTIFIER:
        return 0
    raise InputError(f"{path} is no ETDump", _HINT)


def _block(table: Table) -> Block:
    return Block(
        name=table.text("name") or "",
        bundled_input=_integer(table, "bundled_input_index"),
        allocators=tuple(allocator.text("name") or "" for allocator in table.tables("allocators")),
        events=tuple(_events(table)),
    )


def _events(block: Table) -> Iterator[Event]:
    for event in block.tables("events"):
        profile, allocation, debug = (
            event.table(kind) for kind in ("profile_event", "allocation_event", "debug_event")
        )
        if profile is not None:
            yield _profile(profile)
        elif allocation is not None:
            yield AllocationEvent(allocation.integer("allocator_id"), allocation.integer("allocation_size"))
        elif debug is not None:
            yield DebugEvent(debug.text("name"), debug.integer("chain_index"), _integer(debug, "instruction_id"))
        else:
            raise MalformedError("an event of no kind")


def _profile(table: Table) -> ProfileEvent:
    start, count = table.data("delegate_debug_metadata")
    has_metadata = table.has("delegate_debug_metadata")
    table.buffer.spend(count)
    return ProfileEvent(
        name=table.text("name"),
        chain=table.integer("chain_index"),
        instruction=_integer(table, "instruction_id"),
        delegate_id=_integer(table, "delegate_debug_id_int"),
        delegate_name=table.text("delegate_debug_id_str"),
        metadata=bytes(table.buffer.view[start : start + count]) if has_metadata else None,
        start=table.integer("start_time"),
        end=table.integer("end_time"),
    )


def _integer(table: Table, field: str) -> int:
    """A number whose default is -1, not 0."""
    return table.integer(field) if table.has(field) else UNSET
