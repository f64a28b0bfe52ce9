"""``etmem run -- CMD``."""

from __future__ import annotations

from pathlib import Path

import click

from etmem.capture.options import RunOptions
from etmem.cli.console import progress
from etmem.cli.exports import export_options, wanted
from etmem.cli.output import OutputOptions, output_options, present
from etmem.cli.parameters import (
    describe_option,
    dry_option,
    executorch_option,
    keep_rusage_option,
    source_option,
    stacks_option,
    trace_option,
    verbose_option,
)


@click.command(name="run", context_settings={"allow_interspersed_args": False})
@click.argument("cmd", metavar="-- CMD ...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--children", is_flag=True, help="Record child processes too, each into its own trace.")
@dry_option
@describe_option
@source_option
@executorch_option
@trace_option
@keep_rusage_option
@stacks_option
@output_options
@export_options("html")
@verbose_option
def command(
    cmd: tuple[str, ...],
    json: str | None,
    full: bool,
    exact: bool,
    quiet: bool,
    verbose: bool,
    bundle: Path | None,
    redact: bool,
    children: bool,
    dry: bool,
    describe: tuple[Path, ...],
    sources: tuple[str, ...],
    executorch: Path | None,
    output: Path | None,
    keep_rusage: bool,
    all_stacks: bool,
) -> int:
    """Run any command that uses ExecuTorch, Python or native, and report as profile does.

    The command's own output stays where it is; the report follows it.

    \b
    Example:  etmem run -- python script.py
              etmem run -o app.etmem --children -- ./app model.pte
    """
    from etmem.api import from_capture
    from etmem.capture.run import run

    options = RunOptions(
        output=output,
        children=children,
        dry=dry,
        describe=describe,
        sources=sources,
        executorch=executorch,
        keep_rusage=keep_rusage,
        all_stacks=all_stacks,
    )
    # No progress line while the command runs: the terminal is the command's.
    captured = run(cmd, options)
    with progress("reading the trace", quiet=quiet):
        profile = from_capture(captured, keep=bool(wanted()))
    return present(
        profile, OutputOptions(json, full, exact, quiet, verbose, bundle, redact), exit_status=captured.exit_status
    )
