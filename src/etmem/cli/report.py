"""``etmem report TRACE``."""

from __future__ import annotations

from pathlib import Path

import click

from etmem.cli.console import progress
from etmem.cli.etdump import etrecord_options
from etmem.cli.exports import export_options, wanted
from etmem.cli.output import OutputOptions, output_options, present
from etmem.cli.parameters import PATH, describe_option


@click.command(name="report")
@click.argument("trace", metavar="TRACE", type=PATH)
@etrecord_options
@describe_option
@output_options
@export_options()
def command(
    trace: Path,
    etrecord: Path | None,
    trust_etrecord: bool,
    describe: tuple[Path, ...],
    json: str | None,
    full: bool,
    exact: bool,
    quiet: bool,
    bundle: Path | None,
    redact: bool,
) -> int:
    """The report of a trace that profile or run wrote.

    \b
    Example:  etmem report mlp.etmem --full
              etmem report mlp.etmem --html mlp.html
              etmem report mlp.etmem --json -
              etmem report mlp.etmem --describe my_delegate.toml
    """
    from etmem.api import load

    with progress(f"reading {trace.name}", quiet=quiet):
        profile = load(trace, etrecord=etrecord, trust_etrecord=trust_etrecord, describe=describe, keep=bool(wanted()))
    return present(profile, OutputOptions(json, full, exact, quiet, bundle=bundle, redact=redact))
