"""What the figures depend on that this machine decides: instruction set, CPU model, system."""

from __future__ import annotations

import os
import platform
import resource
import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from etmem.model.summary import Environment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_AVX512 = {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"}
_X86_SETS = (("avx512", _AVX512), ("avx2", {"avx2"}), ("fma3", {"fma"}), ("avx", {"avx"}), ("sse4.1", {"sse4_1"}))
_ALLOCATORS = ("jemalloc", "tcmalloc", "mimalloc")
POINTER_BYTES = struct.calcsize("P")


def cpu_fields(cpuinfo: str) -> dict[str, str]:
    """The first processor of ``/proc/cpuinfo``."""
    pairs = (line.split(":", 1) for line in cpuinfo.split("\n\n", 1)[0].splitlines() if ":" in line)
    return {key.strip(): value.strip() for key, value in pairs}


def cpu_model(fields: Mapping[str, str]) -> str:
    """The model's name; on ARM implementer and part, as the kernel gives no name."""
    if "model name" in fields:
        return " ".join(fields["model name"].split())
    if "CPU part" in fields:
        return f"implementer {fields.get('CPU implementer', '?')} part {fields['CPU part']}"
    return platform.processor() or "unknown"


def instruction_set(fields: Mapping[str, str], arch: str) -> str:
    """What XNNPACK chooses its tiles by: the widest set it has kernels for."""
    if arch in ("x86_64", "i686", "i386"):
        flags = set(fields.get("flags", "").split())
        return next((name for name, needed in _X86_SETS if needed <= flags), "sse2")
    if arch in ("aarch64", "arm64"):
        features = set(fields.get("Features", "").split())
        return "sme" if features & {"sme", "sme2"} else "neon"
    return arch


def cpu() -> tuple[str, str]:
    """(CPU model, instruction set) of this machine."""
    try:
        fields = cpu_fields(Path("/proc/cpuinfo").read_text())
    except OSError:
        fields = {}
    return cpu_model(fields), instruction_set(fields, platform.machine())


def cpu_flags() -> frozenset[str]:
    """What this machine's processor can do, as the kernel names it; empty where it does not say."""
    try:
        fields = cpu_fields(Path("/proc/cpuinfo").read_text())
    except OSError:
        return frozenset()
    return frozenset((fields.get("flags") or fields.get("Features") or "").split())


def environment(command: Sequence[str], variables: Mapping[str, str]) -> Environment:
    """Where a command is about to run; its exit status is not known yet."""
    from etmem import __version__

    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    return Environment(
        etmem=__version__,
        python=platform.python_version(),
        platform=sys.platform,
        kernel=platform.release(),
        libc=_libc(),
        allocator=_allocator(variables),
        page_bytes=os.sysconf("SC_PAGE_SIZE"),
        memlock_limit_bytes=None if limit == resource.RLIM_INFINITY else limit,
        command=tuple(command),
        exit_status=None,
    )


def _libc() -> str:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or "unknown"
    except (ValueError, OSError):
        return "unknown"


def _allocator(variables: Mapping[str, str]) -> str:
    preloaded = variables.get("LD_PRELOAD", "")
    return next((name for name in _ALLOCATORS if name in preloaded), "libc")
