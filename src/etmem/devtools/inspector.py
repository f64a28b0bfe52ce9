"""``MemoryInspector``: ExecuTorch's Inspector with memory beside time."""

from __future__ import annotations

import sys
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from etmem.devtools.etdump import ETDump, parse_etdump, read_etdump
from etmem.devtools.etdump_writing import to_bytes
from etmem.devtools.etrecord import ETRecord
from etmem.devtools.inspector_sources import attach
from etmem.devtools.joining import open_record
from etmem.devtools.memory_events import COLUMNS, INSTRUCTION, RUN, columns
from etmem.devtools.pairing import CALLS, EXECUTE, LOAD, Inference, loads, pair
from etmem.devtools.sources import with_sources
from etmem.devtools.synthetic import etdump_of
from etmem.model.errors import CaptureError, InputError, UsageError
from etmem.model.summary import Moment, Phase, Summary

if TYPE_CHECKING:
    from etmem.analysis.context import Context

HIDDEN_EVENTS = ("OPERATOR_CALL",)
"""Inspector leaves them out when it prints: the kernel's own event says the same."""
HIDDEN_COLUMNS = (
    "raw",
    "delegate_debug_identifier",
    "stack_traces",
    "module_hierarchy",
    "debug_data",
    "start_time",
)


class MemoryInspector:
    """A trace, with an ETDump and an ETRecord where there are such, used as ExecuTorch's Inspector is.

    ``event_blocks`` are Inspector's own; every frame has its columns and those of memory. Without an ETDump the
    times are those of the trace. With one, both have to be of one run: the ETDump that ``etmem profile --etdump``
    wrote beside the trace, or that of a program which ran under ``etmem run``.

    The ETRecord is read by etmem, which evaluates nothing of it. ``trust_etrecord`` gives it to ExecuTorch's own
    reader, which hands strings of the file to sympy, that is to eval. All further options are Inspector's.

    Raises InputError for files that cannot be read or are not of one run, CaptureError without executorch.
    """

    def __init__(
        self,
        trace: str | Path,
        etdump_path: str | Path | None = None,
        etdump_data: bytes | None = None,
        etrecord: str | Path | ETRecord | None = None,
        *,
        trust_etrecord: bool = False,
        **options: Any,
    ) -> None:
        from etmem.api import analyze_trace

        if etdump_path is not None and etdump_data is not None:
            raise UsageError("etdump_path and etdump_data are both given")
        record = open_record(etrecord, trust=trust_etrecord) if isinstance(etrecord, str | Path) else etrecord
        summary, self._context = analyze_trace(Path(trace))
        self.summary: Summary = with_sources(summary, record) if record is not None else summary
        given = _dump(self._context, etdump_path, etdump_data)
        self._inferences = pair(self._context, given)
        self._allocations = tuple((block.name, *entry) for block in given.blocks for entry in block.allocations)
        self._dump = given.without(INSTRUCTION, RUN)
        trusted = str(record.path) if record is not None and trust_etrecord else None
        self._inspector = _inspector(given, etdump_data, trusted, options)
        if record is not None and trusted is None:
            attach(self._inspector.event_blocks, record, _methods(self._runs(), self._inferences))
        self._memory = [
            [self._of(event, runs) for event in block.events]
            for block, runs in zip(self._inspector.event_blocks, self._runs(), strict=True)
        ]

    @property
    def event_blocks(self) -> Sequence[Any]:
        """ExecuTorch's EventBlocks."""
        blocks: Sequence[Any] = self._inspector.event_blocks
        return blocks

    @property
    def allocations(self) -> tuple[tuple[str, str, int], ...]:
        """(block, allocator, bytes) of each allocation event in the ETDump, whoever wrote it."""
        return self._allocations

    def memory_of(self, block: int, event: int) -> Mapping[str, int | None]:
        """The figures of one event of ``event_blocks``; empty for what memory is not told of."""
        return self._memory[block][event]

    def to_dataframe(self, include_units: bool = True, include_delegate_debug_data: bool = False) -> Any:
        """Inspector's frame, one row per event, with the columns of memory behind; bytes as whole numbers."""
        import pandas as pd

        frame = self._inspector.to_dataframe(include_units, include_delegate_debug_data)
        rows = [memory for block in self._memory for memory in block]
        for name in COLUMNS:
            frame[name] = pd.array([row.get(name) for row in rows], dtype="Int64")
        return frame

    def print_data_tabular(self, file: IO[str] = sys.stdout, include_units: bool = True) -> None:
        """Time and memory of every event, as Inspector prints its table."""
        import pandas as pd

        frame = self.to_dataframe(include_units).drop(columns=list(HIDDEN_COLUMNS), errors="ignore")
        frame = frame[~frame["event_name"].isin(HIDDEN_EVENTS)].dropna(axis=1, how="all").reset_index(drop=True)
        with pd.option_context("display.max_rows", None, "display.max_columns", None, "display.width", None):
            file.write(frame.to_string() + "\n")

    def find_total_for_module(self, module_name: str) -> float:
        """Inspector's: the average time of all operators in a module."""
        total: float = self._inspector.find_total_for_module(module_name)
        return total

    def find_memory_for_module(self, module_name: str) -> int:
        """Bytes held at the peak of inference by the instructions that have an operator of a module. A delegate
        that took several modules counts for each of them."""
        parts = [part for part in self.summary.peak_parts if part.at == "inference"]
        return sum((part.bytes for part in parts if any(module_name in s.module for s in part.sources)), 0)

    def _runs(self) -> list[tuple[int, ...]]:
        """By event block, the indices of the ETDump's blocks in it: Inspector puts blocks of the same events
        together, in the order in which they first come."""
        groups: dict[object, list[int]] = defaultdict(list)
        for index, block in enumerate(self._dump.blocks):
            events = tuple(
                dict.fromkeys(
                    (e.instruction, e.chain, e.name or "", e.delegate_id, e.delegate_name or "")
                    for e in block.profile_events
                )
            )
            groups[block.name, events, block.bundled_input].append(index)
        return [tuple(group) for group in groups.values()]

    def _of(self, event: Any, blocks: tuple[int, ...]) -> Mapping[str, int | None]:
        here = [one for one in self._inferences if one.block in blocks]
        if event.name == "Method::execute" and here:
            return _total([self._phase(one) for one in here])
        if event.name == LOAD:
            return _total(self._loads(blocks))
        number = getattr(event, "_instruction_id", None)
        own = event.name in CALLS or str(event.name).startswith("native_call_")
        if not here or number is None or not own:
            return {}
        return columns(row for one in here for row in one.rows if row.instruction == number and not row.chain)

    def _phase(self, inference: Inference) -> Phase:
        return self._context.phases[self._context.spans.index(inference.span)]

    def _loads(self, blocks: tuple[int, ...]) -> list[Phase]:
        """The load of each method, by the number of such events in the blocks before."""
        spans = loads(self._context)
        found, seen = [], 0
        for index, block in enumerate(self._dump.blocks):
            for event in block.profile_events:
                if event.name == LOAD and block.name != EXECUTE:
                    if index in blocks and seen < len(spans):
                        found.append(self._context.phases[self._context.spans.index(spans[seen])])
                    seen += 1
        return found


