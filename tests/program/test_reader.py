"""Everything that the reader says of real programs, against flatc's reading of the same bytes."""

from __future__ import annotations

import math
from typing import Any

import pytest

from etmem.program import model, read, read_data
from etmem.program.dtypes import DTYPES
from tests.models.registry import model_path
from tests.program.flatc import to_json

SMALL = ["branches.pte", "dynamic.pte", "counter.pte", "external.pte", "inline_delegate.pte", "inline_constants.pte"]
CASES = ["convs", "convs_three_delegates", "kv_cache", "mlp", "mlp_dynamic", "mlp_portable", "mlp_two_methods"]
SCALAR_NAMES = {
    "BYTE": "uint8", "CHAR": "int8", "SHORT": "int16", "INT": "int32", "LONG": "int64", "HALF": "float16",
    "FLOAT": "float32", "DOUBLE": "float64", "BOOL": "bool", "BFLOAT16": "bfloat16",
}  # fmt: skip


def flat_tensor(tensor: model.Tensor) -> dict[str, Any]:
    return {
        "dtype": tensor.dtype.name,
        "sizes": list(tensor.sizes),
        "dim_order": list(tensor.dim_order),
        "dynamism": tensor.dynamism.name,
        "allocation": (tensor.allocation.mem_id, tensor.allocation.offset) if tensor.allocation else None,
        "data": tensor.data_index,
        "mutable": tensor.mutable_segment,
        "name": tensor.name,
        "external": tensor.external,
        "device": (tensor.device_type, tensor.device_index),
    }


def json_tensor(tensor: dict[str, Any]) -> dict[str, Any]:
    place, extra = tensor.get("allocation_info"), tensor.get("extra_tensor_info", {})
    offset = place and (place["memory_offset_high"] << 32) + place["memory_offset_low"]
    return {
        "dtype": SCALAR_NAMES[tensor["scalar_type"]],
        "sizes": tensor["sizes"],
        "dim_order": tensor.get("dim_order", []),
        "dynamism": tensor["shape_dynamism"],
        "allocation": (place["memory_id"], offset) if place else None,
        "data": tensor["data_buffer_idx"],
        "mutable": extra.get("mutable_data_segments_idx", 0),
        "name": extra.get("fully_qualified_name"),
        "external": extra.get("location", "SEGMENT") == "EXTERNAL",
        "device": (("CPU", "CUDA").index(extra.get("device_type", "CPU")), extra.get("device_index", 0)),
    }


def flat_value(value: model.Value) -> Any:
    if isinstance(value, model.Tensor):
        return flat_tensor(value)
    if isinstance(value, model.Scalar):
        return value.kind.name, value.value
    if isinstance(value, model.ScalarList):
        return value.kind.name, list(value.items)
    if isinstance(value, model.TensorList):
        return ("OPTIONAL_TENSOR_LIST" if value.optional else "TENSOR_LIST"), list(value.items)
    return None


def json_value(entry: dict[str, Any]) -> Any:
    kind, value = entry["val_type"], entry["val"]
    if kind == "Null":
        return None
    if kind == "Tensor":
        return json_tensor(value)
    scalar = {"Int": "int_val", "Bool": "bool_val", "Double": "double_val", "String": "string_val"}.get(kind)
    if scalar:
        return kind.upper(), value[scalar]
    names = {"IntList": "INT_LIST", "DoubleList": "DOUBLE_LIST", "BoolList": "BOOL_LIST", "TensorList": "TENSOR_LIST"}
    return names.get(kind, "OPTIONAL_TENSOR_LIST"), value.get("items", [])


def flat_instruction(instruction: model.Instruction) -> tuple[Any, ...]:
    fields = (list(field) if isinstance(field, tuple) else field for field in vars(instruction).values())
    return type(instruction).__name__, *fields


def json_instruction(entry: dict[str, Any]) -> tuple[Any, ...]:
    return entry["instr_args_type"], *entry["instr_args"].values()


def flat_plan(plan: model.Plan) -> dict[str, Any]:
    return {
        "name": plan.name,
        "inputs": list(plan.inputs),
        "outputs": list(plan.outputs),
        "values": [flat_value(value) for value in plan.values],
        "operators": [(operator.name, operator.overload) for operator in plan.operators],
        "delegates": [(d.backend, d.inline, d.index, list(d.compile_specs)) for d in plan.delegates],
        "instructions": [[flat_instruction(entry) for entry in chain.instructions] for chain in plan.chains],
        "buffers": list(plan.buffer_sizes),
    }


def json_plan(plan: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": plan["name"],
        "inputs": plan["inputs"],
        "outputs": plan["outputs"],
        "values": [json_value(entry) for entry in plan["values"]],
        "operators": [(operator["name"], operator["overload"]) for operator in plan["operators"]],
        "delegates": [
            (
                entry["id"],
                entry["processed"]["location"] == "INLINE",
                entry["processed"]["index"],
                [spec["key"] for spec in entry["compile_specs"]],
            )
            for entry in plan["delegates"]
        ],
        "instructions": [[json_instruction(entry) for entry in chain["instructions"]] for chain in plan["chains"]],
        "buffers": plan["non_const_buffer_sizes"],
    }


