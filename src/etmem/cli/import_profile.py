"""``etmem import PROFILE``."""

from __future__ import annotations

from pathlib import Path

import click

from etmem.cli.console import progress, text_width, write_file, write_text
from etmem.cli.exits import OK, WRONG_FIGURE
from etmem.cli.parameters import PATH, describe_option, json_option
from etmem.model.words import Severity


@click.command(name="import")
@click.argument("profile", metavar="PROFILE", type=PATH)
@click.option(
    "--symbols", multiple=True, metavar="LIB", type=PATH, help="An unstripped library, where PROFILE has no names."
)
@click.option("--process", type=int, metavar="PID", help="Which one, where a trace has several.")
@describe_option
@json_option
@click.option("--collapsed", metavar="FILE", help="Call stacks of what is live, for flamegraph.pl.")
@click.option("--full", is_flag=True, help="Modules, their symbols, and the largest call stacks.")
@click.option("--bytes", "exact", is_flag=True, help="All digits instead of MiB.")
@click.option("--quiet", "-q", is_flag=True, help="No text.")
def command(
    profile: Path,
    symbols: tuple[Path, ...],
    process: int | None,
    describe: tuple[Path, ...],
    json: str | None,
    collapsed: str | None,
    full: bool,
    exact: bool,
    quiet: bool,
) -> int:
    """Owners and categories of a heap profile that another profiler took: heapprofd's, or any in pprof's format.

    For where etmem's own recording cannot go, such as a stock Android app. Sampled, and said to be.

    \b
    Example:  etmem import profile.pb.gz --symbols libexecutorch_jni.so
              etmem import heap.perfetto-trace --process 4711 --full
    """
    from etmem.importing import import_profile
    from etmem.report import sampled

    with progress(f"reading {profile.name}", quiet=quiet):
        found = import_profile(profile, symbols=symbols, describe=describe, process=process)
    if json is not None:
        write_file(sampled.to_json(found), json)
    if collapsed is not None:
        write_file(sampled.collapsed(found), collapsed)
    if not quiet and "-" not in (json, collapsed):
        write_text(sampled.render(found, width=text_width(), full=full, bytes_exact=exact))
    return WRONG_FIGURE if any(issue.severity is Severity.ERROR for issue in found.issues) else OK
