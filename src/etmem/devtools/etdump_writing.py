"""An ETDump's bytes from its values."""

from __future__ import annotations

from etmem.devtools.etdump import AllocationEvent, Block, DebugEvent, ETDump, Event
from etmem.devtools.etdump_schema import ETDUMP, IDENTIFIER
from etmem.devtools.flatbuffer_writing import NewTable, size_prefixed
from etmem.model.errors import InputError


def to_bytes(dump: ETDump) -> bytes:
    """With the size in front, as ETDumpGen writes it. Raises InputError for one with debug events."""
    if dump.debugs:
        raise InputError(
            f"{dump.path} holds intermediate outputs, which etmem does not copy",
            "Record without a debug buffer, or keep the file as it is.",
        )
    blocks = [_block(block) for block in dump.blocks]
    return size_prefixed(ETDUMP, NewTable("ETDump", {"version": dump.version, "run_data": blocks}), IDENTIFIER)


def _block(block: Block) -> NewTable:
    allocators = [NewTable("Allocator", {"name": name}) for name in block.allocators]
    return NewTable(
        "RunData",
        {
            "name": block.name,
            "bundled_input_index": block.bundled_input,
            "allocators": allocators or None,
            "events": [_event(event) for event in block.events],
        },
    )


def _event(event: Event) -> NewTable:
    assert not isinstance(event, DebugEvent)
    if isinstance(event, AllocationEvent):
        values = {"allocator_id": event.allocator, "allocation_size": event.bytes}
        return NewTable("Event", {"allocation_event": NewTable("AllocationEvent", values)})
    profile = NewTable(
        "ProfileEvent",
        {
            "name": event.name,
            "chain_index": event.chain,
            "instruction_id": event.instruction,
            "delegate_debug_id_int": event.delegate_id,
            "delegate_debug_id_str": event.delegate_name,
            "delegate_debug_metadata": event.metadata,
            "start_time": event.start,
            "end_time": event.end,
        },
    )
    return NewTable("Event", {"profile_event": profile})
