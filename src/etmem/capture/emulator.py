"""Running a program on a CPU model that this machine has not, in qemu's user mode."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from etmem.model.errors import CaptureError, reason

if TYPE_CHECKING:
    from etmem.capture.cpus import Cpu

CORES = 2
"""Processors that an ARM program sees, whatever this machine has: the large cores of a common phone. XNNPACK keeps
memory per thread with SME, so figures would differ from laptop to laptop."""


@dataclass(frozen=True)
class Emulator:
    """A command that runs the commands of another processor."""

    program: Path
    cpu: Cpu
    root: Path | None
    """Files in it are seen in place of this machine's; None: this machine's own."""
    libraries: Path | None
    """Where libc and libstdc++ are found; None: where this machine's are."""

    @property
    def name(self) -> str:
        """``qemu-aarch64 7.2.22``."""
        return f"{self.cpu.arch.emulator} {'.'.join(map(str, version(self.program)))}"

    def command(self, command: tuple[str, ...], preload: str) -> tuple[str, ...]:
        """What to start. The agent must not be preloaded into qemu itself, which is this machine's."""
        variables = {"LD_PRELOAD": preload}
        if self.libraries is not None:
            variables["LD_LIBRARY_PATH"] = str(self.libraries)
        for value in variables.values():
            if "," in value:
                raise CaptureError(f"qemu takes no comma in a path: {value}", "Name another folder in ETMEM_CACHE.")
        sets = [part for name, value in variables.items() for part in ("-E", f"{name}={value}")]
        root = ("-L", str(self.root)) if self.root is not None else ()
        return (str(self.program), "-cpu", self.cpu.emulated, *root, *sets, *command)


@cache
def version(program: Path) -> tuple[int, ...]:
    """Of a qemu; (0,) where it does not say. Raises ``CaptureError`` where it does not run."""
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, timeout=20).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise CaptureError(f"{program} does not run: {reason(error)}", "Install qemu-user.") from error
    found = re.search(r"version (\d+(?:\.\d+)*)", said)
    return tuple(int(part) for part in found[1].split(".")) if found else (0,)


def check_version(program: Path, cpu: Cpu) -> None:
    """An older qemu leaves instructions out silently, and other bytes are counted. Raises ``CaptureError``."""
    found = version(program)
    if found[:2] < cpu.since:
        needed, shown = (".".join(map(str, numbers)) for numbers in (cpu.since, found))
        raise CaptureError(
            f"{cpu.name} needs qemu {needed}, {program} is {shown}",
            "Take another --cpu, or put a newer qemu-user first in PATH.",
        )


def root(cpu: Cpu, cache_folder: Path) -> Path | None:
    """Files that tell an ARM program what it runs on; it would read this machine's else. None for x86: it asks the
    processor itself.

    cpuinfo, by which XNNPACK and the thread pool choose, reads the model and the number of cores from them.
    """
    if not cpu.part:
        return None
    folder = cache_folder / f"cpu-{cpu.name}-{CORES}"
    for name, text in _files(cpu).items():
        path = folder / name
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            scratch = path.with_name(f"{path.name}.{os.getpid()}")
            scratch.write_text(text)
            scratch.replace(path)
    return folder


def _files(cpu: Cpu) -> dict[str, str]:
    features = "fp asimd aes pmull sha1 sha2 crc32"
    if cpu.since > (4, 0):  # Armv8.2 and later
        features += " atomics fphp asimdhp asimdrdm lrcpc dcpop asimddp"
    cores = [
        f"processor\t: {number}\nBogoMIPS\t: 48.00\nFeatures\t: {features}\nCPU implementer\t: 0x{cpu.implementer}\n"
        f"CPU architecture: 8\nCPU variant\t: 0x0\nCPU part\t: 0x{cpu.part}\nCPU revision\t: 1\n"
        for number in range(CORES)
    ]
    system = "sys/devices/system/cpu"
    files = {"proc/cpuinfo": "\n".join(cores)}
    files |= {f"{system}/{name}": f"0-{CORES - 1}\n" for name in ("possible", "present", "online")}
    for number in range(CORES):
        files[f"{system}/cpu{number}/regs/identification/midr_el1"] = f"0x00000000{cpu.implementer}0f{cpu.part}1\n"
    return files
