"""Every way to get memory: seen with its size, or in the balance as unaccounted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from etmem.api import load
from etmem.model.words import IssueCode
from etmem.trace.blocks import blocks
from etmem.trace.tables import BlockKind, EventKind
from tests.agent import coverage
from tests.agent.coverage import SIZE
from tests.agent.recording import compile_program, record

if TYPE_CHECKING:
    from pathlib import Path

    from tests.agent.coverage import Route


@pytest.fixture(scope="module")
def routes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Route]:
    return coverage.build_all(tmp_path_factory.mktemp("routes"))


@pytest.fixture(scope="module")
def documented() -> dict[str, dict[str, str]]:
    """The table of the documentation: column -> route's title -> cell."""
    lines = [line for line in coverage.PAGE.read_text().splitlines() if line.startswith("| ")]
    head, _, *rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]
    return {title: {row[0]: row[at] for row in rows} for at, title in enumerate(head) if at}


def test_every_route_has_a_title() -> None:
    assert set(coverage.TITLES) == set(coverage.SOURCES)


@pytest.mark.parametrize("column", coverage.COLUMNS)
def test_coverage(column: str, routes: dict[str, Route], documented: dict[str, dict[str, str]], tmp_path: Path) -> None:
    """GIVEN every way to get memory THEN it is seen with its size or stands in the balance, as the page says."""
    found = coverage.COLUMNS[column](routes, tmp_path)
    assert {coverage.TITLES[name]: cell for name, cell in found.items()} == documented[column]


def test_another_malloc_is_named(routes: dict[str, Route], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, library in coverage.ALLOCATORS.items():
        monkeypatch.setenv("LD_PRELOAD", library)
        recording = record([routes["malloc"].program], tmp_path)
        issues = load(recording.path).summary.issues
        assert [name in issue.message for issue in issues if issue.code == IssueCode.OTHER_ALLOCATOR] == [True]


def test_nothing_is_lost_when_it_is_freed(routes: dict[str, Route], tmp_path: Path) -> None:
    """All routes that free have an end: no block of the route's size is live at exit."""
    for name in ("malloc", "mremap_move", "tls_destructor"):
        recording = record([routes[name].program], tmp_path)
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
