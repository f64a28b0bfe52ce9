"""What is mapped, replaced, cut, moved and given back: one small program for each."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from etmem.analysis import residency
from etmem.api import analyze_trace
from etmem.trace.blocks import blocks
from etmem.trace.tables import NEVER, BlockKind, EventKind, Trace
from tests.agent.recording import PROGRAMS, compile_program, record

MAPPINGS = PROGRAMS / "mappings"
INCLUDE = PROGRAMS.parents[1] / "include"
UNIT = 37 * 4096
ANONYMOUS, FILE, SHARED, RESERVED = BlockKind.ANONYMOUS, BlockKind.FILE, BlockKind.SHARED, BlockKind.RESERVED

Found = Counter[tuple[BlockKind, int]]

AT_THE_END: dict[str, list[tuple[BlockKind, int]]] = {
    "fixed_over": [(ANONYMOUS, 3), (ANONYMOUS, 2), (ANONYMOUS, 5)],
    "fixed_over_itself": [(ANONYMOUS, 10)],
    "fixed_noreplace": [(ANONYMOUS, 10)],
    "reserve": [(RESERVED, 100), (ANONYMOUS, 5), (RESERVED, 895)],
    "protect_none": [(ANONYMOUS, 4), (RESERVED, 1), (ANONYMOUS, 5)],
    "protect_read": [(ANONYMOUS, 10)],
    "file_private": [(FILE, 5), (FILE, 2)],
    "shared_anonymous": [(SHARED, 6)],
    "unmap_start": [(ANONYMOUS, 7)],
    "unmap_end": [(ANONYMOUS, 6)],
    "unmap_middle": [(ANONYMOUS, 2), (ANONYMOUS, 5)],
    "unmap_several": [(ANONYMOUS, 4), (ANONYMOUS, 4)],
    "unmap_refused": [(ANONYMOUS, 10)],
    "remap_part": [(ANONYMOUS, 3), (ANONYMOUS, 5), (ANONYMOUS, 40)],
    "remap_fixed": [(ANONYMOUS, 5), (ANONYMOUS, 2), (ANONYMOUS, 5)],
    "remap_refused": [(ANONYMOUS, 5), (SHARED, 5)],
    "huge_pages": [(ANONYMOUS, 30)],
    "advise": [(ANONYMOUS, 10)],
}
"""By program: kind and size in units of what is mapped when it ends."""


def run(name: str, folder: Path) -> Trace:
    program = compile_program(MAPPINGS / f"{name}.c", folder, f"-I{INCLUDE}")
    recording = record([program, folder / "file"], folder)
    assert recording.status == 0
    assert recording.trace.header.dropped_events == 0
    return recording.trace


def mapped(trace: Trace) -> Found:
    found, stats = blocks(trace)
    assert stats.unmatched_undos == 0
    rows = np.flatnonzero((found.end == NEVER) & (found.bytes % UNIT == 0) & (found.kind != BlockKind.HEAP))
    return Counter((BlockKind(int(found.kind[row])), int(found.bytes[row]) // UNIT) for row in rows.tolist())


@pytest.mark.parametrize("name", AT_THE_END)
def test_what_is_mapped_at_the_end(name: str, tmp_path: Path) -> None:
    assert mapped(run(name, tmp_path)) == Counter(AT_THE_END[name])


def test_every_program_has_its_expectation() -> None:
    programs = {path.stem for path in MAPPINGS.glob("*.c")}
    assert programs - {"residency"} == set(AT_THE_END)


def test_a_file_mapping_knows_its_file_and_offset(tmp_path: Path) -> None:
    trace = run("file_private", tmp_path)
    maps = {(file.path, file.offset, file.bytes) for file in trace.file_maps if file.bytes % UNIT == 0}
    path = str(tmp_path / "file")
    assert maps == {(path, 3 * UNIT, 5 * UNIT), (path, 0, 2 * UNIT)}


def test_advice_is_recorded(tmp_path: Path) -> None:
    events = run("advise", tmp_path).events
    rows = np.flatnonzero(events.kind == EventKind.ADVISE)
    found = [(int(events.size[row]) // UNIT, int(events.flags[row])) for row in rows if events.size[row] % UNIT == 0]
    assert found == [(2, 0), (3, 1)]


def test_residency_follows_the_pages_of_an_owner(tmp_path: Path) -> None:
    """GIVEN 20 units mapped and 7 allocated in a delegate's scope, all touched
    WHEN pages are given back, touched again, unmapped and freed THEN the delegate's resident bytes say so."""
    trace = run("residency", tmp_path)
    account = analyze_trace(tmp_path / "run.etmem")[1]
    resident = {
        snapshot.name: residency.lines(account, snapshot).bytes.get("delegate:Test", 0) / UNIT
        for snapshot in trace.snapshots
    }
    # A heap block shares its first and its last page with malloc's own.
    expected = {"all": 27, "advised": 19, "touched again": 22, "unmapped": 12, "freed": 5}
    assert {name: resident[name] for name in expected} == pytest.approx(expected, abs=0.06)
