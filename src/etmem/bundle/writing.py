"""Writing a bundle: a folder, or one .zip."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from etmem import __version__
from etmem.bundle.model import (
    BLOCKS,
    COMMAND,
    ENVIRONMENT,
    MANIFEST,
    NAMES,
    PLAN,
    SUMMARY,
    TRACE,
    FileEntry,
    Manifest,
)
from etmem.bundle.redaction import redact
from etmem.model.codec import to_data
from etmem.model.errors import EtmemError, InputError, reason

if TYPE_CHECKING:
    from etmem.bundle.sources import Result
    from etmem.model.summary import Summary

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""Of every file in an archive: equal bundles are equal bytes."""


def write_bundle(target: Path, trace: Path, *, redacted: bool = False) -> Manifest:
    """Everything that the run of a trace left behind, at ``target``: a folder, or an archive if it ends in .zip.

    ``redacted`` takes paths, user and host names out; the trace is full of them, so it is left out then.
    A bundle that stands at ``target`` is replaced, anything else is not touched. Raises EtmemError.
    """
    from etmem.bundle.sources import load

    result = load(trace)
    _check_free(target)
    try:
        with TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as scratch:
            folder = Path(scratch, "bundle")
            folder.mkdir()
            manifest = _fill(folder, trace, result, redacted)
            if _is_archive(target):
                archive = Path(scratch, "bundle.zip")
                _pack(folder, archive)
                archive.replace(target)
            else:
                if target.exists():
                    shutil.rmtree(target)
                folder.rename(target)
    except OSError as error:
        raise EtmemError(f"cannot write {target}: {reason(error)}", "give a place that can be written") from error
    return manifest


def _fill(folder: Path, trace: Path, result: Result, redacted: bool) -> Manifest:
    summary = redact(result.summary) if redacted else result.summary
    _summary_file(folder / SUMMARY, summary)
    _json(folder / BLOCKS, to_data(result.blocks or ()))
    _json(folder / ENVIRONMENT, {"target": to_data(summary.target), "environment": to_data(summary.environment)})
    _json(folder / COMMAND, {"command": list(summary.environment.command), "exit": summary.environment.exit_status})
    plan = _plan(result.summary)
    if plan:
        _json(folder / PLAN, plan)
    if not redacted:
        shutil.copyfile(trace, folder / TRACE)
    files = tuple(_entry(folder / name) for name in NAMES if (folder / name).exists())
    manifest = Manifest(__version__, redacted, files)
    data = to_data(manifest)
    _json(folder / MANIFEST, {"schema": data.pop("schema"), **data})
    return manifest


def _summary_file(path: Path, summary: Summary) -> None:
    from etmem.report.json import to_json

    path.write_text(to_json(summary), encoding="utf-8")


def _plan(summary: Summary) -> list[dict[str, Any]]:
    """What the program files say, as far as they are still there and still the same."""
    from etmem.analysis.diff_program import figures
    from etmem.bundle.comparing import program_estimate
    from etmem.program import read

    found = []
    for program in summary.programs:
        try:
            file = read(Path(program.path)) if program.path else None
        except (InputError, OSError):
            continue
        if file is not None and file.file_bytes == program.file_bytes:
            expected = program_estimate(Path(program.path or ""))
            found.append({"program": program.program, "figures": to_data((*figures(file), *expected))})
    return found


def _entry(path: Path) -> FileEntry:
    return FileEntry(path.name, path.stat().st_size, digest(path))


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _json(path: Path, data: object) -> None:
    path.write_text(json.dumps(data, indent=2, ensure_ascii=True) + "\n", encoding="utf-8")


def _pack(folder: Path, archive: Path) -> None:
    with zipfile.ZipFile(archive, "w") as file:
        for name in (MANIFEST, *NAMES):
            source = folder / name
            if not source.exists():
                continue
            info = zipfile.ZipInfo(name, _EPOCH)
            info.external_attr = 0o644 << 16
            # The trace is compressed already.
            info.compress_type = zipfile.ZIP_STORED if name == TRACE else zipfile.ZIP_DEFLATED
            with source.open("rb") as content, file.open(info, "w") as out:
                shutil.copyfileobj(content, out)


def _is_archive(target: Path) -> bool:
    return target.suffix == ".zip"


def _check_free(target: Path) -> None:
    """Only a bundle is replaced: a mistyped option must not delete someone's folder."""
    if not target.parent.is_dir() or not os.access(target.parent, os.W_OK):
        raise EtmemError(f"{target.parent} is no folder that can be written", "name another place for the bundle")
    if not target.exists():
        return
    if not (_archive_holds(target) if _is_archive(target) else _folder_holds(target)):
        raise EtmemError(f"{target} exists and is no bundle", "name another place, or remove it first")


def _folder_holds(target: Path) -> bool:
    if not target.is_dir():
        return False
    names = {path.name for path in target.iterdir()}
    return not names or (MANIFEST in names and names <= {MANIFEST, *NAMES})


def _archive_holds(target: Path) -> bool:
    if not zipfile.is_zipfile(target):
        return False
    with zipfile.ZipFile(target) as file:
        return MANIFEST in file.namelist()
