"""What an instruction is called where people read it."""

from __future__ import annotations

from etmem.program.model import DelegateCall, FreeCall, Instruction, JumpFalseCall, KernelCall, MoveCall, Plan


def instruction_name(plan: Plan, instruction: Instruction) -> str:
    """``aten::add.out``, ``XnnpackBackend[2]``, or what it does."""
    match instruction:
        case KernelCall(operator=operator):
            return str(plan.operators[operator])
        case DelegateCall(delegate=delegate):
            return f"{plan.delegates[delegate].backend}[{delegate}]"
        case MoveCall():
            return "move"
        case JumpFalseCall():
            return "jump_false"
        case FreeCall():
            return "free"
