"""The sizes of the runtime's own structures at both pointer widths, as executorch 1.5 lays them out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    bytes: int
    alignment: int


@dataclass(frozen=True)
class Structures:
    """What ``Method::init`` allocates, by type."""

    pointer: Shape
    evalue: Shape
    tensor_impl: Shape
    optional_tensor: Shape
    boxed_list: Shape
    array_ref: Shape
    tensor_meta: Shape
    instruction_args: Shape
    chain: Shape
    backend_delegate: Shape
    platform_allocator: Shape
    merged_data_map: Shape
    named_data: Shape
    compile_spec: Shape


def _of(pointer: int, **sizes: int) -> Structures:
    # int64 and double are aligned to 8 on every target with a runtime port, 32-bit ARM and RISC-V included.
    wide = ("evalue", "backend_delegate", "named_data")
    return Structures(
        pointer=Shape(pointer, pointer),
        **{name: Shape(size, 8 if name in wide else pointer) for name, size in sizes.items()},
    )


_WIDE = _of(
    8, evalue=16, tensor_impl=64, optional_tensor=16, boxed_list=24, array_ref=16, tensor_meta=24,
    instruction_args=16, chain=32, backend_delegate=56, platform_allocator=48, merged_data_map=24, named_data=48,
    compile_spec=24,
)  # fmt: skip
_NARROW = _of(
    4, evalue=16, tensor_impl=32, optional_tensor=8, boxed_list=12, array_ref=8, tensor_meta=12,
    instruction_args=8, chain=16, backend_delegate=40, platform_allocator=28, merged_data_map=12, named_data=40,
    compile_spec=12,
)  # fmt: skip


def structures(pointer_bytes: int) -> Structures:
    return _NARROW if pointer_bytes == 4 else _WIDE
