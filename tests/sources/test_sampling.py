"""Asking sources: what is kept, and what becomes of one that fails."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import pytest

from etmem.capture.trailer import Sample, append_notes
from etmem.model.errors import InputError
from etmem.model.words import Unit
from etmem.sources import MemorySource, Reading, Sampler, finding
from etmem.trace.reader import read
from etmem.trace.tables import CounterUnit
from etmem.trace.writer import TraceBuilder


@dataclass
class Told:
    """A source that says what it is given, one after the other, the last one for ever."""

    values: list[int]
    name: str = "told"
    what: str = "of a test"
    threads: set[int] = field(default_factory=set)

    def read(self):
        self.threads.add(threading.get_ident())
        yield Reading("bytes", self.values.pop(0) if len(self.values) > 1 else self.values[0])


def kept(*sources, times=4):
    found = []
    sampler = Sampler(sources, lambda name, unit, value: found.append((name, unit, value)), interval_seconds=3600)
    for _ in range(times):
        sampler.ask()
    return found, sampler


def test_only_changes_are_kept():
    found, _ = kept(Told([5, 5, 7, 7]))
    assert found == [("told.bytes", Unit.BYTES, 5), ("told.bytes", Unit.BYTES, 7)]
    assert isinstance(Told([1]), MemorySource)


def test_one_that_raises_is_asked_no_more_and_the_others_are():
    class Broken(Told):
        def read(self):
            yield Reading("bytes", 1)
            raise OSError("gone")

    found, sampler = kept(Broken([1], name="broken"), Told([1, 2, 3, 4]))
    assert sampler.failures == {"broken": "OSError: gone"}
    assert [value for name, _, value in found if name == "told.bytes"] == [1, 2, 3, 4]
    assert [name for name, _, _ in found].count("broken.bytes") == 1


def test_it_asks_from_a_thread_of_its_own_until_it_is_stopped():
    asked = threading.Event()

    class Counting(Told):
        def read(self):
            yield from super().read()
            if len(self.threads) > 1:
                asked.set()

    source = Counting([1])
    sampler = Sampler([source], lambda *_: None, interval_seconds=0.001)
    sampler.start()
    assert asked.wait(timeout=60)
    sampler.stop()
    assert len(source.threads) == 2
    before = sampler.asked
    assert not sampler._thread.is_alive()
    assert sampler.asked == before


def test_samples_are_added_to_a_trace_in_as_many_chunks_as_they_need(tmp_path):
    """GIVEN more samples than a chunk holds THEN all are there, with their own times, and the notes as well."""
    path = tmp_path / "run.raw"
    builder = TraceBuilder()
    builder.alloc(0x1000, 64)
    builder.write(path)
    before = read(path)
    samples = [Sample(1000 + i, f"cgroup.{i % 3}", Unit.BYTES if i % 2 else Unit.NUMBER, i - 5) for i in range(5000)]
    append_notes(path, {"source.cgroup": "a test"}, samples)
    after = read(path)
    assert after.note("source.cgroup") == "a test"
    assert [(c.time_ns, c.name, c.value) for c in after.counters] == [(s.time_ns, s.name, s.value) for s in samples]
    assert {c.unit for c in after.counters} == {CounterUnit.BYTES, CounterUnit.NUMBER}
    assert len(after.events) == len(before.events)
    assert not after.header.truncated


@pytest.fixture
def package(tmp_path, monkeypatch):
    (tmp_path / "gpu.py").write_text(
        "class Gpu:\n"
        "    name, what = 'gpu', 'of a test'\n"
        "    def __init__(self, process): self.process = process\n"
        "    def read(self): return []\n"
        "def broken(process): raise OSError('no device')\n"
        "def nothing(process): return 3\n"
    )
    info = tmp_path / "gpu-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: gpu\nVersion: 1.0\n")
    points = "gpu = gpu:Gpu\nbroken = gpu:broken\nnothing = gpu:nothing\nabsent = gpu:absent\n"
    (info / "entry_points.txt").write_text(f"[etmem.sources]\n{points}")
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("package")
def test_sources_of_packages():
    made = finding.source("gpu", 42)
    assert (made.name, made.process) == ("gpu", 42)
    assert {"gpu", "cgroup"} <= set(finding.names())
    for name, words in (
        ("broken", "source broken: OSError: no device"),
        ("nothing", "source nothing has no name, what and read"),
        ("absent", "source absent = gpu:absent: AttributeError"),
    ):
        with pytest.raises(InputError, match=words):
            finding.source(name, 42)
