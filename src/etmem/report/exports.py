"""The artefacts that a trace can become. One line here and one module each."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from etmem.model.errors import EtmemError, reason

if TYPE_CHECKING:
    from etmem.report.view import View


@dataclass(frozen=True)
class Export:
    """``module`` has ``render(view) -> bytes`` for a file, ``write(view, folder)`` for a folder."""

    name: str
    module: str
    help: str
    folder: bool = False


EXPORTS = (
    Export("html", "html", "One HTML page with charts; needs no network."),
    Export("markdown", "markdown", "Tables for a pull request."),
    Export("perfetto", "perfetto", "A .perfetto-trace for ui.perfetto.dev: counters by owner, phases, operators, RSS."),
    Export("pprof", "pprof", "A .pb.gz for pprof: in use at the peak and allocated, objects and bytes."),
    Export("speedscope", "speedscope", "Flame graphs for speedscope.app."),
    Export("collapsed", "collapsed", "Collapsed stacks of the peak, for flamegraph.pl."),
    Export("chrome", "chrome", "Planned memory as a Chrome trace, as ExecuTorch's memory planning inspection."),
    Export("csv", "csv", "Blocks, events, phases and operators as CSV.", folder=True),
    Export("parquet", "parquet", "The same as Parquet.", folder=True),
)
BY_NAME = {export.name: export for export in EXPORTS}


def render(name: str, view: View) -> bytes:
    """The content of a file."""
    content: bytes = import_module(f"etmem.report.{BY_NAME[name].module}").render(view)
    return content


def write(name: str, view: View, path: Path) -> None:
    """Writes a file, which is replaced as a whole or not at all, or the files of a folder. Raises EtmemError."""
    try:
        if BY_NAME[name].folder:
            path.mkdir(parents=True, exist_ok=True)
            import_module(f"etmem.report.{BY_NAME[name].module}").write(view, path)
        else:
            _replace(path, render(name, view))
    except OSError as error:
        raise EtmemError(
            f"cannot write {path}: {reason(error)}", "give a place in a folder that can be written"
        ) from error


def _replace(path: Path, content: bytes) -> None:
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        scratch.write_bytes(content)
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)
