"""The control group that a process is in, and how long its tasks waited for memory (PSI).

Version 2 (kernel 4.5, every current distribution and Android) has ``memory.current``, ``memory.peak`` (5.19),
``memory.stat`` and ``memory.pressure``. Version 1's memory controller knows the first three under other names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from etmem.model.errors import UsageError, reason
from etmem.model.words import Unit
from etmem.sources.model import Reading

NAME = "cgroup"
PRESSURE = "pressure.some_us"
PRESSURE_FULL = "pressure.full_us"
_TOTAL = re.compile(r"^(some|full) .*\btotal=(\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class _Version:
    current: str
    peak: str
    stat: Mapping[str, str]
    """Fields of memory.stat, and what they are called here."""


_VERSIONS = {
    2: _Version("memory.current", "memory.peak", {"anon": "anon", "file": "file"}),
    1: _Version("memory.usage_in_bytes", "memory.max_usage_in_bytes", {"total_rss": "anon", "total_cache": "file"}),
}


@dataclass(frozen=True)
class ControlGroup:
    """``memory.current``, ``memory.peak``, ``memory.anon``, ``memory.file``, and stalls in microseconds."""

    folder: Path
    version: int
    pressure: Path | None
    """The group's own pressure file, else the whole system's."""
    what: str
    name: str = NAME

    def read(self) -> Iterator[Reading]:
        names = _VERSIONS[self.version]
        yield Reading("memory.current", int((self.folder / names.current).read_text()))
        peak = self.folder / names.peak
        if peak.is_file():
            yield Reading("memory.peak", int(peak.read_text()))
        for line in (self.folder / "memory.stat").read_text().splitlines():
            field, _, value = line.partition(" ")
            if field in names.stat:
                yield Reading(f"memory.{names.stat[field]}", int(value))
        if self.pressure is not None:
            for kind, total in _TOTAL.findall(self.pressure.read_text()):
                yield Reading(PRESSURE if kind == "some" else PRESSURE_FULL, int(total), Unit.NUMBER)


def control_group(process: int) -> ControlGroup:
    """The group of a process. Raises UsageError where no memory controller holds it."""
    return found_in(Path("/proc"), process)


def found_in(proc: Path, process: int) -> ControlGroup:
    """``proc`` is where procfs is mounted."""
    folder, version = _folder(process, proc)
    own, system = folder / "memory.pressure", proc / "pressure/memory"
    pressure = next((path for path in (own, system) if path.is_file()), None)
    whose = "the group's" if pressure == own else "the whole system's"
    stalls = f"; pressure is {whose}" if pressure else ""
    others = f"control group {folder}, version {version}: all {_members(folder)} processes in it together"
    return ControlGroup(folder, version, pressure, f"{others}{stalls}")


def _folder(process: int, proc: Path) -> tuple[Path, int]:
    try:
        groups = (proc / str(process) / "cgroup").read_text()
        mounts = (proc / str(process) / "mountinfo").read_text()
    except OSError as error:
        raise UsageError(f"the source cgroup is not available: {reason(error)}", "it needs Linux and /proc") from error
    found = []
    for line in groups.splitlines():
        _, controllers, path = line.split(":", 2)
        version = 2 if not controllers else 1
        if version == 1 and "memory" not in controllers.split(","):
            continue
        for root, mount in _mounts(mounts, version):
            folder = mount / _inside(path, root)
            if (folder / _VERSIONS[version].current).is_file():
                found.append((folder, version))
    if not found:
        raise UsageError(
            "the source cgroup is not available: no memory controller holds the process",
            "the root group has no figures of its own; a container, or systemd-run --scope, gives one",
        )
    return max(found, key=lambda place: place[1])


def _mounts(mounts: str, version: int) -> Iterator[tuple[str, Path]]:
    """(the group that is mounted, where) of the hierarchies that may have the memory controller."""
    for line in mounts.splitlines():
        place, _, kind = line.partition(" - ")
        fields, (system, _, options) = place.split(), kind.split()[:3]
        if system == ("cgroup2" if version == 2 else "cgroup") and (version == 2 or "memory" in options.split(",")):
            yield fields[3], Path(fields[4])


def _inside(path: str, root: str) -> str:
    """A group as its mount shows it: in a container the mount begins at the container's own group."""
    return path.removeprefix("" if root == "/" else root).lstrip("/")


def _members(folder: Path) -> int:
    try:
        return len((folder / "cgroup.procs").read_text().split())
    except OSError:
        return 0
