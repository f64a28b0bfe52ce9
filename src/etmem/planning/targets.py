"""Targets by name: pointer width, and the instruction set that a CPU's tiles follow from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from etmem.model.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet


@dataclass(frozen=True)
class PlanTarget:
    """What the figures belong to."""

    name: str
    isa: str
    """Empty where no backend of the target has tiles."""
    pointer_bytes: int
    cpu: str
    microcontroller: bool
    """Pools and a program that is read in place, instead of a loader and heap blocks."""


_TARGETS = {
    "armv7m": PlanTarget("armv7m", "", 4, "", True),
    "armv8m": PlanTarget("armv8m", "", 4, "", True),
    "riscv32": PlanTarget("riscv32", "", 4, "", True),
    "arm64": PlanTarget("arm64", "neon", 8, "cortex-a76", False),
    "x86-64": PlanTarget("x86-64", "avx512", 8, "avx512", False),
}
_CPUS = {
    "avx512": "avx512", "avx512skx": "avx512", "avx512amx": "avx512", "avx2": "avx2", "haswell": "avx2",
    "fma3": "fma3", "avx": "avx", "sse4.1": "sse4.1", "nehalem": "sse4.1", "sse2": "sse2", "neon": "neon",
    "cortex-a53": "neon", "cortex-a55": "neon", "cortex-a72": "neon", "cortex-a73": "neon", "cortex-a76": "neon",
    "cortex-a77": "neon", "cortex-a78": "neon", "cortex-a710": "neon", "sme": "sme", "sme2": "sme", "max": "sme",
}  # fmt: skip
_ARM_MODEL = "implementer 0x41 part 0x"
_ARM_PARTS = {
    "d03": "cortex-a53", "d05": "cortex-a55", "d08": "cortex-a72", "d09": "cortex-a73", "d0b": "cortex-a76",
    "d0d": "cortex-a77", "d41": "cortex-a78", "d47": "cortex-a710",
}  # fmt: skip
TARGET_NAMES = tuple(_TARGETS)
CPU_NAMES = tuple(_CPUS)


def plan_target(name: str | None, cpu: str | None) -> PlanTarget:
    """The target of that name, this machine for None. Raises UsageError."""
    if name is not None and name not in _TARGETS:
        raise UsageError(f"no such target: {name!r}", f"one of {', '.join(TARGET_NAMES)}")
    if cpu is not None and cpu not in _CPUS:
        raise UsageError(f"no such CPU: {cpu!r}", f"one of {', '.join(CPU_NAMES)}")
    here = _for_cpu(cpu) if cpu else _this_machine()
    found = here if name is None else _TARGETS[name]
    if cpu is None or found.microcontroller:
        return found
    return PlanTarget(found.name, _CPUS[cpu], found.pointer_bytes, cpu, False)


def _for_cpu(cpu: str) -> PlanTarget:
    return _TARGETS["arm64" if _CPUS[cpu] in ("neon", "sme") else "x86-64"]


def _this_machine() -> PlanTarget:
    import platform

    from etmem.capture.machine import POINTER_BYTES, cpu, cpu_flags

    model, isa = cpu()
    if isa == "avx512":
        model = _avx512(cpu_flags())
    elif model.startswith(_ARM_MODEL):
        model = _ARM_PARTS.get(model.removeprefix(_ARM_MODEL), model)
    arch = {"x86_64": "x86-64", "AMD64": "x86-64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return PlanTarget(arch, isa, POINTER_BYTES, model, False)


def _avx512(flags: AbstractSet[str]) -> str:
    """Which of XNNPACK's AVX-512 kernels for 8-bit numbers this machine takes."""
    if "amx_int8" in flags:
        return "avx512amx"
    return "avx512" if "avx512_vnni" in flags else "avx512skx"