def assert_same(path, directory):
    program = read(path)
    data = path.read_bytes()
    expected = to_json(data[: program.header.program_bytes], "program", directory)
    assert program.version == expected["version"]
    assert [flat_plan(plan) for plan in program.plans] == [json_plan(plan) for plan in expected["execution_plan"]]
    assert [(segment.offset, segment.bytes) for segment in program.segments] == [
        (segment["offset"], segment["size"]) for segment in expected["segments"]
    ]
    offsets = expected["constant_segment"].get("offsets", [])
    assert (list(program.constant_segment.offsets) if program.constant_segment else []) == offsets
    assert [(named.key, named.segment) for named in program.named_data] == [
        (named["key"], named["segment_index"]) for named in expected.get("named_data", [])
    ]
    assert [(pieces.segment, list(pieces.offsets)) for pieces in program.mutable_segments] == [
        (pieces["segment_index"], pieces["offsets"]) for pieces in expected.get("mutable_data_segments", [])
    ]
    for name, found, field in (
        ("constant_buffer", program.inline_constants, "storage"),
        ("backend_delegate_data", program.inline_delegates, "data"),
    ):
        inline = [bytes(entry.get(field, [])) for entry in expected.get(name, [])]
        assert [data[piece.file_offset : piece.file_offset + piece.bytes] for piece in found] == inline
    return program


@pytest.mark.parametrize("name", SMALL)
def test_small_programs_read_as_flatc_reads_them(small, name, tmp_path):
    assert_same(small / name, tmp_path)


@pytest.mark.parametrize("name", CASES)
def test_cases_read_as_flatc_reads_them(name, tmp_path):
    program = assert_same(model_path(name), tmp_path)
    assert program.file_bytes == program.header.segment_base + program.header.segment_bytes


def test_the_small_programs_hold_every_kind_of_thing(small):
    """Else the comparison above would be of less than it says."""
    programs = [read(small / name) for name in SMALL]
    instructions = {
        type(entry).__name__
        for program in programs
        for plan in program.plans
        for chain in plan.chains
        for entry in chain.instructions
    }
    assert instructions >= {"KernelCall", "DelegateCall", "MoveCall", "JumpFalseCall"}
    values = [value for program in programs for plan in program.plans for value in plan.values]
    kinds = {value.kind for value in values if isinstance(value, model.Scalar | model.ScalarList)}
    assert kinds >= {getattr(model.ValueKind, name) for name in ("INT", "BOOL", "DOUBLE", "STRING", "INT_LIST")}
    assert any(isinstance(value, model.TensorList) for value in values)
    tensors = [value for value in values if isinstance(value, model.Tensor)]
    assert any(tensor.external for tensor in tensors)
    assert any(tensor.has_initial_value for tensor in tensors)
    assert any(tensor.dynamism is model.Dynamism.DYNAMIC_BOUND for tensor in tensors)
    assert any(tensor.name for tensor in tensors)
    assert any(program.mutable_segments for program in programs)
    assert any(program.inline_delegates for program in programs)


def test_an_old_program_has_its_constants_inline(small):
    program = read(small / "inline_constants.pte")
    assert not program.header.extended
    assert program.constant_segment is None
    assert [data.bytes for data in program.inline_constants] == [0, 64, 16]
    assert program.constant_bytes == 80


def test_external_data(small, tmp_path):
    path = small / "_default_external_constant.ptd"
    data = read_data(path)
    raw = path.read_bytes()
    expected = to_json(raw[: data.header.program_bytes], "flat_tensor", tmp_path)
    assert data.header.identifier == "FT01"
    assert [(named.key, named.segment) for named in data.named_data] == [
        (named["key"], named["segment_index"]) for named in expected["named_data"]
    ]
    layouts = {named.key: named.layout for named in data.named_data}
    assert {key: layout.nbytes for key, layout in layouts.items()} == {"weight": 256, "bias": 16}
    assert layouts["weight"].sizes == (4, 16)
    for named in data.named_data:
        assert data.segments[named.segment].bytes == layouts[named.key].nbytes


def test_bytes_per_element_are_those_of_torch(small):
    import torch

    for dtype in DTYPES.values():
        kind = getattr(torch, dtype.name, None)
        if isinstance(kind, torch.dtype):
            assert kind.itemsize == dtype.bytes, dtype
    assert sum(isinstance(getattr(torch, dtype.name, None), torch.dtype) for dtype in DTYPES.values()) > 15


def test_planned_bytes_of_the_cases():
    assert read(model_path("kv_cache")).plans[0].planned == ((1, 50335808),)
    assert {plan.name: plan.planned for plan in read(model_path("mlp_two_methods")).plans} == {
        "prefill": ((1, 1048640),),
        "decode": ((1, 16448),),
    }


def test_constant_bytes_include_every_weight():
    program = read(model_path("mlp_portable"))
    constants = [value for value in program.plans[0].values if isinstance(value, model.Tensor) and value.constant]
    assert sum(tensor.nbytes for tensor in constants) == 4 * (2048 * 2048 + 2048) * 4
    assert math.isclose(program.constant_bytes, 4 * (2048 * 2048 + 2048) * 4, rel_tol=1e-3)
