"""From a command to a finished trace: what ``profile`` and ``run`` have in common."""

from __future__ import annotations

import glob
import os
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from etmem.capture import diagnose, launch, machine
from etmem.capture.asking import Asking
from etmem.capture.launch import Launch
from etmem.capture.metadata import CAPTURE_NOTE, EXIT_STATUS_NOTE, CaptureMetadata, encode
from etmem.capture.options import Capture, Progress, silent
from etmem.delegates import stack_backends
from etmem.model.errors import CaptureError, EtmemError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from etmem.capture.emulator import Emulator
    from etmem.model.summary import Issue, Target


@dataclass(frozen=True)
class Session:
    """What is to be recorded, and what is known about it beforehand."""

    command: tuple[str, ...]
    shown_command: tuple[str, ...]
    """What the user typed, for the report."""
    target: Target
    agent: Path
    output: Path
    programs: tuple[Path, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    """Recorded besides the capture's own."""
    hooks: Path | None = None
    keep_log: bool = True
    """The process's stdout and stderr go to a file beside the trace, else where the caller's go."""
    children: bool = False
    keep_rusage: bool = False
    all_stacks: bool = False
    every_stack: bool = False
    executorch: Path | None = None
    extra: Mapping[str, str] = field(default_factory=dict)
    issues: tuple[Issue, ...] = ()
    describe: tuple[Path, ...] = ()
    preload: Path | None = None
    """A library to stand in front of the command's own, behind the agent."""
    sources: tuple[str, ...] = ()
    """Names of ``etmem.sources`` that are asked while it runs."""
    emulator: Emulator | None = None
    """Where the target's CPU is not this machine's."""
    progress: Progress = silent


@dataclass(frozen=True)
class Ended:
    """A process that has ended, its raw trace not yet finished."""

    session: Session
    status: int
    raw: Path
    log: Path | None
    metadata: CaptureMetadata
    asked: Asking
    """What the sources said."""


def start(session: Session, on_line: Callable[[str], None] | None = None) -> Ended:
    """Record the command to its end. Raises ``CaptureError`` where it cannot be started or leaves no trace."""
    raw = session.output.with_name(session.output.name + ".raw")
    log = session.output.with_suffix(".log") if session.keep_log else None
    _check_writable(session.output)
    for stale in (raw, *_children(raw)):
        stale.unlink(missing_ok=True)
    metadata = CaptureMetadata(
        target=session.target,
        environment=replace(
            machine.environment(session.shown_command, os.environ),
            emulator=session.emulator.name if session.emulator else "",
        ),
        programs=tuple(str(path) for path in session.programs),
        issues=session.issues,
    )
    asked = Asking(session.sources)

    def meanwhile(process: int) -> None:
        asked.start(process)
        if session.keep_log:
            Thread(target=_import_what_follows, daemon=True).start()

    def told(line: str) -> None:
        asked.ask()
        if on_line is not None:
            on_line(line)

    status = launch.run(
        Launch(
            command=session.command,
            agent=session.agent,
            trace=raw,
            notes={CAPTURE_NOTE: encode(metadata), **session.notes},
            hooks=session.hooks,
            stacks=stack_backends(session.describe),
            dry=session.target.dry,
            children=session.children,
            keep_rusage=session.keep_rusage,
            all_stacks=session.all_stacks,
            every_stack=session.every_stack,
            log=log,
            executorch=session.executorch,
            extra=session.extra,
            preload=session.preload,
            emulator=session.emulator,
        ),
        told if on_line is not None else None,
        meanwhile,
    )
    issues = asked.stop()
    if not raw.is_file() or raw.stat().st_size == 0:
        raw.unlink(missing_ok=True)
        raise diagnose.no_trace(session.command, status, raw.parent)
    metadata = replace(metadata, issues=(*metadata.issues, *issues))
    return Ended(session, status, raw, log, metadata, asked)


def finish(ended: Ended, issues: Sequence[Issue] = (), target: Target | None = None) -> Capture:
    """Complete the trace by how it ended, and compress it."""
    session = ended.session
    metadata = replace(
        ended.metadata,
        target=target or ended.metadata.target,
        environment=replace(ended.metadata.environment, exit_status=ended.status),
        issues=(*ended.metadata.issues, *issues),
    )
    session.progress("writing the trace")
    from etmem.capture.trailer import append_notes

    # On a full disk the trace does without: what the process was started with stands in it already.
    with suppress(OSError):
        notes = {CAPTURE_NOTE: encode(metadata), EXIT_STATUS_NOTE: str(ended.status), **ended.asked.notes}
        append_notes(ended.raw, notes, ended.asked.samples)
    keep(ended.raw, session.output)
    for child in _children(ended.raw):
        keep(child, session.output.with_name(session.output.name + child.suffix))
    unrecorded(ended.raw).unlink(missing_ok=True)
    return Capture(
        trace_path=session.output,
        log_path=ended.log,
        exit_status=ended.status,
        target=metadata.target,
        environment=metadata.environment,
        programs=session.programs,
        dry=metadata.target.dry,
        issues=metadata.issues,
        describe=session.describe,
    )


def _import_what_follows() -> None:
    """NumPy and the analysis take as long to import as a small model takes to run: do it meanwhile."""
    for module in ("etmem.capture.trailer", "etmem.trace.pack", "etmem.analysis.summarize"):
        import_module(module)


def unrecorded(raw: Path) -> Path:
    """Where the agent lists the commands of processes that it did not record."""
    return raw.with_name(raw.name + ".children")


def _children(raw: Path) -> list[Path]:
    """The raw traces of child processes: the parent's name and a process id."""
    return sorted(path for path in raw.parent.glob(glob.escape(raw.name) + ".*") if path.suffix[1:].isdecimal())


def keep(raw: Path, output: Path) -> None:
    """Compress the trace; where that fails it stays as it is, which every reader accepts too."""
    from etmem.trace.pack import pack

    try:
        pack(raw, output)
    except (EtmemError, OSError):
        raw.replace(output)
    else:
        raw.unlink(missing_ok=True)


def _check_writable(output: Path) -> None:
    if not output.parent.is_dir():
        raise CaptureError(f"{output.parent} is not a folder", "Name another place for the trace with --output.")
    if not os.access(output.parent, os.W_OK):
        raise CaptureError(f"{output.parent} is not writable", "Name another place for the trace with --output.")
    if output.is_dir():
        raise CaptureError(f"{output} is a folder", "Name a file for the trace with --output.")
