"""Starting a process under the agent, and waiting for its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING

from etmem.capture.metadata import NOTES_VARIABLE, notes_variable
from etmem.model.errors import CaptureError, reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path
    from types import FrameType

    from etmem.capture.emulator import Emulator

PROGRESS = "{progress}"
"""In a command: the number of the descriptor that progress lines are expected on."""

_PRELOAD = "LD_PRELOAD"


@dataclass(frozen=True)
class Launch:
    """One process to record."""

    command: tuple[str, ...]
    agent: Path
    trace: Path
    notes: Mapping[str, str] = field(default_factory=dict)
    hooks: Path | None = None
    """Built beforehand; None: the agent has them built when it meets an ExecuTorch."""
    stacks: tuple[str, ...] = ()
    """Backends whose allocations record call stacks."""
    dry: bool = False
    children: bool = False
    keep_rusage: bool = False
    all_stacks: bool = False
    every_stack: bool = False
    """Of allocations and frees, wherever they are: what tells phases and delegates of a static runtime."""
    log: Path | None = None
    """Where stdout and stderr go; None: where the caller's go."""
    executorch: Path | None = None
    """Prefix that hooks are built against."""
    extra: Mapping[str, str] = field(default_factory=dict)
    """Variables for the process besides the caller's own."""
    preload: Path | None = None
    """A library to preload behind the agent."""
    emulator: Emulator | None = None
    """Runs the command where it is another processor's."""


def environment(launch: Launch, variables: Mapping[str, str]) -> dict[str, str]:
    """The environment of the process: the caller's, and what the agent reads."""
    own = {
        "ETMEM_TRACE": str(launch.trace.absolute()),
        # The process that this one starts records, through any number of execs; its children have other parents.
        "ETMEM_PARENT": str(os.getpid()),
        "ETMEM_STACKS": ",".join(launch.stacks),
        NOTES_VARIABLE: notes_variable(launch.notes),
    }
    optional = {
        "ETMEM_HOOKS_PATH": str(launch.hooks) if launch.hooks else "",
        "ETMEM_EXECUTORCH": str(launch.executorch.absolute()) if launch.executorch else "",
        "ETMEM_DRY": "1" if launch.dry else "",
        "ETMEM_CHILDREN": "1" if launch.children else "",
        "ETMEM_KEEP_RUSAGE": "1" if launch.keep_rusage else "",
        "ETMEM_ALL_STACKS": "1" if launch.all_stacks else "",
        "ETMEM_EVERY_STACK": "1" if launch.every_stack else "",
        "ETMEM_EMULATED": "1" if launch.emulator else "",
        # It would build for this machine.
        "ETMEM_BUILDER": "" if launch.emulator else sys.executable,
        # The agent is the emulated processor's: it must not get into the emulator.
        _PRELOAD: "" if launch.emulator else _preload(launch, variables),
    }
    inherited = {name: value for name, value in variables.items() if name not in optional}
    return {**inherited, **launch.extra, **own, **{name: value for name, value in optional.items() if value}}


def _preload(launch: Launch, variables: Mapping[str, str]) -> str:
    return ":".join(filter(None, (_own_preload(launch), variables.get(_PRELOAD))))


def _own_preload(launch: Launch) -> str:
    return ":".join(str(path) for path in (launch.agent, launch.preload) if path is not None)


def _command(launch: Launch) -> tuple[str, ...]:
    if launch.emulator is None:
        return launch.command
    same = launch.emulator.libraries is None
    return launch.emulator.command(launch.command, _preload(launch, os.environ) if same else _own_preload(launch))


def run(
    launch: Launch,
    on_progress: Callable[[str], None] | None = None,
    meanwhile: Callable[[int], None] | None = None,
) -> int:
    """Run the process to its end. Its exit code, or minus the signal that ended it.

    ``on_progress`` gets each line that the process writes to the descriptor in place of ``PROGRESS``, on
    another thread. ``meanwhile`` gets the id of the process once it runs, before it is waited for. SIGINT and SIGTERM
    go to the process, which decides what they mean; its trace is kept. Raises ``CaptureError`` where it
    cannot be started.
    """
    reader, writer = os.pipe() if on_progress else (-1, -1)
    command = [str(writer) if part == PROGRESS else part for part in _command(launch)]
    try:
        with _forwarding() as forward, _log(launch.log) as log:
            process = subprocess.Popen(
                command,
                env=environment(launch, os.environ),
                stdout=log,
                stderr=log,
                pass_fds=(writer,) if on_progress else (),
            )
            forward.to(process)
            if meanwhile is not None:
                meanwhile(process.pid)
            if on_progress is None:
                return process.wait()
            os.close(writer)
            writer = -1
            lines = threading.Thread(target=_read, args=(os.fdopen(reader), on_progress), daemon=True)
            reader = -1
            lines.start()
            status = process.wait()
            # A descendant that still holds the descriptor must not keep the report waiting.
            lines.join(timeout=1)
            return status
    except OSError as error:
        raise _cannot_start(launch.command[0], error) from error
    finally:
        for descriptor in (reader, writer):
            if descriptor >= 0:
                os.close(descriptor)


def _read(lines: IO[str], on_progress: Callable[[str], None]) -> None:
    with lines:
        for line in lines:
            on_progress(line.rstrip("\n"))


def _cannot_start(command: str, error: OSError) -> CaptureError:
    if isinstance(error, PermissionError):
        return CaptureError(f"{command} is not executable", f"chmod +x {command}, or name its interpreter before it.")
    if isinstance(error, FileNotFoundError):
        return CaptureError(f"{command} was not found", "Give a path, or a command that is in PATH.")
    return CaptureError(f"{command} cannot be started: {reason(error)}")


@contextmanager
def _log(path: Path | None) -> Iterator[IO[bytes] | None]:
    if path is None:
        yield None
        return
    try:
        file = path.open("wb")
    except OSError as error:
        raise CaptureError(
            f"cannot write {path}: {reason(error)}", "Name another place for the trace with --output."
        ) from error
    with file:
        yield file


class _Forward:
    """Hands signals on to the process, once there is one."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []

    def to(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        for number in self._early:
            process.send_signal(number)

    def handle(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGINT and _in_foreground():
            return  # The terminal has sent it to the process as well: twice would end one that handles the first.
        if self._process is None:
            self._early.append(number)
        else:
            self._process.send_signal(number)


def _in_foreground() -> bool:
    """Whether a terminal's Ctrl-C reaches this process group, and so the process itself."""
    try:
        with open("/dev/tty", "rb", buffering=0) as terminal:  # noqa: PTH123 -- a device, not a file
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False


@contextmanager
def _forwarding() -> Iterator[_Forward]:
    forward = _Forward()
    if threading.current_thread() is not threading.main_thread():
        yield forward  # Only the main thread may set handlers: signals then end the caller as they always do.
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, forward.handle) for number in numbers}
    try:
        yield forward
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
