"""Checks that every index in a program points at something, so that nothing downstream has to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from etmem.program.flatbuffer import MalformedError
from etmem.program.model import (
    DelegateCall,
    FreeCall,
    Instruction,
    JumpFalseCall,
    KernelCall,
    MoveCall,
    Plan,
    Program,
    ScalarList,
    Tensor,
    TensorList,
    ValueKind,
)

if TYPE_CHECKING:
    from collections.abc import Iterable


def checked(program: Program) -> Program:
    """The program itself; ``MalformedError`` if an index in it is out of range."""
    if not program.plans:
        raise MalformedError("it has no method")
    subsegments = [*program.mutable_segments, *([program.constant_segment] if program.constant_segment else [])]
    for pieces in subsegments:
        _within([pieces.segment], len(program.segments), "segment")
        _within(pieces.offsets, program.segments[pieces.segment].bytes + 1, "offset in a segment")
    _within((data.segment for data in program.named_data), len(program.segments), "segment of named data")
    for plan in program.plans:
        _check_plan(program, plan)
    return program


def _check_plan(program: Program, plan: Plan) -> None:
    where = f"{plan.name}: "
    _within(plan.inputs, len(plan.values), where + "input")
    _within(plan.outputs, len(plan.values), where + "output")
    if any(size < 0 for size in plan.buffer_sizes):
        raise MalformedError(f"{where}a planned buffer of negative size")
    _within((device.mem_id for device in plan.buffer_devices), len(plan.buffer_sizes), where + "planned buffer")
    for delegate in plan.delegates:
        count = len(program.inline_delegates) if delegate.inline else len(program.segments)
        _within([delegate.index], count, where + "data of a delegate")
    for value in plan.values:
        if isinstance(value, Tensor):
            _check_tensor(program, plan, value, where)
        elif isinstance(value, TensorList):
            _within((item for item in value.items if item >= 0), len(plan.values), where + "item of a list")
        elif isinstance(value, ScalarList) and value.kind is ValueKind.INT_LIST:
            _within((int(item) for item in value.items), len(plan.values), where + "item of a list")
    for chain in plan.chains:
        for instruction in chain.instructions:
            _check_instruction(plan, instruction, len(chain.instructions), where)


def _check_tensor(program: Program, plan: Plan, tensor: Tensor, where: str) -> None:
    if tensor.dim_order and sorted(tensor.dim_order) != list(range(len(tensor.sizes))):
        raise MalformedError(f"{where}dimension order {list(tensor.dim_order)} of shape {list(tensor.sizes)}")
    if tensor.allocation is not None:
        _within([tensor.allocation.mem_id], len(plan.buffer_sizes), where + "planned buffer")
        end, size = tensor.allocation.offset + tensor.nbytes, plan.buffer_sizes[tensor.allocation.mem_id]
        if end > size:
            raise MalformedError(f"{where}a tensor ends at byte {end:,} of a planned buffer of {size:,}")
    if tensor.constant and not tensor.external:
        segment = program.constant_segment
        count = len(program.inline_constants) if segment is None else len(segment.offsets)
        _within([tensor.data_index], count, where + "constant")


def _check_instruction(plan: Plan, instruction: Instruction, count: int, where: str) -> None:
    where += "operand"
    values = len(plan.values)
    if isinstance(instruction, KernelCall):
        _within([instruction.operator], len(plan.operators), where)
        _within(instruction.args, values, where)
    elif isinstance(instruction, DelegateCall):
        _within([instruction.delegate], len(plan.delegates), where)
        _within(instruction.args, values, where)
    elif isinstance(instruction, MoveCall):
        _within([instruction.source, instruction.target], values, where)
    elif isinstance(instruction, JumpFalseCall):
        _within([instruction.condition], values, where)
        _within([instruction.destination], count + 1, where)
    elif isinstance(instruction, FreeCall):
        _within([instruction.value], values, where)


def _within(indices: Iterable[int], count: int, what: str) -> None:
    for index in indices:
        if not 0 <= index < count:
            raise MalformedError(f"{what} {index} of {count}")
