"""``etmem profile --compare-cpus`` and several presets: one program on several targets, in one table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from etmem.capture import cpus
from etmem.capture.options import Preset
from etmem.cli.console import progress, text_width, write_file, write_text
from etmem.cli.exits import FAILURE, OK, WRONG_FIGURE
from etmem.cli.output import of_one_run
from etmem.model.errors import UsageError
from etmem.model.words import Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from etmem.capture.options import ProfileOptions
    from etmem.cli.output import OutputOptions


@dataclass(frozen=True)
class _Column:
    cpu: str | None
    """None: the one that the options name."""
    preset: Preset
    labels: tuple[str, ...]
    """What tells it from the others; also in its trace's name."""


def presets(text: str) -> tuple[Preset, ...]:
    """Those of a list separated by commas. Raises UsageError."""
    names = _names(text)
    known = [preset.value for preset in Preset]
    for name in names or (text,):
        if name not in known:
            raise UsageError(f"no preset {name!r}", f"There are {', '.join(known)}; several are compared.")
    return tuple(Preset(name) for name in names)


def compare(options: ProfileOptions, names: str | None, chosen: Sequence[Preset], shown: OutputOptions) -> int:
    """Profile for each CPU of a list separated by commas (None: the options' own), with each preset, and print the
    table. The traces are kept, one for each."""
    from etmem.api import from_capture
    from etmem.capture.profile import TRACE_SUFFIX, profile
    from etmem.report.targets import OnTarget, render, to_json

    _check(options, names, shown)
    base = options.output or Path(options.program.stem + TRACE_SUFFIX)
    runs = []
    status = OK
    for column in _columns(_cpus(names), chosen):
        label = ".".join(column.labels)
        with progress(f"profiling {options.program.name} for {', '.join(column.labels)}", quiet=shown.quiet) as step:
            one = replace(
                options,
                cpu=column.cpu or options.cpu,
                preset=column.preset,
                output=base.with_name(f"{base.stem}.{label}{base.suffix}"),
                progress=step,
                # Dry on this machine as well: only like is compared with like.
                dry=options.dry if names is None else options.dry is not False,
            )
            captured = profile(one)
            summary = from_capture(captured).summary
        runs.append(OnTarget(column.labels, summary))
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
                    write_text(f"{', '.join(run.labels)}: {issue.message}\n")
    return status


def _check(options: ProfileOptions, names: str | None, shown: OutputOptions) -> None:
    if names is not None and (options.arch or options.cpu):
        raise UsageError("--compare-cpus takes the place of --arch and --cpu", "Name every CPU in its list.")
    instead = "--preset" if names is None else "--compare-cpus"
    of_one_run(shown, instead)
    if options.etdump is not None or options.cycles > 1:
        raise UsageError(f"--etdump and --cycles are of one run, and {instead} asks for several")


def _cpus(names: str | None) -> tuple[str | None, ...]:
    if names is None:
        return (None,)
    wanted = _names(names)
    if not wanted:
        raise UsageError("--compare-cpus names no CPU", "For example --compare-cpus cortex-a76,haswell,host")
    for name in wanted:
        cpus.choose(None, name)
    return wanted


def _names(text: str) -> tuple[str, ...]:
    """Each once, in the order of the list."""
    return tuple(dict.fromkeys(name.strip().lower() for name in text.split(",") if name.strip()))


def _columns(wanted: Sequence[str | None], chosen: Sequence[Preset]) -> list[_Column]:
    several = len(chosen) > 1
    return [
        _Column(cpu, preset, (*([cpu] if cpu else []), *([preset.value] if several else [])))
        for cpu in wanted
        for preset in chosen
    ]
