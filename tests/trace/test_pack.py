from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etmem.model.errors import EtmemError, TraceError
from etmem.trace import packed
from etmem.trace.blocks import blocks
from etmem.trace.columns import DTYPES, decode, encode
from etmem.trace.layout import Status
from etmem.trace.pack import pack
from etmem.trace.reader import read
from etmem.trace.tables import ScopeKind
from etmem.trace.writer import TraceBuilder
from tests.trace.sample import assert_same, everything


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return everything().write(tmp_path / "raw.etmem")


def many(count: int) -> TraceBuilder:
    """What a program does: sizes that recur, addresses that are taken again."""
    b = TraceBuilder()
    random = np.random.default_rng(3)
    live: list[int] = []
    spare = [0x7F0000000000 + 64 * slot for slot in range(3000)]
    for turn, pick in enumerate(random.integers(0, 1 << 30, count).tolist()):
        if live and (pick & 1 or not spare):
            address = live.pop(pick % len(live))
            spare.append(address)
            b.free(address)
        else:
            live.append(spare.pop())
            b.alloc(live[-1], 16 * (1 + pick % 40), thread=1000 + turn // 64 % 2)
    return b


def test_a_packed_trace_is_the_same_trace(raw: Path, tmp_path: Path) -> None:
    pack(raw, tmp_path / "packed.etmem")
    one, other = read(raw), read(tmp_path / "packed.etmem")
    assert_same(one, other)
    for a, b in zip(vars(blocks(one)[0]).values(), vars(blocks(other)[0]).values(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_several_blocks_of_events_are_one_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("etmem.trace.pack.BLOCK_ROWS", 1000)
    path = many(4500).write(tmp_path / "raw.etmem")
    pack(path, tmp_path / "packed.etmem")
    trace = read(tmp_path / "packed.etmem")
    assert_same(read(path), trace)
    assert [len(batch) for batch in trace.events.batches(600)] == [600, 400] * 4 + [500]


def test_an_event_takes_less_than_four_bytes(tmp_path: Path) -> None:
    path = many(60_000).write(tmp_path / "raw.etmem")
    pack(path, tmp_path / "packed.etmem")
    assert (tmp_path / "packed.etmem").stat().st_size < 4 * 60_000


def test_a_trace_may_be_packed_in_place(raw: Path) -> None:
    before = read(raw)
    raw.chmod(0o640)
    pack(raw, raw)
    assert packed.is_packed(np.fromfile(raw, np.uint8))
    assert raw.stat().st_mode & 0o777 == 0o640
    assert_same(before, read(raw))
    assert [path.name for path in raw.parent.iterdir()] == [raw.name]


def test_what_a_killed_process_left_is_packed_as_it_is(tmp_path: Path) -> None:
    b = everything()
    b.status = Status(0)
    path = b.write(tmp_path / "raw.etmem")
    path.write_bytes(path.read_bytes()[:-700])
    pack(path, tmp_path / "packed.etmem")
    trace = read(tmp_path / "packed.etmem")
    assert trace.header.truncated
    assert trace.header.dropped_events > 0
    assert_same(read(path), trace)


def test_packing_twice_is_refused(raw: Path) -> None:
    pack(raw, raw)
    with pytest.raises(TraceError, match="packed already"):
        pack(raw, raw)


def test_a_damaged_trace_is_not_packed(raw: Path, tmp_path: Path) -> None:
    data = bytearray(raw.read_bytes())
    data[4096] ^= 1
    raw.write_bytes(data)
    with pytest.raises(TraceError, match="damaged"):
        pack(raw, tmp_path / "packed.etmem")
    assert list(tmp_path.iterdir()) == [raw]


def test_a_folder_that_is_not_there_is_named(raw: Path, tmp_path: Path) -> None:
    with pytest.raises(EtmemError, match="cannot write") as caught:
        pack(raw, tmp_path / "no" / "packed.etmem")
    assert caught.value.hint


def test_without_room_the_raw_trace_stays(tmp_path: Path) -> None:
    """A limit on the size of files is a full disk that a test can have."""
    path = many(20_000).write(tmp_path / "raw.etmem")
    before = path.read_bytes()
    limit = (4096, resource.getrlimit(resource.RLIMIT_FSIZE)[1])
    script = "import sys; from pathlib import Path; from etmem.trace.pack import pack; pack(*map(Path, sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", script, str(path), str(path)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "EtmemError" in done.stderr
    assert "cannot write the packed trace: File too large" in done.stderr
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(DTYPES)), st.lists(st.integers(0, 2**64 - 1), max_size=40))
def test_columns_come_back(name: str, values: list[int]) -> None:
    if name == "stamp":
        values = sorted(set(values))
    if name == "kind":
        values = [1 + value % 8 for value in values]
    column = np.array(values, np.uint64).astype(DTYPES[name])
    np.testing.assert_array_equal(decode(name, encode(name, column), len(column)), column)


def test_a_scope_with_an_id_beyond_all_tables(tmp_path: Path) -> None:
    """GIVEN an id that would make tables of gigabytes WHEN it is read, raw or packed THEN that is damage."""
    b = TraceBuilder()
    b._ids["scope"] = 1 << 25
    b.scope_begin(ScopeKind.TAG, "far")
    raw = b.write(tmp_path / "raw.etmem")
    pack(raw, tmp_path / "packed.etmem")
    for path in (raw, tmp_path / "packed.etmem"):
        with pytest.raises(TraceError, match="a scope with id 33554433"):
            read(path)
