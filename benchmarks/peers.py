"""The other profilers that etmem stands beside: those that are here, and what installs the others."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from benchmarks.measuring import Row


@dataclass(frozen=True)
class Peer:
    name: str
    remedy: str
    """What installs it."""
    stacks: bool
    """It takes a call stack at every allocation."""
    slower: int = 1
    """It is given so many times less to do."""

    @property
    def installed(self) -> bool:
        name = self.name.split()[0]
        if name == "memray":
            return find_spec(name) is not None
        return shutil.which("valgrind" if name == "massif" else name) is not None

    def command(self, scratch: Path, *command: object) -> tuple[object, ...]:
        """A native command under it. memray has none: see ``python``."""
        if self.name == "heaptrack":
            return ("heaptrack", "--output", scratch / "peer.heaptrack", *command)
        return ("valgrind", "--tool=massif", f"--massif-out-file={scratch}/peer.massif", *command)

    def python(self, scratch: Path, *script: object) -> tuple[object, ...]:
        """A Python script under memray."""
        options = ("--force", "--quiet", "--output", scratch / "peer.bin", *self.name.split()[1:])
        return (sys.executable, "-m", "memray", "run", *options, *script)

    def absent(self) -> Row:
        return Row("", "", f"{self.name}: not installed ({self.remedy})")


MEMRAY = Peer("memray", "pip install memray", stacks=False)
MEMRAY_NATIVE = Peer("memray --native", "pip install memray", stacks=True)
HEAPTRACK = Peer("heaptrack", "apt install heaptrack", stacks=True)
MASSIF = Peer("massif", "apt install valgrind", stacks=True, slower=20)
PEERS = (MEMRAY, MEMRAY_NATIVE, HEAPTRACK, MASSIF)