def _total(phases: Sequence[Phase]) -> Mapping[str, int | None]:
    def live(name: str) -> int:
        moments: list[Moment] = [getattr(phase, name) for phase in phases]
        return max(moment.private_bytes + moment.file_bytes for moment in moments)

    if not phases:
        return {}
    return {
        "live_before_bytes": live("live_start"),
        "live_after_bytes": live("live_end"),
        "peak_bytes": live("peak"),
        "allocated_bytes": sum(phase.allocated_bytes for phase in phases),
        "allocations": sum(phase.allocations for phase in phases),
    }


def _dump(context: Context, path: str | Path | None, data: bytes | None) -> ETDump:
    if path is not None:
        return read_etdump(path)
    return parse_etdump(data) if data is not None else etdump_of(context)


def _methods(runs: Sequence[tuple[int, ...]], inferences: Sequence[Inference]) -> list[str | None]:
    """The method of each event block."""
    of_block = {one.block: one.span.scope.name for one in inferences}
    return [next((of_block[index] for index in blocks if index in of_block), None) for blocks in runs]


def _inspector(dump: ETDump, data: bytes | None, etrecord: str | None, options: Mapping[str, Any]) -> Any:
    with warnings.catch_warnings():
        # Importing torch and executorch warns of their own affairs, and Inspector of a debug buffer that nobody
        # asked for.
        warnings.simplefilter("ignore")
        try:
            from executorch.devtools import Inspector
        except ImportError as error:
            raise CaptureError(
                f"MemoryInspector needs executorch, torch and pandas: {error}",
                "pip install executorch pandas. The summary, to_json() and the report need none of them.",
            ) from error
        return Inspector(etdump_data=_openable(dump, data), etrecord=etrecord, **options)


def _openable(dump: ETDump, data: bytes | None) -> bytes:
    """The bytes that the stock Inspector opens: without allocation events, on which it raises, and without
    etmem's own, which the columns tell."""
    shown = dump.without(INSTRUCTION, RUN)
    if shown == dump and dump.path != etdump_of.__name__:
        return data if data is not None else Path(dump.path).read_bytes()
    if dump.debugs:
        raise InputError(
            f"{dump.path} holds allocation events and intermediate outputs",
            "Record them in two runs: Inspector cannot open the one, and etmem does not copy the other.",
        )
    return to_bytes(shown)
