"""``etmem doctor``."""

from __future__ import annotations

import json as json_
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from etmem.cli.console import progress, text_width, write_file, write_text
from etmem.cli.exits import FAILURE, OK
from etmem.cli.parameters import executorch_option, json_option
from etmem.report.table import wrap
from etmem.report.units import clean, shorten

if TYPE_CHECKING:
    from etmem.capture.doctor import Check

INDENT = " " * 22


@click.command(name="doctor")
@executorch_option
@json_option
def command(executorch: Path | None, json: str | None) -> int:
    """What works on this machine, what does not, and what to do about it.

    Exit code 0 when etmem profile and etmem run can do their work, 1 when something they need is missing.

    \b
    Example:  etmem doctor
              etmem doctor --executorch ~/executorch/install
    """
    from etmem.capture.doctor import State, checks

    with progress("checking", quiet=False) as step:
        found = checks(executorch, step)
    if json is not None:
        write_file(json_.dumps([asdict(check) for check in found], indent=2) + "\n", json)
    if json != "-":
        write_text("\n".join(line for check in found for line in _lines(check, text_width())) + "\n")
    return FAILURE if any(check.state is State.MISSING for check in found) else OK


def _lines(check: Check, width: int) -> list[str]:
    head = check.state.value.ljust(8) + check.name.ljust(len(INDENT) - 8)
    # A path longer than the line would be broken in the middle of a name.
    words = [shorten(clean(word), width - len(INDENT)) for word in check.detail.split()]
    lines = wrap(" ".join(words), width, first=head, rest=INDENT)
    return lines + wrap(clean(check.hint), width, first=f"{INDENT}-> ", rest=f"{INDENT}   ") if check.hint else lines
