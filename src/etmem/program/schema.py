"""The order of fields in the flatbuffers of ExecuTorch's files, and nothing else of their schemas.

A field's place in its table is its slot in the file; a union takes two (its type, then its value). Read as
``name:type``; types are those of flatbuffers (``[T]`` a vector, a capital a table, ``|`` a union). Fields
are only ever appended upstream, so an older file reads as one that lacks the last ones.
"""

from __future__ import annotations

from dataclasses import dataclass

_TABLES = """
Program             version:u32 execution_plan:[ExecutionPlan] constant_buffer:[Buffer]
                    backend_delegate_data:[BackendDelegateInlineData] segments:[DataSegment]
                    constant_segment:SubsegmentOffsets mutable_data_segments:[SubsegmentOffsets]
                    named_data:[NamedData]
ExecutionPlan       name:string container_meta_type:ContainerMetadata values:[EValue] inputs:[i32] outputs:[i32]
                    chains:[Chain] operators:[Operator] delegates:[BackendDelegate] non_const_buffer_sizes:[i64]
                    non_const_buffer_device:[NonConstBufferDevice]
NonConstBufferDevice buffer_idx:i32 device_type:i8 device_index:i8
EValue              val:|KernelTypes
Int                 int_val:i64
Bool                bool_val:bool
Double              double_val:f64
String              string_val:string
IntList             items:[i64]
DoubleList          items:[f64]
BoolList            items:[bool]
TensorList          items:[i32]
OptionalTensorList  items:[i32]
Tensor              scalar_type:i8 storage_offset:i32 sizes:[i32] dim_order:[u8] requires_grad:bool
                    data_buffer_idx:u32 allocation_info:AllocationDetails layout:i8 shape_dynamism:i8
                    extra_tensor_info:ExtraTensorInfo
AllocationDetails   memory_id:u32 memory_offset_low:u32 memory_offset_high:u32
ExtraTensorInfo     mutable_data_segments_idx:u64 fully_qualified_name:string location:i8 device_type:i8
                    device_index:i8
Operator            name:string overload:string
BackendDelegate     id:string processed:BackendDelegateDataReference compile_specs:[CompileSpec]
BackendDelegateDataReference location:i8 index:u32
CompileSpec         key:string value:[u8]
Chain               inputs:[i32] outputs:[i32] instructions:[Instruction] stacktrace:[FrameList]
Instruction         instr_args:|InstructionArguments
KernelCall          op_index:i32 args:[i32]
DelegateCall        delegate_index:i32 args:[i32]
MoveCall            move_from:i32 move_to:i32
JumpFalseCall       cond_value_index:i32 destination_instruction:i32
FreeCall            value_index:i32
Buffer              storage:[u8]
BackendDelegateInlineData data:[u8]
DataSegment         offset:u64 size:u64
SubsegmentOffsets   segment_index:u32 offsets:[u64]
NamedData           key:string segment_index:u32 tensor_layout:TensorLayout
TensorLayout        scalar_type:i8 sizes:[i32] dim_order:[u8]
FlatTensor          version:u32 segments:[DataSegment] named_data:[NamedData]
BundledProgram      version:u32 method_test_suites:[BundledMethodTestSuite] program:[u8]
BundledMethodTestSuite method_name:string test_cases:[BundledMethodTestCase]
BundledMethodTestCase inputs:[Value] expected_outputs:[Value]
Value               val:|ValueUnion
BundledTensor       scalar_type:i8 sizes:[i32] data:[u8] dim_order:[u8]
"""

UNIONS: dict[str, tuple[str, ...]] = {
    "KernelTypes": (
        "Null",
        "Int",
        "Bool",
        "Double",
        "Tensor",
        "String",
        "IntList",
        "DoubleList",
        "BoolList",
        "TensorList",
        "OptionalTensorList",
    ),
    "InstructionArguments": ("KernelCall", "DelegateCall", "MoveCall", "JumpFalseCall", "FreeCall"),
    "ValueUnion": ("BundledTensor", "Int", "Bool", "Double"),
}
"""Member tables by type number, counted from 1."""


@dataclass(frozen=True)
class Schema:
    """The tables and unions of one kind of flatbuffer."""

    tables: dict[str, dict[str, tuple[int, str]]]
    """Table name -> field name -> (slot, type). A union's slot is that of its value."""
    unions: dict[str, tuple[str, ...]]
    """Member tables by type number, counted from 1."""


def parse(text: str) -> dict[str, dict[str, tuple[int, str]]]:
    """The tables of a text such as the above: a bare word begins a table, ``name:type`` is a field."""
    tables: dict[str, dict[str, tuple[int, str]]] = {"Null": {}}
    fields: dict[str, tuple[int, str]] = {}
    slot = 0
    for word in text.split():
        name, colon, kind = word.partition(":")
        if not colon:
            fields, slot = tables.setdefault(name, {}), 0
            continue
        slot += kind.startswith("|")  # the union's type comes first
        fields[name] = (slot, kind)
        slot += 1
    return tables


TABLES = parse(_TABLES)
PROGRAM = Schema(TABLES, UNIONS)
"""ExecuTorch's own files."""
