"""What a method takes and gives, as the runner and the first line of a report need it."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from etmem.model.errors import UsageError
from etmem.program.model import (
    Dynamism,
    Plan,
    Program,
    Scalar,
    ScalarList,
    Tensor,
    Value,
    ValueKind,
)

if TYPE_CHECKING:
    from etmem.program.dtypes import DType


@dataclass(frozen=True)
class InputInfo:
    """One input or output of a method."""

    index: int
    kind: ValueKind
    dtype: DType | None
    """None for anything but a tensor."""
    shape: tuple[int, ...]
    """A dynamic tensor's upper bound: the file does not say which of its dimensions vary."""
    dynamism: Dynamism
    dim_order: tuple[int, ...]
    planned: bool
    """It has a place in planned memory, so the runtime copies the caller's data there."""
    default: int | float | bool | str | tuple[int, ...] | tuple[float, ...] | None
    """The value that the file holds for a scalar or list."""

    @property
    def upper_bound(self) -> bool:
        return self.dynamism is not Dynamism.STATIC

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.dtype.bytes if self.dtype else 0


def inputs(program: Program, method: str) -> tuple[InputInfo, ...]:
    """The inputs of a method, in order. ``UsageError`` where the program has no such method."""
    plan = require_plan(program, method)
    return tuple(_info(plan, position, index) for position, index in enumerate(plan.inputs))


def outputs(program: Program, method: str) -> tuple[InputInfo, ...]:
    """The outputs of a method, in order. ``UsageError`` where the program has no such method."""
    plan = require_plan(program, method)
    return tuple(_info(plan, position, index) for position, index in enumerate(plan.outputs))


def require_plan(program: Program, method: str) -> Plan:
    """The method of that name, or ``UsageError`` naming those that there are."""
    plan = program.plan(method)
    if plan is None:
        raise UsageError(f"the program has no method {method!r}", "It has: " + ", ".join(program.methods))
    return plan


def is_constant_method(plan: Plan) -> bool:
    """Whether a method only returns constants, as ``get_vocab_size`` does: no inputs, nothing to execute."""
    return not plan.inputs and not any(chain.instructions for chain in plan.chains) and not plan.delegates


def _info(plan: Plan, position: int, index: int) -> InputInfo:
    value = plan.values[index]
    if isinstance(value, Tensor):
        return InputInfo(
            index=position,
            kind=ValueKind.TENSOR,
            dtype=value.dtype,
            shape=value.sizes,
            dynamism=value.dynamism,
            dim_order=value.dim_order,
            planned=value.allocation is not None,
            default=None,
        )
    kind, default = _plain(plan, value)
    return InputInfo(position, kind, None, (), Dynamism.STATIC, (), False, default)


def _plain(
    plan: Plan, value: Value
) -> tuple[ValueKind, int | float | bool | str | tuple[int, ...] | tuple[float, ...] | None]:
    if isinstance(value, Scalar):
        return value.kind, value.value
    if isinstance(value, ScalarList):
        if value.kind is not ValueKind.INT_LIST:
            return value.kind, value.items
        boxed = (plan.values[int(item)] for item in value.items)
        return value.kind, tuple(int(item.value) if isinstance(item, Scalar) else 0 for item in boxed)
    if value is None:
        return ValueKind.NONE, None
    assert not isinstance(value, Tensor)
    return (ValueKind.OPTIONAL_TENSOR_LIST if value.optional else ValueKind.TENSOR_LIST), value.items
