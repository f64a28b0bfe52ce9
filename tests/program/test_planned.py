"""Lifetimes in planned memory, and what follows from them: breaks, copies, bounds."""

from __future__ import annotations

import time

import pytest

from etmem.program import model, read
from etmem.program.bounds import dynamic_bound
from etmem.program.breaks import graph_breaks
from etmem.program.copies import buffer_copies, constant_copies
from etmem.program.dtypes import DTYPES
from etmem.program.lifetimes import Storage, lifetimes, peak_bytes
from tests.models.registry import model_path

CASES = ["convs", "convs_three_delegates", "kv_cache", "mlp", "mlp_dynamic", "mlp_portable", "mlp_three_delegates"]
FLOAT = DTYPES[6]


def tensor(bytes_: int, offset: int | None, *, constant: bool = False) -> model.Tensor:
    return model.Tensor(
        dtype=FLOAT,
        sizes=(bytes_ // 4,),
        dim_order=(0,),
        dynamism=model.Dynamism.STATIC,
        allocation=None if offset is None else model.Allocation(1, offset),
        data_index=1 if constant else 0,
        mutable_segment=0,
        name=None,
        external=False,
        device_type=0,
        device_index=0,
    )


def plan(values, instructions, *, inputs=(), outputs=(), operators=("aten::relu",), delegates=0) -> model.Plan:
    return model.Plan(
        name="forward",
        inputs=inputs,
        outputs=outputs,
        values=tuple(values),
        operators=tuple(model.Operator(name, "out") for name in operators),
        delegates=tuple(model.Delegate("B", inline=True, index=0, compile_specs=()) for _ in range(delegates)),
        chains=(model.Chain(tuple(instructions)),),
        buffer_sizes=(0, 1 << 20),
        buffer_devices=(),
    )


def kernel(*args: int, operator: int = 0) -> model.KernelCall:
    return model.KernelCall(operator, args)


@pytest.mark.parametrize("name", CASES)
def test_no_more_is_in_use_than_is_planned_and_little_less(name):
    """The planner adds at most 64 bytes for each buffer."""
    (found,) = read(model_path(name)).plans
    planned = sum(size for _, size in found.planned)
    assert planned - 64 <= lifetimes(found).peak_bytes <= planned


def test_every_storage_lies_in_its_buffer():
    for name in CASES:
        for found in read(model_path(name)).plans:
            for storage in lifetimes(found).storages:
                assert storage.offset + storage.bytes <= found.buffer_sizes[storage.mem_id]
                assert storage.first <= storage.last


def test_peak_of_storages():
    storages = [
        Storage(1, 0, 10, -1, 0, (0,)),
        Storage(1, 10, 20, 0, 1, (1,)),
        Storage(1, 0, 30, 1, 3, (2,)),
        Storage(1, 30, 5, 3, 3, (3,)),
    ]
    assert peak_bytes(storages) == 50
    assert peak_bytes([]) == 0


def test_a_view_shares_its_tensors_storage():
    """GIVEN a relu into 1, of which 2 is a view that a second relu reads THEN 1 and 2 are one storage."""
    values = [tensor(16, 0), tensor(16, 16), tensor(16, 16), tensor(16, 32)]
    calls = [kernel(0, 1), kernel(1, 2), kernel(2, 3)]
    lives = lifetimes(plan(values, calls, inputs=(0,), outputs=(3,)))
    assert sorted(storage.values for storage in lives.storages) == [(0,), (1, 2), (3,)]
    (shared,) = [storage for storage in lives.storages if storage.values == (1, 2)]
    assert (shared.bytes, shared.first, shared.last) == (16, 0, 2)
    assert lives.peak_bytes == 32


def test_place_that_is_reused_is_two_storages():
    values = [tensor(16, 0), tensor(16, 16), tensor(16, 0), tensor(16, 16)]
    calls = [kernel(0, 1), kernel(1, 2), kernel(2, 3)]
    lives = lifetimes(plan(values, calls, inputs=(0,), outputs=(3,)))
    assert len(lives.storages) == 4
    assert not lives.mutable


def test_items_of_lists_are_used_when_the_list_is():
    values = [tensor(16, 0), tensor(16, 16), model.TensorList((0, 1), optional=False), tensor(32, 32)]
    calls = [kernel(0, 1), kernel(2, 3)]
    lives = lifetimes(plan(values, calls, inputs=(0,), outputs=(3,)))
    assert {storage.values: storage.last for storage in lives.storages} == {(0,): 1, (1,): 1, (3,): 2}


def test_the_cache_lives_for_ever():
    (found,) = read(model_path("kv_cache")).plans
    lives = lifetimes(found)
    assert len(lives.mutable) == 1
    (cache,) = [storage for storage in lives.storages if set(storage.values) & lives.mutable]
    assert (cache.bytes, cache.first, cache.last) == (2**24, -1, lives.end)


def test_a_buffer_with_an_initial_value_is_mutable(small):
    (found,) = read(small / "counter.pte").plans
    assert {found.tensor(value).name for value in lifetimes(found).mutable} == {"count"}


def test_breaks_of_the_cases():
    (cut,) = graph_breaks(read(model_path("convs_three_delegates")).plans[0])
    assert (cut.backend, cut.delegates, cut.operators) == ("XnnpackBackend", 3, (("aten::cumsum.out", 2),))
    assert (cut.crossing_bytes, cut.peak_bytes, cut.uncut_peak_bytes) == (16_777_216, 16_777_216, 9_175_040)
    assert cut.saving_bytes == 7_602_176
    assert graph_breaks(read(model_path("convs")).plans[0]) == ()
    assert graph_breaks(read(model_path("mlp_portable")).plans[0]) == ()


def test_what_outlives_the_cut_part_does_not_cross_a_cut():
    """GIVEN a tensor that a kernel after the last delegate reads as well THEN an uncut model plans it too."""
    values = [tensor(16, 0), tensor(1024, 16), tensor(16, 2048), tensor(16, 3072), tensor(16, 4096)]
    calls = [model.DelegateCall(0, (0, 1)), kernel(1, 2), model.DelegateCall(1, (2, 3)), kernel(3, 1, 4)]
    (cut,) = graph_breaks(plan(values, calls, inputs=(0,), outputs=(4,), delegates=2))
    assert cut.crossing_bytes == 16
    assert cut.uncut_peak_bytes == 1024 + 16 + 16
    assert cut.saving_bytes == 0


def test_copies_of_a_cache():
    found = buffer_copies(read(model_path("kv_cache")).plans[0])
    assert found is not None
    assert (found.buffers, found.copies) == (1, 2)
    assert (found.buffer_bytes, found.copied_bytes, found.saving_bytes) == (2**24, 3 * 2**24, 2**24)
    assert buffer_copies(read(model_path("mlp")).plans[0]) is None


def test_a_buffer_that_is_updated_in_place_is_not_copied():
    """index_put_ writes into the buffer itself: nothing is copied back."""
    values = [tensor(1024, 0), tensor(16, 1024), tensor(16, 2048)]
    calls = [kernel(0, 1, 0), kernel(0, 2, operator=1)]
    found = plan(values, calls, inputs=(1,), outputs=(2,), operators=("aten::index_put_", "aten::sum"))
    assert lifetimes(found).mutable == {0}
    assert buffer_copies(found) is None


def test_transposed_constants():
    found = constant_copies(read(model_path("mlp_portable")).plans[0])
    assert found is not None
    assert (found.operators, found.tensors) == (("aten::permute_copy",), 4)
    assert (found.copied_bytes, found.saving_bytes) == (2**24, 2**24)
    assert constant_copies(read(model_path("convs")).plans[0]) is None


def test_a_transposed_activation_is_no_constant():
    values = [tensor(16, 0), tensor(16, 16), tensor(64, None, constant=True), tensor(64, 64)]
    calls = [kernel(0, 1), kernel(2, 3, operator=1)]
    operators = ("aten::permute_copy", "aten::add")
    assert constant_copies(plan(values, calls, inputs=(0,), outputs=(1, 3), operators=operators)) is None
    calls = [kernel(0, 1), kernel(2, 3)]
    found = constant_copies(plan(values, calls, inputs=(0,), outputs=(1, 3), operators=operators))
    assert found is not None
    assert (found.tensors, found.copied_bytes) == (1, 64)


def test_bounds():
    found = dynamic_bound(read(model_path("mlp_dynamic")).plans[0])
    assert found is not None
    assert found.bound_bytes == 2 * 4096 * 2048 * 4
    assert found.bounds == ((0, (4096, 2048)),)
    assert found.used_share({0: (1, 2048)}) == 1 / 4096
    assert found.used_share({0: (4096, 2048)}) == 1
    assert found.used_share({1: (1,)}) is None
    assert dynamic_bound(read(model_path("mlp")).plans[0]) is None


def test_a_large_method_takes_no_time():
    """20,000 kernels in a row, each into a place of its own: nothing may look at every pair."""
    count = 20_000
    values = [tensor(16, 16 * index) for index in range(count + 1)]
    calls = [kernel(index, index + 1) for index in range(count)]
    began = time.monotonic()
    found = plan(values, [model.DelegateCall(0, (0, 1)), *calls[1:-1], model.DelegateCall(1, (count - 1, count))],
                 inputs=(0,), outputs=(count,), delegates=2)  # fmt: skip
    (cut,) = graph_breaks(found)
    assert (cut.crossing_bytes, cut.uncut_peak_bytes) == (32, 32)
    assert buffer_copies(found) is None
    assert constant_copies(found) is None
    assert dynamic_bound(found) is None
    assert time.monotonic() - began < 20
