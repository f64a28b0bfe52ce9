"""The options of ETRecord and ETDump, and what is said of an ETDump that was written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from etmem.cli.parameters import PATH
from etmem.report.units import clean

F = TypeVar("F", bound=Callable[..., Any])
NEWEST_TESTED = "1.5.1"


def etrecord_options(function: F) -> F:
    for option in (
        click.option(
            "--trust-etrecord",
            is_flag=True,
            help="Read it with ExecuTorch's own reader, which evaluates what stands in it: for one that you made.",
        ),
        click.option(
            "--etrecord",
            metavar="FILE",
            type=PATH,
            help="Source lines from this ETRecord. [default: the one beside the model]",
        ),
    ):
        function = option(function)
    return function


def etdump_options(function: F) -> F:
    for option in (
        click.option("--etdump-allocations", is_flag=True, help="Allocation events in it too: not for ExecuTorch's."),
        click.option("--etdump", metavar="FILE", type=PATH, help="Write an ETDump with memory in it, by a second run."),
        etrecord_options,
    ):
        function = option(function)
    return function


def etdump_note(path: Path, *, written: bool, allocations: bool) -> str:
    """What an ETDump's figures are of, and what opens it."""
    name = clean(str(path), 60)
    if not written:
        return f"no ETDump: the program failed, {name} was not written\n"
    opened = (
        f"  etmem.devtools.MemoryInspector opens it; Inspector, up to {NEWEST_TESTED}, raises on\n  allocation events\n"
        if allocations
        else "  Inspector(..., delegate_metadata_parser=etmem.devtools.parse_memory) opens it\n"
    )
    return (
        f"etdump {name}\n"
        "  times of a second run without etmem, memory of the recorded one, in which no\n"
        "  tracer made delegates allocate for their timings\n"
    ) + opened
