"""CPU models that a program can be run on in the emulator, and which one is meant.

XNNPACK picks its kernels by what the CPU can do, and with them the tiles that its buffers are rounded to. Only
models are here whose kernels qemu can show: it has no AVX-512, so an AVX-512 machine is measured on one.
"""

from __future__ import annotations

from dataclasses import dataclass

from etmem.capture import arch as arch_
from etmem.capture.arch import AARCH64, X86_64, Arch
from etmem.model.errors import UsageError

HOST = "host"


@dataclass(frozen=True)
class Cpu:
    name: str
    arch: Arch
    isa: str
    """As ``Target.isa``: what XNNPACK's tiles follow."""
    emulated: str
    """qemu's name of the model."""
    since: tuple[int, int]
    """The first qemu that has it with all that XNNPACK asks for."""
    about: str
    part: str = ""
    """ARM's part number, by which cpuinfo knows the model; empty for x86."""
    implementer: str = "41"


_NEW = (7, 2)

CPUS = (
    Cpu("cortex-a53", AARCH64, "neon", "cortex-a53", (2, 4), "small cores, entry-level phones, Raspberry Pi 3", "d03"),
    Cpu("cortex-a72", AARCH64, "neon", "cortex-a72", (4, 0), "large cores of 2016 to 2018, Raspberry Pi 4", "d08"),
    Cpu("cortex-a76", AARCH64, "neon", "cortex-a76", (7, 0), "large cores since 2019 (fp16, dot product)", "d0b"),
    Cpu("max", AARCH64, "sme", "max", _NEW, "SVE and SME, as the newest Armv9 chips have", "051", "00"),
    Cpu("haswell", X86_64, "avx2", "Haswell", _NEW, "AVX2 and FMA: desks, CI runners without AVX-512"),
    Cpu("nehalem", X86_64, "sse4.1", "Nehalem", (2, 4), "SSE4 without AVX: Android's x86 images"),
)
DEFAULTS = {AARCH64: "cortex-a76", X86_64: "haswell"}


def named(name: str) -> Cpu:
    """The model of this name. Raises ``UsageError``."""
    found = next((cpu for cpu in CPUS if cpu.name == name.lower()), None)
    if found is None:
        known = ", ".join(cpu.name for cpu in CPUS)
        raise UsageError(f"no CPU model {name!r}", f"There are {known} and host; --cpu list says what each stands for.")
    return found


def choose(arch: str | None, cpu: str | None) -> Cpu | None:
    """The model that ``--arch`` and ``--cpu`` name; None for this machine itself. Raises ``UsageError``."""
    wanted = arch_.named(arch) if arch else None
    if cpu == HOST:
        if wanted is not None and wanted != arch_.host():
            raise UsageError(f"this machine is no {wanted.shown}", "Leave --cpu out, or name a model: --cpu list.")
        return None
    if cpu is None:
        return None if wanted is None or wanted == arch_.host() else named(DEFAULTS[wanted])
    found = named(cpu)
    if wanted is not None and found.arch != wanted:
        raise UsageError(f"{found.name} is no {wanted.shown} but {found.arch.shown}", "Leave --arch or --cpu out.")
    return found


def listing() -> str:
    """What each model stands for, as text."""
    rows = [(cpu.name, cpu.arch.shown, cpu.isa, cpu.about) for cpu in CPUS]
    rows.append((HOST, "", "", "this machine itself, not emulated"))
    defaults = set(DEFAULTS.values())
    lines = [
        f"{name + (' *' if name in defaults else ''):<14}{arch:<9}{isa:<8}{about}" for name, arch, isa, about in rows
    ]
    return "\n".join(("CPU           arch     set     stands for", *lines, "* taken where --arch names no CPU")) + "\n"
