"""What every verb that ends in a summary has in common: its output options, and presenting a profile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from etmem.api import Profile
from etmem.cli.console import text_width, write_error, write_file, write_report
from etmem.cli.exits import FAILURE, OK, WRONG_FIGURE
from etmem.cli.exports import wanted, write_wanted
from etmem.cli.parameters import PATH, json_option
from etmem.model.errors import UsageError
from etmem.model.words import Severity
from etmem.report.units import clean

F = TypeVar("F", bound=Callable[..., Any])
LOG_LINES = 20
"""Lines of the program's log that a failure shows; --verbose shows all."""


@dataclass(frozen=True)
class OutputOptions:
    json: str | None
    full: bool
    exact: bool
    quiet: bool
    verbose: bool = False
    bundle: Path | None = None
    redact: bool = False


def output_options(function: F) -> F:
    """``--json``, ``--full``, ``--bytes``, ``--bundle``, ``--redact`` and ``--quiet``."""
    for option in reversed(
        (
            json_option,
            click.option("--full", is_flag=True, help="Phases, arenas, blocks, delegates, balances, environment."),
            click.option("--bytes", "exact", is_flag=True, help="All digits instead of MiB."),
            click.option(
                "--bundle", metavar="DIR|FILE.zip", type=PATH, help="Keep trace, summary, environment and command."
            ),
            click.option("--redact", is_flag=True, help="No paths, user or host names in the bundle, and no trace."),
            click.option("--quiet", "-q", is_flag=True, help="No text report and no progress line."),
        )
    ):
        function = option(function)
    return function


def of_one_run(options: OutputOptions, instead: str) -> None:
    """Raises UsageError where something is asked for that a table of several runs does not have."""
    asked = [*(f"--{name}" for name in wanted()), *(["--bundle"] if options.bundle is not None else [])]
    if asked:
        raise UsageError(
            f"{asked[0]} is of one run, and {instead} asks for several",
            "etmem report makes it from each trace that is kept.",
        )


def present(profile: Profile, options: OutputOptions, *, exit_status: int = 0) -> int:
    """Write what was asked for. The exit code says whether the figures can be relied on."""
    if options.json is not None:
        write_file(profile.to_json(), options.json)
    if options.bundle is not None:
        from etmem.bundle.writing import write_bundle

        write_bundle(options.bundle, profile.trace_path, redacted=options.redact)
    on_stdout = write_wanted(profile) or options.json == "-"
    if not options.quiet and not on_stdout:
        write_report(profile.text(full=options.full, bytes_exact=options.exact, width=text_width()))
    wrong = any(issue.severity is Severity.ERROR for issue in profile.summary.issues)
    show_log(profile.log_path, every=options.verbose, failed=wrong or exit_status != 0)
    if wrong:
        return WRONG_FIGURE
    return OK if exit_status == 0 else FAILURE


def show_log(path: Path | None, *, every: bool, failed: bool) -> None:
    """ExecuTorch's own log, on stderr and behind the report: all of it, or its end after a failure."""
    if path is None or not (every or failed):
        return
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    shown = lines if every else lines[-LOG_LINES:]
    if shown:
        left = f", last {len(shown)} of {len(lines)} lines" if len(shown) < len(lines) else ""
        write_error(f"log {clean(str(path))}{left}:")
        write_error("\n".join(f"  {clean(line, 200)}" for line in shown))
