"""Copies in planned memory that an export could do without: of mutable buffers, and of constants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from etmem.program.lifetimes import Lifetimes, Storage, lifetimes, mentioned, peak_bytes, written
from etmem.program.model import KernelCall

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

    from etmem.program.model import Plan

_LAYOUT_ONLY = frozenset(
    "aten::" + name
    for name in (
        "permute_copy", "transpose_copy", "t_copy", "clone", "_clone_dim_order", "contiguous", "expand_copy",
        "view_copy", "_to_copy", "unsqueeze_copy", "squeeze_copy", "alias_copy", "detach_copy",
    )
) | {"dim_order_ops::_to_dim_order_copy", "dim_order_ops::_clone_dim_order"}  # fmt: skip
"""Operators that put the same numbers elsewhere or in another order."""


@dataclass(frozen=True)
class BufferCopies:
    """A method's mutable buffers and what is computed from them at full size."""

    method: str
    buffers: int
    buffer_bytes: int
    copies: int
    """Tensors at least as large as the buffer that they are made from."""
    copied_bytes: int
    """The most bytes that buffers and copies hold at once."""
    peak_bytes: int
    in_place_peak_bytes: int
    """The most bytes in use at once if updates were written into the buffers."""

    @property
    def saving_bytes(self) -> int:
        return max(0, self.peak_bytes - self.in_place_peak_bytes)


@dataclass(frozen=True)
class ConstantCopies:
    """Constants that a method transposes or copies into planned memory whenever it runs."""

    method: str
    operators: tuple[str, ...]
    tensors: int
    copied_bytes: int
    """The most bytes that such copies hold at once."""
    peak_bytes: int
    stored_peak_bytes: int
    """The most bytes in use at once if the file held the constants as they are needed."""

    @property
    def saving_bytes(self) -> int:
        return max(0, self.peak_bytes - self.stored_peak_bytes)


def buffer_copies(plan: Plan) -> BufferCopies | None:
    """None where no mutable buffer is copied at full size."""
    lives = lifetimes(plan)
    buffers = {value: storage for storage in lives.storages for value in storage.values if value in lives.mutable}
    updates = dict(_updates(plan, lives))
    copies: dict[int, Storage] = {}
    for storage in lives.storages:
        sources = _sources(plan, lives, storage)
        made_from = {updates.get(source, source) for source in sources} & buffers.keys()
        if any(storage.bytes >= buffers[value].bytes for value in made_from):
            copies[storage.values[0]] = storage
    updated = {storage for storage in lives.storages if any(value in updates for value in storage.values)}
    if not buffers or not updated:
        return None
    kept = set(buffers.values())
    return BufferCopies(
        method=plan.name,
        buffers=len(kept),
        buffer_bytes=sum(storage.bytes for storage in kept),
        copies=len(copies),
        copied_bytes=peak_bytes(kept | set(copies.values())),
        peak_bytes=lives.peak_bytes,
        in_place_peak_bytes=peak_bytes(storage for storage in lives.storages if storage not in updated),
    )


def constant_copies(plan: Plan) -> ConstantCopies | None:
    """None where no constant is copied."""
    lives = lifetimes(plan)
    made = dict(_constant_layouts(plan, lives))
    storages = {storage for storage in lives.storages if any(value in made for value in storage.values)}
    if not storages:
        return None
    return ConstantCopies(
        method=plan.name,
        operators=tuple(dict.fromkeys(made.values())),
        tensors=len(made),
        copied_bytes=peak_bytes(storages),
        peak_bytes=lives.peak_bytes,
        stored_peak_bytes=peak_bytes(storage for storage in lives.storages if storage not in storages),
    )


def _updates(plan: Plan, lives: Lifetimes) -> Iterator[tuple[int, int]]:
    """(tensor, mutable buffer) of each tensor that a copy_ writes back as the buffer's new content."""
    for entry in lives.instructions:
        if isinstance(entry, KernelCall) and plan.operators[entry.operator].name.endswith("::copy_"):
            target, source = entry.args[0], entry.args[1]
            if target in lives.mutable and source != target and source not in plan.inputs:
                yield source, target


def _sources(plan: Plan, lives: Lifetimes, storage: Storage) -> AbstractSet[int]:
    """The values that the instruction that fills a storage is given."""
    if not 0 <= storage.first < lives.end:
        return frozenset()
    return set(mentioned(plan, lives.instructions[storage.first])) - set(storage.values)


def _constant_layouts(plan: Plan, lives: Lifetimes) -> Iterator[tuple[int, str]]:
    """(tensor, operator) of each constant that is only put into another order."""
    derived: set[int] = set()
    for entry in lives.instructions:
        if not isinstance(entry, KernelCall) or plan.operators[entry.operator].name not in _LAYOUT_ONLY:
            continue
        outputs = written(plan, entry)
        tensors = [value for value in entry.args if value not in outputs and (plan.tensor(value) is not None)]
        if tensors and all(_is_constant(plan, value) or value in derived for value in tensors):
            derived.update(outputs)
            yield from ((value, plan.operators[entry.operator].name) for value in outputs)


def _is_constant(plan: Plan, value: int) -> bool:
    tensor = plan.tensor(value)
    return tensor is not None and tensor.constant
