"""Instruction sets that a program can be run for, and what running it for one takes on this machine."""

from __future__ import annotations

import platform
from dataclasses import dataclass

from etmem.model.errors import UsageError


@dataclass(frozen=True)
class Arch:
    name: str
    """As ``uname -m`` says it."""
    shown: str
    """As reports and options say it."""
    emulator: str
    triple: str
    loader: str
    """The dynamic linker's file name."""
    wheel_platform: str
    """pip's name of the platform of ExecuTorch's wheel."""

    @property
    def compiler(self) -> str:
        return f"{self.triple}-g++"

    @property
    def packages(self) -> tuple[str, str]:
        """Debian's packages: a compiler with its libraries, and the emulator."""
        return f"g++-{self.triple.replace('_', '-')}", "qemu-user"


AARCH64 = Arch(
    "aarch64", "aarch64", "qemu-aarch64", "aarch64-linux-gnu", "ld-linux-aarch64.so.1", "manylinux_2_28_aarch64"
)
X86_64 = Arch("x86_64", "x86-64", "qemu-x86_64", "x86_64-linux-gnu", "ld-linux-x86-64.so.2", "manylinux_2_28_x86_64")
ALL = (AARCH64, X86_64)
_OTHER_NAMES = {"arm64": AARCH64, "amd64": X86_64, "x64": X86_64}


def named(text: str) -> Arch:
    """The instruction set of this name. Raises ``UsageError``."""
    lower = text.lower()
    for arch in ALL:
        if lower in (arch.name, arch.shown):
            return arch
    if lower in _OTHER_NAMES:
        return _OTHER_NAMES[lower]
    raise UsageError(f"no instruction set {text!r}", f"--arch takes {' or '.join(arch.shown for arch in ALL)}.")


def host() -> Arch | None:
    """This machine's; None where it is none of these."""
    return next((arch for arch in ALL if arch.name == platform.machine()), None)


def shown(name: str) -> str:
    """An instruction set, given as ``uname -m`` says it, as reports say it."""
    return next((arch.shown for arch in ALL if arch.name == name), name)
