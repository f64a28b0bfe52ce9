"""A result by its path, whatever it is: a trace, a summary, or a bundle that holds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from zipfile import is_zipfile

from etmem.model.errors import InputError, reason

if TYPE_CHECKING:
    from etmem.analysis.diff_blocks import BlockGroup
    from etmem.model.summary import Summary
    from etmem.report.data import ReportData

_PROGRAMS = (b"ET12", b"BP08")


class Kind(StrEnum):
    TRACE = "trace"
    SUMMARY = "summary"
    BUNDLE = "bundle"
    PROGRAM = "program"


@dataclass(frozen=True)
class Result:
    """One run as it is compared and checked."""

    name: str
    summary: Summary
    blocks: Sequence[BlockGroup] | None
    """Every block at the peaks; None where only a summary is at hand."""
    page: ReportData | None = None
    """What a timeline is drawn from, where it was asked for."""


def kind_of(path: Path) -> Kind:
    """Told by the content, not by the name. Raises InputError."""
    if path.is_dir():
        return Kind.BUNDLE
    try:
        with path.open("rb") as file:
            head = file.read(64)
    except OSError as error:
        raise InputError(f"cannot read {path}: {reason(error)}", "give a trace, a summary or a bundle") from error
    if head[4:8] in _PROGRAMS:
        return Kind.PROGRAM
    if head.lstrip()[:1] == b"{":
        return Kind.SUMMARY
    # A trace's file never begins as an archive does.
    return Kind.BUNDLE if is_zipfile(path) else Kind.TRACE


def load(path: Path, *, page: bool = False) -> Result:
    """The run that a trace, a summary or a bundle holds. Raises InputError and TraceError."""
    kind = kind_of(path)
    if kind is Kind.SUMMARY:
        return _of_summary(path.name, path, page)
    if kind is Kind.TRACE:
        return _of_trace(path.name, path, page)
    if kind is Kind.BUNDLE:
        return _of_bundle(path, page)
    raise InputError(f"{path} is a program, not a result", "etmem profile makes a result of it")


def _of_summary(name: str, path: Path, page: bool) -> Result:
    from etmem.report.json import from_json

    result = Result(name, from_json(_text(path)), None)
    if not page:
        return result
    from etmem.report.moment_samples import moment_data

    return replace(result, page=moment_data(result.summary, name))


def _of_trace(name: str, path: Path, page: bool) -> Result:
    from etmem.analysis.diff_blocks import all_blocks
    from etmem.api import view

    opened = view(path)
    result = Result(name, opened.summary, all_blocks(opened.context))
    if not page:
        return result
    from etmem.report.data import timeline_data

    return replace(result, page=timeline_data(opened))


def _of_bundle(path: Path, page: bool) -> Result:
    from etmem.bundle.reading import open_bundle, read_blocks

    with TemporaryDirectory(prefix="etmem-") as scratch:
        bundle = open_bundle(path, Path(scratch))
        blocks = read_blocks(bundle.blocks) if bundle.blocks is not None else None
        result = replace(_of_summary(path.name, bundle.summary, page), blocks=blocks)
        if page and bundle.trace is not None:
            result = replace(result, page=_of_trace(path.name, bundle.trace, page).page)
        return result


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {reason(error)}", "give a trace, a summary or a bundle") from error
