"""``etmem profile --compare-cpus``: one program on several CPUs, in one table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from etmem.capture import cpus
from etmem.cli.console import progress, text_width, write_file, write_text
from etmem.cli.exits import FAILURE, OK, WRONG_FIGURE
from etmem.model.errors import UsageError
from etmem.model.words import Severity

if TYPE_CHECKING:
    from etmem.capture.options import ProfileOptions
    from etmem.cli.output import OutputOptions


def compare(options: ProfileOptions, names: str, shown: OutputOptions) -> int:
    """Profile for each CPU of a list separated by commas, and print the table. The traces are kept, one for each."""
    from etmem.api import from_capture
    from etmem.capture.profile import TRACE_SUFFIX, profile
    from etmem.report.cpus import OnCpu, render, to_json

    wanted = tuple(dict.fromkeys(name.strip().lower() for name in names.split(",") if name.strip()))
    if not wanted:
        raise UsageError("--compare-cpus names no CPU", "For example --compare-cpus cortex-a76,haswell,host")
    if options.arch or options.cpu:
        raise UsageError("--compare-cpus takes the place of --arch and --cpu", "Name every CPU in its list.")
    for name in wanted:
        cpus.choose(None, name)
    base = options.output or Path(options.program.stem + TRACE_SUFFIX)
    runs = []
    status = OK
    for name in wanted:
        with progress(f"profiling {options.program.name} on {name}", quiet=shown.quiet) as step:
            output = base.with_name(f"{base.stem}.{name}{base.suffix}")
            # Dry on this machine as well: only like is compared with like.
            one = replace(options, cpu=name, output=output, progress=step, dry=options.dry is not False)
            captured = profile(one)
            summary = from_capture(captured).summary
        runs.append(OnCpu(name, summary))
        if any(issue.severity is Severity.ERROR for issue in summary.issues):
            status = WRONG_FIGURE
        elif captured.exit_status != 0 and status == OK:
            status = FAILURE
    if shown.json is not None:
        write_file(to_json(runs), shown.json)
    if not shown.quiet and shown.json != "-":
        write_text(render(runs, width=text_width()))
        for run in runs:
            for issue in run.summary.issues:
                if issue.severity is Severity.ERROR:
                    write_text(f"{run.cpu}: {issue.message}\n")
    return status
