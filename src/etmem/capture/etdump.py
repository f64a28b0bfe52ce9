"""An ETDump of the program that was recorded, from a second run of the same plan without etmem.

A tracer makes delegates allocate for their timings (XNNPACK in every execute), and recording takes time: so the
memory is that of a run without a tracer, and the times are those of a run without etmem.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from etmem.capture import build, plan
from etmem.capture.options import Runtime
from etmem.model.errors import CaptureError, UsageError

if TYPE_CHECKING:
    from etmem.capture.executorch import ExecuTorch
    from etmem.capture.job import Job
    from etmem.capture.options import ProfileOptions

LOG_LINES = 3


def check(options: ProfileOptions, runtime: Runtime, *, emulated: bool) -> None:
    """Raises UsageError where no ETDump can be had, before anything runs."""
    if options.etdump is None:
        if options.etdump_allocations:
            raise UsageError("--etdump-allocations needs --etdump FILE")
        return
    if options.dry or emulated:
        raise UsageError("--etdump is for runs that compute: a dry or emulated one has no times", "Leave --dry out.")
    if options.cycles > 1:
        raise UsageError("--etdump and --cycles are both given", "An ETDump is of one load.")
    if runtime is Runtime.PYTHON:
        raise UsageError(
            "--etdump needs the native runtime, and this program or option needs the Python one",
            "In Python, write the ETDump yourself under etmem run, and open both with etmem.devtools.MemoryInspector.",
        )
    if not options.etdump.absolute().parent.is_dir():
        raise UsageError(f"{options.etdump.absolute().parent} is not a folder", "Name another place with --etdump.")


def record(options: ProfileOptions, job: Job, found: ExecuTorch, scratch: Path) -> None:
    """Writes ``options.etdump``, without memory yet. Raises CaptureError where the second run fails."""
    assert options.etdump is not None
    options.progress(f"running {options.program.name} once more for its ETDump")
    text = scratch / "etdump-plan"
    text.write_bytes(os.fsencode(plan.encode(replace(job.plan, etdump=options.etdump))))
    runner = build.runner(found, options.progress)
    done = subprocess.run(
        [str(runner), str(text)],
        env={**os.environ, **job.variables(os.environ)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
    )
    if done.returncode != 0 or not options.etdump.is_file():
        lines = done.stderr.decode(errors="replace").splitlines()[-LOG_LINES:]
        raise CaptureError(
            f"no ETDump could be written: the runner ended with {done.returncode}: {' / '.join(lines)}",
            "An ExecuTorch without libexecutorch_etdump has none; the trace was written all the same.",
        )
