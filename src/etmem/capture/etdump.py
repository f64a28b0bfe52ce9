"""An ETDump of the program that was recorded, from a second run of the same plan without etmem.

A tracer makes delegates allocate for their timings (XNNPACK in every execute), and recording takes time: so the
memory is that of a run without a tracer, and the times are those of a run without etmem.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from etmem.capture import plan
from etmem.model.errors import CaptureError, UsageError, reason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from etmem.capture.job import Job
    from etmem.capture.options import ProfileOptions

LOG_LINES = 3


def check(options: ProfileOptions, *, emulated: bool) -> None:
    """Raises UsageError where no ETDump can be had, before anything runs."""
    if options.etdump is None:
        if options.etdump_allocations:
            raise UsageError("--etdump-allocations needs --etdump FILE")
        return
    if options.dry or emulated:
        raise UsageError("--etdump is for runs that compute: a dry or emulated one has no times", "Leave --dry out.")
    if options.cycles > 1:
        raise UsageError("--etdump and --cycles are both given", "An ETDump is of one load.")
    if not options.etdump.absolute().parent.is_dir():
        raise UsageError(f"{options.etdump.absolute().parent} is not a folder", "Name another place with --etdump.")


def record(options: ProfileOptions, job: Job, runner: Sequence[str], scratch: Path) -> None:
    """Writes ``options.etdump``, without memory yet: ``runner`` runs the job's plan once more.

    Raises CaptureError where the second run fails.
    """
    assert options.etdump is not None
    options.progress(f"running {options.program.name} once more for its ETDump")
    text, written = scratch / "etdump-plan", scratch / "etdump"
    text.write_bytes(os.fsencode(plan.encode(replace(job.plan, etdump=written))))
    done = subprocess.run(
        [*runner, str(text)],
        env={**os.environ, **job.variables(os.environ)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
    )
    if done.returncode != 0 or not written.is_file():
        lines = done.stderr.decode(errors="replace").splitlines()[-LOG_LINES:]
        raise CaptureError(
            f"no ETDump could be written: the runner ended with {done.returncode}: {' / '.join(lines)}",
            "An ExecuTorch without an event tracer writes none; the trace was written all the same.",
        )
    try:
        shutil.copyfile(written, options.etdump)
    except OSError as error:
        raise CaptureError(
            f"cannot write {options.etdump}: {reason(error)}", "The trace was written all the same."
        ) from None
