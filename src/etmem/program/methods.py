"""Decoding the methods of a program: their tables and their instructions."""

from __future__ import annotations

from etmem.program.flatbuffer import MalformedError, Table
from etmem.program.model import (
    BufferDevice,
    Chain,
    Delegate,
    DelegateCall,
    FreeCall,
    Instruction,
    JumpFalseCall,
    KernelCall,
    MoveCall,
    Operator,
    Plan,
)
from etmem.program.values import value


def plan(table: Table) -> Plan:
    return Plan(
        name=table.required_text("name"),
        inputs=table.numbers("inputs"),
        outputs=table.numbers("outputs"),
        values=tuple(value(entry) for entry in table.tables("values")),
        operators=tuple(
            Operator(entry.required_text("name"), entry.text("overload") or "") for entry in table.tables("operators")
        ),
        delegates=tuple(_delegate(entry) for entry in table.tables("delegates")),
        chains=tuple(
            Chain(tuple(_instruction(entry) for entry in chain.tables("instructions")))
            for chain in table.tables("chains")
        ),
        buffer_sizes=table.numbers("non_const_buffer_sizes"),
        buffer_devices=tuple(
            BufferDevice(entry.integer("buffer_idx"), entry.integer("device_type"), entry.integer("device_index"))
            for entry in table.tables("non_const_buffer_device")
        ),
    )


def _delegate(table: Table) -> Delegate:
    data = table.table("processed")
    if data is None:
        raise MalformedError(f"delegate {table.text('id')!r} has no data")
    return Delegate(
        backend=table.required_text("id"),
        inline=data.integer("location") == 0,
        index=data.integer("index"),
        compile_specs=tuple(spec.text("key") or "" for spec in table.tables("compile_specs")),
    )


def _instruction(table: Table) -> Instruction:
    number, call = table.union("instr_args")
    if number == 1:
        return KernelCall(call.integer("op_index"), call.numbers("args"))
    if number == 2:
        return DelegateCall(call.integer("delegate_index"), call.numbers("args"))
    if number == 3:
        return MoveCall(call.integer("move_from"), call.integer("move_to"))
    if number == 4:
        return JumpFalseCall(call.integer("cond_value_index"), call.integer("destination_instruction"))
    return FreeCall(call.integer("value_index"))
