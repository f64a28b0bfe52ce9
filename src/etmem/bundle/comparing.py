"""Two results or two programs, by their paths, compared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from etmem.bundle.sources import Kind, kind_of, load
from etmem.model.errors import EtmemError, UsageError

if TYPE_CHECKING:
    from etmem.analysis.diff_model import Diff
    from etmem.analysis.diff_program import FileFigure, ProgramDiff
    from etmem.model.summary import Summary


def compare_runs(a: Path, b: Path) -> Diff:
    """What changed from the run of ``a`` to that of ``b``. Raises InputError and TraceError."""
    return compare_and_keep(a, b)[0]


def compare_and_keep(a: Path, b: Path) -> tuple[Diff, Summary, Summary]:
    """The same, with the summaries that were compared."""
    from etmem.analysis.diff import diff

    old, new = load(a), load(b)
    blocks = (old.blocks, new.blocks) if old.blocks is not None and new.blocks is not None else None
    return diff(old.summary, new.summary, names=_names(a, b), blocks=blocks), old.summary, new.summary


def compare_programs(a: Path, b: Path) -> ProgramDiff:
    """What the files say. Raises UsageError where one of the two is a result."""
    from etmem.analysis.diff_program import diff_programs
    from etmem.program import read

    for path in (a, b):
        if kind_of(path) is not Kind.PROGRAM:
            raise UsageError(f"{path} is a result and the other a program", "etmem profile makes a result of a program")
    estimates = (program_estimate(a), program_estimate(b))
    # One alone would be a difference of what is known, not of the programs.
    kept = estimates if all(estimates) else ((), ())
    return diff_programs(read(a), read(b), names=_names(a, b), estimates=kept)


def program_estimate(path: Path) -> tuple[FileFigure, ...]:
    """What ``etmem plan`` expects of a program on this machine; empty where it cannot tell."""
    from etmem.analysis.diff_program import estimate
    from etmem.planning.build import plan

    try:
        return estimate(plan(path).estimate)
    except EtmemError:
        return ()


def _names(a: Path, b: Path) -> tuple[str, str]:
    """File names, with their folders where those alone tell them apart."""
    return (a.name, b.name) if a.name != b.name else (str(a), str(b))
