"""Every way to get memory: seen with its size, or in the balance as unaccounted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from etmem.trace.blocks import blocks
from etmem.trace.tables import BlockKind, EventKind
from tests.agent.recording import PROGRAMS, compile_library, compile_program, record

if TYPE_CHECKING:
    from pathlib import Path

SIZE = 3 * 1024 * 1024 + 4096
ROUTES = PROGRAMS / "routes"
SOURCES = sorted(path for path in ROUTES.iterdir() if path.suffix in (".c", ".cpp"))

UNSEEN = {"libc_malloc", "deepbind", "syscall_mmap"}
"""Routes past every symbol that a preloaded library can stand in front of."""


def build_route(source: Path, folder: Path) -> Path:
    plugin = compile_library(PROGRAMS / "plugin/plugin.c", folder / "libplugin.so")
    return compile_program(source, folder, f'-DPLUGIN="{plugin}"', f"-Wl,-rpath,{folder}")


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_route(source: Path, tmp_path: Path) -> None:
    recording = record([build_route(source, tmp_path)], tmp_path)
    assert recording.status == 0
    trace = recording.trace
    assert trace.header.closed
    assert trace.header.dropped_events == 0
    found, _ = blocks(trace)
    sizes = found.bytes[found.kind != BlockKind.RESERVED].tolist()
    if source.stem in UNSEEN:
        assert SIZE not in sizes
        kernel = next(s for s in trace.snapshots if s.name == "exit").rss_bytes
        assert kernel > SIZE  # resident, so the balance has it
    else:
        assert sizes.count(SIZE) == 1


def test_nothing_is_lost_when_it_is_freed(tmp_path: Path) -> None:
    """All routes that free have an end: no block of the route's size is live at exit."""
    for source in (ROUTES / "malloc.c", ROUTES / "mremap_move.c", ROUTES / "tls_destructor.c"):
        folder = tmp_path / source.stem
        folder.mkdir()
        recording = record([build_route(source, folder)], folder)
        found, _ = blocks(recording.trace)
        last = int(recording.trace.events.stamp[-1])
        row = int(np.flatnonzero((found.bytes == SIZE) & (found.kind != BlockKind.RESERVED))[0])
        assert int(found.end[row]) <= last


def test_a_failed_realloc_leaves_the_block_live(tmp_path: Path) -> None:
    source = tmp_path / "failed.c"
    source.write_text(
        "#include <stdint.h>\n#include <stdlib.h>\n"
        "int main(void) { void* p = malloc(4321); void* volatile q = realloc(p, SIZE_MAX / 2);"
        " if (q != NULL) return 1; return 0; }\n"
    )
    recording = record([compile_program(source, tmp_path, "-Wno-alloc-size-larger-than")], tmp_path)
    assert recording.status == 0
    assert (recording.trace.events.kind == EventKind.UNDO).sum() == 1
    found, _ = blocks(recording.trace)
    rows = [i for i, size in enumerate(found.bytes.tolist()) if size == 4321]
    assert len(rows) == 1
    assert int(found.end[rows[0]]) == 2**64 - 1
