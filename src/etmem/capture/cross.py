"""What it takes to run a program for another CPU: its ExecuTorch, a compiler and libraries for it, and qemu.

Each is looked for on this machine, then in the cache; where it is in neither it is fetched into the cache.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from etmem.capture import arch as arch_
from etmem.capture import build, elf, emulator, executorch, packages, wheel
from etmem.capture.emulator import Emulator
from etmem.capture.options import Progress, silent
from etmem.model.errors import CaptureError, UsageError

if TYPE_CHECKING:
    from etmem.capture.arch import Arch
    from etmem.capture.cpus import Cpu
    from etmem.capture.executorch import ExecuTorch


@dataclass(frozen=True)
class Cross:
    """Ready to build and run."""

    emulator: Emulator
    executorch: ExecuTorch
    toolchain: build.Toolchain | None
    """None where this machine's own compiler and libraries do."""


def prepare(cpu: Cpu, prefix: Path | None = None, progress: Progress = silent) -> Cross:
    """Everything for one CPU model. Raises ``CaptureError`` for what is missing and cannot be fetched, ``UsageError``
    for an ExecuTorch of the wrong instruction set."""
    found = executorch.find(prefix)
    cache = build.cache()
    foreign = cpu.arch != arch_.host()
    toolchain = _toolchain(cpu.arch, progress) if foreign else None
    program = _emulator(cpu.arch, progress)
    emulator.check_version(program, cpu)
    if prefix is not None:
        _check_arch(found, cpu.arch)
    elif foreign:
        found = wheel.unpacked(found.version, cpu.arch, cache, progress)
    libraries = toolchain.libraries if toolchain else None
    return Cross(Emulator(program, cpu, emulator.root(cpu, cache), libraries), found, toolchain)


def find_emulator(arch: Arch) -> Path | None:
    """qemu's user mode, on this machine or in the cache."""
    installed = shutil.which(arch.emulator) or shutil.which(f"{arch.emulator}-static")
    if installed:
        return Path(installed)
    return _wrapper(arch.emulator)


def find_toolchain(arch: Arch) -> build.Toolchain | None:
    """A C++ compiler for the instruction set with the libraries that its programs need at run time."""
    installed = shutil.which(arch.compiler)
    for compiler, usr in ((Path(installed) if installed else None, Path("/usr")), (_wrapper(arch.compiler), _usr())):
        libraries = usr / arch.triple / "lib"
        if compiler is not None and (libraries / arch.loader).exists() and (libraries / "libstdc++.so.6").exists():
            return build.Toolchain((str(compiler),), libraries, libraries / arch.loader)
    return None


def missing(arch: Arch) -> tuple[str, ...]:
    """Debian's packages that running for this instruction set still needs."""
    compiler, qemu = arch.packages
    lacks = [compiler] if arch != arch_.host() and find_toolchain(arch) is None else []
    return (*lacks, *([qemu] if find_emulator(arch) is None else []))


def _toolchain(arch: Arch, progress: Progress) -> build.Toolchain:
    found = find_toolchain(arch)
    if found is None:
        _fetch(arch, progress)
        found = find_toolchain(arch)
    if found is None:
        raise _missing(arch, f"no C++ compiler and libraries for {arch.shown}")
    return found


def _emulator(arch: Arch, progress: Progress) -> Path:
    found = find_emulator(arch)
    if found is None:
        _fetch(arch, progress)
        found = find_emulator(arch)
    if found is None:
        raise _missing(arch, f"{arch.emulator} was not found")
    return found


def _fetch(arch: Arch, progress: Progress) -> None:
    """Both packages at once: who lacks one usually lacks the other, and what is installed is not fetched again."""
    if not packages.available():
        return
    wanted = missing(arch)
    if not wanted:
        return
    packages.unpack(wanted, _root(), progress)
    for name in (arch.emulator, arch.compiler):
        _make_wrapper(name)


def _missing(arch: Arch, message: str) -> CaptureError:
    return CaptureError(message, install_hint(arch))


def install_hint(arch: Arch) -> str:
    """The one line that gets what running for this instruction set takes."""
    wanted = missing(arch)
    if shutil.which("apt-get"):
        return f"sudo apt-get install {' '.join(wanted)}"
    if shutil.which("dnf"):
        return f"sudo dnf install gcc-c++-{arch.triple} sysroot-{arch.name}-fc{{release}}-glibc qemu-user"
    return f"Install {arch.emulator} and, for another instruction set, {arch.compiler} with its libc and libstdc++."


def _check_arch(found: ExecuTorch, arch: Arch) -> None:
    assert found.runtime is not None
    described = elf.read(found.runtime)
    if described is not None and described.machine != arch.name:
        raise UsageError(
            f"{found.runtime} is for {arch_.shown(described.machine)}, not {arch.shown}",
            f"Point --executorch at a build for {arch.shown}, or leave it out: the wheel is fetched.",
        )


def _root() -> Path:
    return build.cache() / "packages-root"


def _usr() -> Path:
    return _root() / "usr"


def _wrapper(name: str) -> Path | None:
    path = _root() / "bin" / name
    return path if path.is_file() else None


def _make_wrapper(name: str) -> None:
    """An unpacked program finds the libraries that were unpacked with it."""
    program = _usr() / "bin" / name
    if not program.exists():
        return
    path = _root() / "bin" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    folders = ":".join(str(folder) for folder in (*_usr().glob("lib/*-linux-gnu"), *_root().glob("lib/*-linux-gnu")))
    scratch = path.with_name(f"{name}.{os.getpid()}")
    scratch.write_text(f'#!/bin/sh\nLD_LIBRARY_PATH="{folders}" exec "{program}" "$@"\n')
    scratch.chmod(0o755)
    scratch.replace(path)
