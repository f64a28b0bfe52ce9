"""The order of fields in an ETDump, in the notation of ``etmem.program.schema``."""

from __future__ import annotations

from etmem.program.schema import Schema, parse

IDENTIFIER = b"ED00"

_TABLES = """
ETDump              version:u32 run_data:[RunData]
RunData             name:string bundled_input_index:i32 allocators:[Allocator] events:[Event]
Allocator           name:string
Event               profile_event:ProfileEvent allocation_event:AllocationEvent debug_event:DebugEvent
AllocationEvent     allocator_id:i32 allocation_size:u64
ProfileEvent        name:string chain_index:i32 instruction_id:i32 delegate_debug_id_int:i32
                    delegate_debug_id_str:string delegate_debug_metadata:[u8] start_time:u64 end_time:u64
DebugEvent          chain_index:u64 instruction_id:i32 debug_entry:Value delegate_debug_id_int:i32
                    delegate_debug_id_str:string name:string
"""

ETDUMP = Schema(parse(_TABLES), {})
