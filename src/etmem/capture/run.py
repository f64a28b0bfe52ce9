"""``etmem run -- CMD``: record any command, as it is."""

from __future__ import annotations

import platform
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from etmem.capture import build, diagnose, executorch, machine, session
from etmem.capture.dry import answers, dry_issues
from etmem.capture.profile import TRACE_SUFFIX
from etmem.capture.session import Session
from etmem.model.errors import UsageError
from etmem.model.summary import Issue, Target
from etmem.model.words import IssueCode, Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from etmem.capture.options import Capture, RunOptions
    from etmem.capture.session import Ended

_MOST_CHILDREN = 5


def run(command: Sequence[str], options: RunOptions) -> Capture:
    """Run the command under the agent, its input and output untouched, and keep its trace.

    Raises ``UsageError`` without a command, ``CaptureError`` where it cannot be started or recorded.
    """
    if not command:
        raise UsageError("no command is given", "etmem run -- python script.py")
    ended = session.start(_session(tuple(command), options))
    from etmem.capture.seen import seen

    found = seen(ended.raw)
    issues: tuple[Issue, ...] = ()
    if not found.phases:
        issues = (_no_phase(tuple(command), ended),)
    elif options.dry:
        issues = dry_issues(found.backends, found.operators, options.describe)
    target = replace(ended.metadata.target, executorch=_version(found.library))
    return session.finish(ended, issues, target)


def _session(command: tuple[str, ...], options: RunOptions) -> Session:
    name = Path(command[0]).name
    return Session(
        command=command,
        shown_command=command,
        target=_target(options),
        agent=build.agent(options.progress),
        output=options.output or Path(name + TRACE_SUFFIX),
        keep_log=False,
        children=options.children,
        keep_rusage=options.keep_rusage,
        all_stacks=options.all_stacks,
        every_stack=diagnose.named_runtime(command),
        describe=options.describe,
        sources=options.sources,
        preload=answers(options.describe, options.progress) if options.dry else None,
        executorch=options.executorch,
        progress=options.progress,
    )


def _target(options: RunOptions) -> Target:
    cpu, isa = machine.cpu()
    return Target(
        arch=platform.machine(),
        cpu=cpu,
        isa=isa,
        pointer_bytes=machine.POINTER_BYTES,
        executorch=executorch.UNKNOWN_VERSION,
        runtime="command",
        loader="",
        iterations=0,
        dry=options.dry,
        preset="",
        backend_options=(),
        threads=None,
        inputs=(),
    )


def _version(library: str | None) -> str:
    """The version of the installation that the process's runtime library belongs to."""
    return executorch.of_library(Path(library)).version if library else executorch.UNKNOWN_VERSION


def _no_phase(command: tuple[str, ...], ended: Ended) -> Issue:
    """Why the trace has no ExecuTorch in it."""
    static = diagnose.static_runtime(command)
    if static is not None:
        return static
    children = _children(ended.raw)
    names = "; ".join(children[:_MOST_CHILDREN]) + ("; ..." if len(children) > _MOST_CHILDREN else "")
    hint = f"It started other processes, which --children records: {names}" if children else "Does it load a program?"
    return Issue(
        IssueCode.NO_EXECUTORCH,
        Severity.ERROR,
        f"{Path(command[0]).name} called no function of ExecuTorch",
        hint,
        {"children": list(children)},
    )


def _children(raw: Path) -> tuple[str, ...]:
    """Commands of the processes that ran under the command and were not recorded, as the agent lists them."""
    try:
        text = session.unrecorded(raw).read_text(errors="replace")
    except OSError:
        return ()
    return tuple(dict.fromkeys(line.partition(" ")[2].strip() for line in text.splitlines()))
