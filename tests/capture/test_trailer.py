"""Notes added to a trace whose process has ended."""

from __future__ import annotations

import pytest

from etmem.capture.trailer import append_notes
from etmem.trace import layout
from etmem.trace.reader import read
from etmem.trace.writer import TraceBuilder

NOTES = {"exit_status": "-9", "capture": '{"é": 1}' + "x" * 20_000}


def write(path) -> None:
    builder = TraceBuilder()
    builder.note("capture", "first")
    builder.alloc(0x1000, 64)
    builder.write(path)


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "out.etmem.raw"
    write(path)
    return path


def test_the_last_note_counts(trace):
    before = read(trace)
    append_notes(trace, NOTES)
    after = read(trace)
    assert before.note("capture") == "first"
    assert {key: after.note(key) for key in NOTES} == NOTES
    assert len(after.events) == len(before.events)
    assert after.header.dropped_events == 0
    assert not after.header.truncated
    assert (after.clock == before.clock).all()


def test_they_go_before_what_was_allocated_ahead(trace):
    with trace.open("ab") as file:
        file.write(b"\0" * layout.CHUNK_BYTES * 3)
    size = trace.stat().st_size
    append_notes(trace, NOTES)
    assert trace.stat().st_size == size
    assert read(trace).note("exit_status") == "-9"


def test_a_full_disk_leaves_the_trace_as_it_was(trace, monkeypatch):
    content = trace.read_bytes()
    monkeypatch.setattr("os.pwrite", lambda descriptor, data, offset: len(data) // 2)
    with pytest.raises(OSError, match="No space left"):
        append_notes(trace, NOTES)
    assert trace.read_bytes() == content


def test_a_file_that_never_became_a_trace(tmp_path):
    path = tmp_path / "out.etmem.raw"
    path.write_bytes(b"\0" * 4096)
    append_notes(path, NOTES)
    assert path.read_bytes() == b"\0" * 4096
