"""Planned memory that is sized by the upper bounds of dynamic shapes."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from etmem.program.lifetimes import lifetimes, peak_bytes
from etmem.program.model import Dynamism

if TYPE_CHECKING:
    from collections.abc import Mapping

    from etmem.program.model import Plan, Tensor


@dataclass(frozen=True)
class DynamicBound:
    """What a method's dynamic tensors hold at their upper bounds."""

    method: str
    tensors: int
    bound_bytes: int
    """The most bytes that dynamic tensors hold of planned memory at once, all at their bounds."""
    bounds: tuple[tuple[int, tuple[int, ...]], ...]
    """(input, upper bound of its shape) of each dynamic input."""

    def used_share(self, shapes: Mapping[int, tuple[int, ...]]) -> float | None:
        """How much of its bound the largest dynamic input uses at the given shapes, 0 to 1.

        None where no shape of a dynamic input is given. The file does not say how the other tensors follow
        from the inputs: this share stands for theirs.
        """
        shares = [
            prod(shapes[index]) / prod(bound) for index, bound in self.bounds if index in shapes and prod(bound) > 0
        ]
        return max(shares, default=None)


def dynamic_bound(plan: Plan) -> DynamicBound | None:
    """None where every tensor of the method is static."""
    dynamic = {value for value in range(len(plan.values)) if _is_dynamic(plan.tensor(value))}
    if not dynamic:
        return None
    storages = [storage for storage in lifetimes(plan).storages if any(value in dynamic for value in storage.values)]
    tensors = ((index, plan.tensor(value)) for index, value in enumerate(plan.inputs))
    return DynamicBound(
        method=plan.name,
        tensors=len(dynamic),
        bound_bytes=peak_bytes(storages),
        bounds=tuple((index, tensor.sizes) for index, tensor in tensors if tensor is not None and _is_dynamic(tensor)),
    )


def _is_dynamic(tensor: Tensor | None) -> bool:
    return tensor is not None and tensor.dynamism is Dynamism.DYNAMIC_BOUND
