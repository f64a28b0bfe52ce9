"""A profile joined with its ETRecord and its ETDump: what the command line and the Python interface do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from etmem.devtools.etdump import read_etdump
from etmem.devtools.etdump_memory import with_memory
from etmem.devtools.etdump_writing import to_bytes
from etmem.devtools.etrecord import ETRecord, read_etrecord
from etmem.devtools.sources import with_sources
from etmem.model.errors import InputError
from etmem.model.summary import Issue, Summary
from etmem.model.words import IssueCode, Severity

BESIDE = ("{stem}.etrecord", "{stem}.etrecord.bin", "etrecord.bin")
"""Names under which an ETRecord is found in the program's folder."""


def open_record(path: str | Path, *, trust: bool = False) -> ETRecord:
    """``trust``: by ExecuTorch's own reader, which runs what the file says. Raises InputError, CaptureError."""
    if trust:
        from etmem.devtools.trusted_etrecord import read_trusted_etrecord

        return read_trusted_etrecord(path)
    return read_etrecord(path)


def with_record(summary: Summary, given: str | Path | None, *, trust: bool = False) -> Summary:
    """Source lines from the ETRecord given, else from one beside the program.

    Raises InputError where the one given is another program's. One that was only found is left out with an issue.
    """
    if given is not None:
        return with_sources(summary, open_record(given, trust=trust))
    path = beside(summary)
    if path is None:
        return summary
    try:
        return with_sources(summary, open_record(path, trust=trust))
    except InputError as error:
        issue = Issue(
            IssueCode.ETRECORD_REFUSED,
            Severity.WARNING,
            f"no source lines: {error.message}",
            "Give the right one with --etrecord, or take this one away.",
            {"path": str(path)},
        )
        return replace(summary, issues=(*summary.issues, issue))


def beside(summary: Summary) -> Path | None:
    """The ETRecord in the folder of the only program."""
    paths = [Path(program.path) for program in summary.programs if program.path]
    if len(summary.programs) != 1 or not paths or not paths[0].name:
        return None
    program = paths[0]
    names = (program.with_name(name.format(stem=program.stem)) for name in BESIDE)
    return next((path for path in names if path.is_file()), None)


def add_memory(etdump: Path, trace: Path, *, allocations: bool) -> None:
    """Puts the memory of a trace into an ETDump of the same plan, in its place."""
    from etmem.api import analyze_trace

    _, context = analyze_trace(trace)
    etdump.write_bytes(to_bytes(with_memory(read_etdump(etdump), context, allocations=allocations)))
