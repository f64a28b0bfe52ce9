"""What a plan is made for."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from etmem.model.errors import UsageError

_UNITS = {"": 1, "B": 1, "KB": 1000, "MB": 1000**2, "GB": 1000**3, "KIB": 1024, "MIB": 1024**2, "GIB": 1024**3}
LOADERS = ("mmap", "mlock", "file", "buffer")
PRESETS: Mapping[str, Mapping[str, str]] = {
    "wheel": {"event_tracer": "true", "workspace_sharing_mode": "2", "weight_cache_enabled": "false"},
    "android": {"event_tracer": "false", "workspace_sharing_mode": "2", "weight_cache_enabled": "true"},
    "apple": {"event_tracer": "false", "workspace_sharing_mode": "2", "weight_cache_enabled": "true"},
}
"""Backend defaults of ExecuTorch's builds, as the backend options spell them."""


@dataclass(frozen=True)
class Region:
    """A memory of the device, and what lies in it: ``sram=512KiB:planned.1,method,temp``."""

    name: str
    bytes: int
    holds: tuple[str, ...]
    """``planned``, ``planned.<mem_id>``, ``method``, ``temp``, ``program``, ``delegates``, ``inputs``."""


@dataclass(frozen=True)
class PlanOptions:
    data: tuple[Path, ...] = ()
    """``.ptd`` files."""
    methods: tuple[str, ...] = ()
    """Empty: every method that is not constant."""
    shapes: Mapping[tuple[str | None, int], tuple[int, ...]] = field(default_factory=dict)
    """(method or None for all, input) -> shape."""
    target: str | None = None
    """A name of ``etmem.planning.targets``; None: this machine."""
    cpu: str | None = None
    preset: str = "wheel"
    loader: str = "mmap"
    threads: int | None = None
    describe: tuple[Path, ...] = ()
    """Descriptions of delegates, over those that are known."""
    backend_options: Mapping[str, str] = field(default_factory=dict)
    """Over the preset's."""
    budget_bytes: int | None = None
    """Of private bytes."""
    budget_rss_bytes: int | None = None
    regions: tuple[Region, ...] = ()

    def __post_init__(self) -> None:
        if self.loader not in LOADERS:
            raise UsageError(f"no such loader: {self.loader!r}", f"one of {', '.join(LOADERS)}")
        if self.preset not in PRESETS:
            raise UsageError(f"no such preset: {self.preset!r}", f"one of {', '.join(PRESETS)}")

    @property
    def options(self) -> dict[str, str]:
        """The preset's options with those given over them."""
        return {**PRESETS[self.preset], **self.backend_options}

    @property
    def thread_count(self) -> int:
        return self.threads or os.cpu_count() or 1


def parse_bytes(text: str) -> int:
    """``512MiB``, ``1.5 GB``, ``65536``. Raises UsageError."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text)
    unit = _UNITS.get(match[2].upper()) if match else None
    if match is None or unit is None:
        raise UsageError(f"not a size: {text!r}", "write a number with B, KB, KiB, MB, MiB, GB or GiB, such as 512MiB")
    return int(float(match[1]) * unit)


def parse_region(text: str) -> Region:
    """``NAME=SIZE:WHAT,WHAT``. Raises UsageError."""
    name, equals, rest = text.partition("=")
    size, colon, holds = rest.partition(":")
    parts = tuple(part for part in holds.split(",") if part)
    known = ("planned", "method", "temp", "program", "delegates", "inputs")
    if not (name and equals and colon and parts) or any(
        part not in known and not re.fullmatch(r"planned\.\d+", part) for part in parts
    ):
        raise UsageError(
            f"not a region: {text!r}",
            f"write NAME=SIZE:WHAT,..., for example sram=512KiB:planned.1,method; WHAT is one of {', '.join(known)}",
        )
    return Region(name, parse_bytes(size), parts)
