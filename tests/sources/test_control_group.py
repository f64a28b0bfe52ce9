"""The control group of a process, on made-up /proc and cgroup trees in the spelling of the kernel."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from etmem.model.errors import UsageError
from etmem.model.words import Unit
from etmem.sources import Reading, names, source
from etmem.sources.control_group import found_in

STAT = "anon 4096\nfile 8192\nkernel 100\n"
STAT_1 = "cache 1\nrss 2\ntotal_cache 8192\ntotal_rss 4096\n"
PRESSURE = "some avg10=0.00 avg60=0.00 avg300=0.00 total={some}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total={full}\n"


class Machine:
    """A /proc with one process, and one control group hierarchy."""

    def __init__(self, folder: Path, cgroup: str, mount: str) -> None:
        self.proc, self.group = folder / "proc", folder / "cgroup"
        (self.proc / "7").mkdir(parents=True)
        (self.proc / "7/cgroup").write_text(cgroup)
        (self.proc / "7/mountinfo").write_text(f"22 27 0:21 / /proc rw - proc proc rw\n{mount.format(self.group)}\n")

    def write(self, place: str, **files: object) -> None:
        folder = self.group / place
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name.replace("__", ".")).write_text(f"{text}\n" if isinstance(text, int) else str(text))

    def readings(self) -> list[Reading]:
        return list(found_in(self.proc, 7).read())


UNIFIED = "30 27 0:30 / {0} rw,nosuid - cgroup2 cgroup2 rw"
BYTES = [Reading("memory.current", 12345), Reading("memory.peak", 23456)]
SPLIT = [Reading("memory.anon", 4096), Reading("memory.file", 8192)]


def test_version_2_with_pressure_of_its_own(tmp_path):
    """GIVEN a unified hierarchy THEN the group's own figures and stalls are read, in the spelling of the kernel."""
    machine = Machine(tmp_path, "0::/user.slice/run-3.scope\n", UNIFIED)
    machine.write("user.slice/run-3.scope", memory__current=12345, memory__peak=23456, memory__stat=STAT)
    machine.write("user.slice/run-3.scope", memory__pressure=PRESSURE.format(some=70, full=5), cgroup__procs="7\n8\n")
    stalls = [Reading("pressure.some_us", 70, Unit.NUMBER), Reading("pressure.full_us", 5, Unit.NUMBER)]
    assert machine.readings() == [*BYTES, *SPLIT, *stalls]
    what = found_in(machine.proc, 7).what
    assert "version 2: all 2 processes in it together" in what
    assert "pressure is the group's" in what


def test_version_2_before_memory_peak_and_with_the_system_s_pressure(tmp_path):
    machine = Machine(tmp_path, "0::/\n", UNIFIED)
    machine.write("", memory__current=12345, memory__stat=STAT)
    (machine.proc / "pressure").mkdir()
    (machine.proc / "pressure/memory").write_text(PRESSURE.format(some=9, full=1))
    assert [reading.name for reading in machine.readings()] == [
        "memory.current", "memory.anon", "memory.file", "pressure.some_us", "pressure.full_us",
    ]  # fmt: skip
    assert "pressure is the whole system's" in found_in(machine.proc, 7).what


def test_a_container_s_mount_begins_at_its_own_group(tmp_path):
    machine = Machine(tmp_path, "0::/docker/abc/inner\n", "30 27 0:30 /docker/abc {} rw - cgroup2 cgroup2 rw")
    machine.write("inner", memory__current=12345, memory__peak=23456, memory__stat=STAT)
    assert machine.readings() == [*BYTES, *SPLIT]


def test_version_1_has_the_same_names(tmp_path):
    """GIVEN version 1's memory controller beside an empty version 2 hierarchy THEN the former is read."""
    machine = Machine(
        tmp_path, "4:cpu:/x\n3:memory:/job\n0::/\n", "41 27 0:4 / {0} rw - cgroup cgroup rw,memory\n" + UNIFIED
    )
    machine.write("job", memory__usage_in_bytes=12345, memory__max_usage_in_bytes=23456, memory__stat=STAT_1)
    assert sorted(reading.name for reading in machine.readings()) == [
        "memory.anon", "memory.current", "memory.file", "memory.peak",
    ]  # fmt: skip
    assert set(machine.readings()) == {*BYTES, *SPLIT}


def test_no_group_and_no_process(tmp_path):
    machine = Machine(tmp_path, "0::/\n", UNIFIED)
    with pytest.raises(UsageError, match="no memory controller holds the process"):
        found_in(machine.proc, 7)
    with pytest.raises(UsageError, match="the source cgroup is not available"):
        found_in(machine.proc, 8)


def test_an_unknown_source_names_those_that_there_are():
    assert "cgroup" in names()
    with pytest.raises(UsageError) as caught:
        source("nothing", os.getpid())
    assert "cgroup" in caught.value.hint
