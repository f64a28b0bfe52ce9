"""Why a process left no trace, or no ExecuTorch phase in it."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from etmem.capture import elf
from etmem.model.errors import CaptureError, reason
from etmem.model.summary import Issue
from etmem.model.words import IssueCode, Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

_RUNTIME_SYMBOLS = frozenset(
    {
        "_ZN10executorch7runtime6Method7executeEv",
        "_ZN10executorch7runtime7Program4loadEPNS0_10DataLoaderENS1_12VerificationE",
    }
)
_NAMED_SYMBOLS = frozenset({"_ZNK10executorch7runtime7Program11method_metaEPKc"})
"""Of a runtime inside that is not stripped; etmem's own stand-ins in a program (etmem/wrap.hpp) are others."""
_RUNTIME_TEXT = b"Program identifier '%.4s' != expected '%.4s'"
"""What a stripped executable still holds of the runtime: a message of ``Program::load``."""


_LEAST_TRACE_BYTES = 256 * 1024
"""A header and a few chunks."""


def static_runtime(command: Sequence[str]) -> Issue | None:
    """An issue where the program of a command has ExecuTorch inside itself.

    Every word of the command is looked at: ``taskset -c 0 ./runner`` starts the third one.
    """
    for word in command:
        found = shutil.which(word)
        if found is None or not _has_runtime_inside(Path(found)):
            continue
        if _is_named(Path(found)):
            return Issue(
                IssueCode.EXECUTORCH_STATIC,
                Severity.WARNING,
                f"{Path(found).name} is linked with a static ExecuTorch: phases and delegates are told by call stack, "
                "without methods and instances, and a phase that allocates and frees nothing is not seen",
                "Build it with the target etmem::wrap (native/cmake/etmem.cmake) for exact ones.",
                {"path": found},
            )
        return Issue(
            IssueCode.EXECUTORCH_STATIC,
            Severity.ERROR,
            f"{Path(found).name} is linked with a static ExecuTorch, whose functions nothing can stand in front of",
            "Link it with the shared runtime (-DEXECUTORCH_BUILD_SHARED=ON), or keep its symbols: they tell owners.",
            {"path": found},
        )
    return None


def named_runtime(command: Sequence[str]) -> bool:
    """Whether the program of a command has ExecuTorch inside itself, with its symbols: call stacks then tell phases."""
    return any(_is_named(Path(found)) for found in map(shutil.which, command) if found is not None)


def no_trace(command: Sequence[str], status: int, folder: Path) -> CaptureError:
    """The error for a process that ended without having written a trace into ``folder``."""
    if shutil.disk_usage(folder).free < _LEAST_TRACE_BYTES:
        return CaptureError(f"no space left in {folder}", "Free some, or write the trace elsewhere with --output.")
    path = Path(shutil.which(command[0]) or command[0])
    name = path.name
    try:
        described = elf.read(path)
        mode = path.stat().st_mode
        foreign = path.stat().st_uid != os.geteuid()
    except OSError as error:
        return CaptureError(f"{command[0]} cannot be read: {reason(error)}")
    if mode & (stat.S_ISUID | stat.S_ISGID) and foreign:
        return CaptureError(
            f"{name} is set-user-ID: the system refuses to preload a library into it",
            "Run it as its owner, or profile a copy of it without that bit.",
        )
    if described is not None and described.interpreter is None:
        return CaptureError(
            f"{name} is statically linked: no library can be preloaded into it",
            "Link it dynamically, or mark its memory with etmem/etmem.h.",
        )
    if described is not None and described.machine != os.uname().machine:
        return CaptureError(
            f"{name} is for {described.machine}, the agent for {os.uname().machine}",
            "Profile a program built for this machine.",
        )
    ended = f"was ended by signal {-status}" if status < 0 else f"exited with {status}"
    return CaptureError(
        f"{name} {ended} and left no trace",
        "It may have dropped LD_PRELOAD from its environment. `etmem doctor` checks this machine.",
    )


def _is_named(path: Path) -> bool:
    try:
        described = elf.read(path)
        is_program = described is not None and described.interpreter is not None
        return is_program and elf.defines(path, _NAMED_SYMBOLS)
    except OSError:
        return False


def _has_runtime_inside(path: Path) -> bool:
    try:
        described = elf.read(path)
        if described is None or (described.interpreter is None and described.dynamic):
            return False  # A script, or a library.
        return elf.defines(path, _RUNTIME_SYMBOLS) or elf.contains(path, _RUNTIME_TEXT)
    except OSError:
        return False
