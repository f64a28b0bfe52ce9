"""What loading a method takes of its allocators: the allocations of ``Method::init``, one after the other.

Without a temp pool the tables for looking up operators come from the method pool too, and stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from etmem.planning.model import PoolSizes
from etmem.planning.structures import Shape, Structures, structures
from etmem.program.model import DelegateCall, Dynamism, KernelCall, ScalarList, Tensor, TensorList, Value, ValueKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from etmem.program.model import Plan, Program

Request = tuple[int, int]
"""(bytes, alignment)."""
_INT = Shape(4, 4)
_INT64 = Shape(8, 8)
_BYTE = Shape(1, 1)
DELEGATE_REQUESTS: Mapping[str, Mapping[int, Request]] = {
    "XnnpackBackend": {8: (272, 8)},
    "EthosUBackend": {4: (0, 1), 8: (0, 1)},
}
"""What a backend's init asks of the method allocator, by pointer width."""


@dataclass
class Bump:
    """A bump allocator's use."""

    used: int = 0
    high: int = 0

    def take(self, request: Request) -> None:
        size, alignment = request
        self.used = -(-self.used // alignment) * alignment + size
        self.high = max(self.high, self.used)

    def reset(self) -> None:
        self.used = 0


Asked = tuple[str, Request]
"""(``method`` or ``temp``, request); ``reset`` gives the temp pool back."""


@dataclass(frozen=True)
class MethodRequests:
    """What ``Method::init`` asks for, in three steps."""

    values: tuple[Asked, ...]
    delegates: tuple[tuple[Asked, ...], ...]
    """Of each delegate's init."""
    instructions: tuple[Asked, ...]
    unknown_backends: tuple[str, ...] = ()

    @property
    def entries(self) -> Iterator[Asked]:
        """All, in order."""
        yield from self.values
        for asked in self.delegates:
            yield from asked
        yield from self.instructions


def method_bytes(asked: Sequence[Asked]) -> list[int]:
    """What a malloc allocator takes for them: each request rounded up to its alignment."""
    return [-(-size // alignment) * alignment for pool, (size, alignment) in asked if pool == "method"]


def pool_sizes(
    program: Program, plan: Plan, pointer_bytes: int, *, temp_pool: bool, executes: Sequence[Request] = ()
) -> PoolSizes:
    """``executes`` is what delegates ask of the temp pool when they run, each after the last is given back."""
    requests = method_requests(program, plan, pointer_bytes, temp_pool=temp_pool)
    method, temp = Bump(), Bump()
    for pool, request in requests.entries:
        if pool == "method":
            method.take(request)
        elif pool == "temp":
            temp.take(request)
        else:
            temp.reset()
    loading = temp.high
    for request in executes if temp_pool else ():
        temp.reset()
        temp.take(request)
    known = [
        DELEGATE_REQUESTS[delegate.backend] for delegate in plan.delegates if delegate.backend in DELEGATE_REQUESTS
    ]
    told = not requests.unknown_backends and all(pointer_bytes in sizes for sizes in known)
    return PoolSizes(
        pointer_bytes=pointer_bytes,
        temp_pool=temp_pool,
        method_bytes=method.used,
        temp_bytes=temp.high,
        temp_load_bytes=loading,
        delegates_bytes=sum(sizes[pointer_bytes][0] for sizes in known) if told else None,
    )


def method_requests(
    program: Program,
    plan: Plan,
    pointer_bytes: int,
    *,
    temp_pool: bool,
    own_temp: bool = True,
    external_data: bool = False,
) -> MethodRequests:
    """``temp_pool`` is whether the runtime is given a temp allocator that has a size.

    ``own_temp``: without one, the runtime makes an allocator of its own. A temp allocator on malloc has no size
    either, and none is made.
    """
    shapes = structures(pointer_bytes)
    values: list[Asked] = []
    if not temp_pool and own_temp:
        values.append(("method", _list(shapes.platform_allocator, 1)))
    values += [("method", request) for request in _values(plan, shapes)]
    values.append(("method", _list(shapes.backend_delegate, len(plan.delegates))))
    if external_data and program.named_data:
        values.append(("method", _list(shapes.merged_data_map, 1)))
    delegates: list[tuple[Asked, ...]] = []
    unknown = []
    for delegate in plan.delegates:
        specs: Asked = ("method", _list(shapes.compile_spec, len(delegate.compile_specs)))
        request = DELEGATE_REQUESTS.get(delegate.backend, {}).get(pointer_bytes)
        if request is None:
            unknown.append(delegate.backend)
        delegates.append((specs,) if request is None else (specs, ("method", request)))
    instructions = tuple(_instructions(plan, shapes, temp_pool=temp_pool))
    return MethodRequests(tuple(values), tuple(delegates), instructions, tuple(dict.fromkeys(unknown)))


def _instructions(plan: Plan, shapes: Structures, *, temp_pool: bool) -> Iterator[Asked]:
    yield "method", _list(shapes.chain, len(plan.chains))
    for chain in plan.chains:
        count = len(chain.instructions)
        yield from (("method", _list(shapes.pointer, count)), ("method", _list(shapes.instruction_args, count)))
        for instruction in chain.instructions:
            if isinstance(instruction, KernelCall | DelegateCall):
                yield "method", _list(shapes.pointer, len(instruction.args))
            if isinstance(instruction, KernelCall):
                yield from _look_up(plan, instruction, shapes, temp_pool=temp_pool)


def _look_up(plan: Plan, call: KernelCall, shapes: Structures, *, temp_pool: bool) -> Iterator[tuple[str, Request]]:
    """A kernel is looked up by the types and dimension orders of its tensors."""
    pool = "temp" if temp_pool else "method"
    yield pool, _list(shapes.tensor_meta, len(call.args))
    for value in call.args:
        tensor = plan.tensor(value)
        if tensor is not None:
            yield pool, _list(_BYTE, len(tensor.sizes))
    if temp_pool:
        yield "reset", (0, 1)


def _values(plan: Plan, shapes: Structures) -> Iterator[Request]:
    yield _list(shapes.evalue, len(plan.values))
    if plan.inputs:
        yield _list(_BYTE, len(plan.inputs))
    external = sum(isinstance(value, Tensor) and value.external and value.allocation is None for value in plan.values)
    if external:
        yield _list(shapes.named_data, external)
    for value in plan.values:
        yield from _value(value, shapes)


def _value(value: Value, shapes: Structures) -> Iterator[Request]:
    if isinstance(value, Tensor):
        rank = len(value.sizes)
        if value.dynamism is not Dynamism.STATIC:
            yield from (_list(_INT, rank), _list(_BYTE, rank))
        yield from (_list(_INT, rank), _list(shapes.tensor_impl, 1))
    elif isinstance(value, TensorList):
        element = shapes.optional_tensor if value.optional else shapes.pointer
        first, second = (shapes.pointer, element) if value.optional else (element, shapes.pointer)
        yield from (_list(first, len(value.items)), _list(second, len(value.items)), _list(shapes.boxed_list, 1))
    elif isinstance(value, ScalarList) and value.kind is ValueKind.INT_LIST:
        yield from (
            _list(shapes.pointer, len(value.items)),
            _list(_INT64, len(value.items)),
            _list(shapes.boxed_list, 1),
        )
    elif isinstance(value, ScalarList) or getattr(value, "kind", None) is ValueKind.STRING:
        yield _list(shapes.array_ref, 1)


def _list(shape: Shape, count: int) -> Request:
    return shape.bytes * count, shape.alignment
