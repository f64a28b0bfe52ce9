"""Source lines for what a summary tells by instruction: which line of the model makes the peak."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from etmem.devtools.etrecord import ETRecord, MethodRecord, Node
from etmem.devtools.stack_traces import own_frame
from etmem.model.errors import InputError
from etmem.model.summary import InstructionBytes, PeakPart, PlannedTensor, SourceLine, Summary

MOST = 32
"""Lines per row: a delegate may have taken a whole model."""


def with_sources(summary: Summary, record: ETRecord) -> Summary:
    """The summary with the ETRecord's lines. Raises InputError for the record of another program."""
    check_pair(summary, record)
    return replace(
        summary,
        instructions=tuple(_instruction(row, record) for row in summary.instructions),
        planned_tensors=tuple(_tensor(row, summary, record) for row in summary.planned_tensors),
        peak_parts=tuple(_part(part, record) for part in summary.peak_parts),
    )


def source_of(node: Node) -> SourceLine:
    frame = own_frame(node.stack)
    module = node.modules[-1][0] if node.modules else ""
    if frame is None:
        return SourceLine("", 0, "", "", module, node.operator)
    return SourceLine(frame.file, frame.line, frame.function, frame.text, module, node.operator)


def _sources(record: ETRecord, method: str, instruction: int, *, last_first: bool = False) -> tuple[SourceLine, ...]:
    found = record.methods.get(method)
    nodes = found.nodes_of(instruction) if found is not None else ()
    ordered = reversed(nodes) if last_first else nodes
    return tuple(dict.fromkeys(source_of(node) for node in ordered))[:MOST]


def _instruction(row: InstructionBytes, record: ETRecord) -> InstructionBytes:
    if row.instruction is None or row.chain:
        return row
    return replace(row, sources=_sources(record, row.method, row.instruction))


def _part(part: PeakPart, record: ETRecord) -> PeakPart:
    return replace(part, sources=_sources(record, part.method, part.instruction))


def _tensor(row: PlannedTensor, summary: Summary, record: ETRecord) -> PlannedTensor:
    """Of what a delegate gives back, the last of its nodes is the likeliest to have made it."""
    if row.first < 0:
        return row
    called = any(
        part.method == row.method and part.instruction == row.first and part.instance for part in summary.peak_parts
    )
    return replace(row, sources=_sources(record, row.method, row.first, last_first=called))


def check_pair(summary: Summary, record: ETRecord) -> None:
    """Whether a record can be that of the program that ran. Raises InputError where it cannot."""
    ran = {row.method for row in summary.instructions}
    missing = sorted(ran - set(record.methods))
    if missing:
        raise _wrong(record, f"it has no method {missing[0]!r}, which ran")
    for name in sorted(ran):
        rows = [row for row in summary.instructions if row.method == name and not row.chain]
        _check_method(record, record.methods[name], rows)
        _check_inputs(summary, record, record.methods[name])


def _check_method(record: ETRecord, method: MethodRecord, rows: Iterable[InstructionBytes]) -> None:
    ran = {row.instruction: row for row in rows if row.instruction is not None}
    if not ran:
        return
    called = {index: row.operator for index, row in ran.items() if row.instance is not None}
    for index, delegate in method.delegates.items():
        if index in ran and called.get(index) != delegate.backend:
            raise _wrong(
                record, f"instruction {index} of {method.name} is {ran[index].operator}, not {delegate.backend}"
            )
    for index, backend in called.items():
        if method.delegates and index not in method.delegates:
            raise _wrong(record, f"instruction {index} of {method.name} calls {backend}, of which it does not know")
    unknown = [index for index in ran if index not in method.handles]
    if unknown and max(ran) > max(method.handles, default=-1):
        raise _wrong(
            record, f"{method.name} has {max(ran) + 1} instructions, it knows {max(method.handles, default=-1) + 1}"
        )
    _check_operators(record, method, {index: row.operator for index, row in ran.items() if row.instance is None})


def _check_operators(record: ETRecord, method: MethodRecord, operators: dict[int, str]) -> None:
    """Lowering replaces some operators by others of its own, but not most of them."""
    known = {index: {_base(node.operator) for node in method.nodes_of(index)} for index in operators}
    told = [index for index in known if known[index]]
    same = [index for index in told if _base(operators[index].replace("::", ".")) in known[index]]
    if told and len(same) * 2 < len(told):
        index = next(index for index in told if index not in same)
        raise _wrong(
            record,
            f"instruction {index} of {method.name} is {operators[index]}, by it {', '.join(sorted(known[index]))}",
        )


def _base(operator: str) -> str:
    """``aten.cumsum`` of ``aten.cumsum.default`` and of ``aten.cumsum.out``."""
    return ".".join(operator.split(".")[:2])


def _check_inputs(summary: Summary, record: ETRecord, method: MethodRecord) -> None:
    ran = [spec for spec in summary.target.inputs if spec.method == method.name]
    for spec, shape in zip(ran, method.input_shapes, strict=False):
        if len(ran) != len(method.input_shapes):
            return  # one input had several shapes in turn, or is no tensor
        static = zip(spec.shape, shape, strict=False)
        if len(spec.shape) != len(shape) or any(known is not None and known != size for size, known in static):
            wanted = "x".join("?" if size is None else str(size) for size in shape)
            raise _wrong(record, f"input {spec.index} of {method.name} is {wanted} by it, and was {_text(spec.shape)}")


def _text(shape: tuple[int, ...]) -> str:
    return "x".join(str(size) for size in shape) or "a scalar"


def _wrong(record: ETRecord, why: str) -> InputError:
    return InputError(
        f"{record.path} is the ETRecord of another program: {why}",
        "Give the one that was made by the export of this very file.",
    )
