"""``etmem verify BUNDLE``."""

from __future__ import annotations

import json as json_
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from etmem.cli.console import text_width, write_file, write_text
from etmem.cli.exits import FAILURE, OK
from etmem.cli.parameters import PATH, json_option
from etmem.report.table import join_parts, wrap
from etmem.report.units import clean


@click.command(name="verify")
@click.argument("bundle", metavar="BUNDLE", type=PATH)
@json_option
def command(bundle: Path, json: str | None) -> int:
    """Whether a bundle is whole: its files are those of its manifest, by name, size and SHA-256.

    \b
    Example:  etmem verify mlp.zip
    """
    from etmem.bundle.reading import problems
    from etmem.model.codec import to_data

    with TemporaryDirectory(prefix="etmem-") as scratch:
        manifest, wrong = problems(bundle, Path(scratch))
    if json is not None:
        write_file(json_.dumps({"problems": list(wrong), "manifest": to_data(manifest)}, indent=2) + "\n", json)
    if json != "-":
        total = sum(entry.bytes for entry in manifest.files)
        state = "NOT WHOLE" if wrong else "whole"
        parts = [f"{state}  {len(manifest.files)} files, {total:,} B, etmem {clean(manifest.etmem)}"]
        parts += ["redacted"] if manifest.redacted else []
        lines = join_parts([*parts, clean(str(bundle))], text_width())
        lines += [line for problem in wrong for line in wrap(clean(problem), text_width(), first="  ", rest="    ")]
        write_text("\n".join(lines) + "\n")
    return FAILURE if wrong else OK
