"""Opening a bundle: only files that its manifest names, with the bytes that it names."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from etmem.bundle.model import BLOCKS, MANIFEST, NAMES, SCHEMA, SUMMARY, Bundle, FileEntry, Manifest
from etmem.bundle.writing import digest
from etmem.model.codec import CodecError, from_data
from etmem.model.errors import InputError, reason

if TYPE_CHECKING:
    from etmem.analysis.diff_blocks import BlockGroup

_HINT = "a bundle is what etmem profile --bundle writes; etmem verify says what is wrong with one"
_LIMIT_MANIFEST = 1 << 20


def open_bundle(path: Path, scratch: Path) -> Bundle:
    """A bundle that is whole; an archive is unpacked into ``scratch``. Raises InputError for any other."""
    folder = path if path.is_dir() else _unpack(path, scratch)
    manifest = _manifest(folder, path)
    wrong = list(_problems(folder, manifest))
    if wrong:
        raise InputError(f"{path}: {wrong[0]}", _HINT)
    return Bundle(manifest, folder)


def problems(path: Path, scratch: Path) -> tuple[Manifest, tuple[str, ...]]:
    """The manifest, and everything about the files that disagrees with it. Raises InputError where there is none."""
    folder = path if path.is_dir() else _unpack(path, scratch)
    manifest = _manifest(folder, path)
    return manifest, tuple(_problems(folder, manifest))


def read_blocks(path: Path) -> tuple[BlockGroup, ...]:
    from etmem.analysis.diff_blocks import BlockGroup

    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(data, list):
            raise CodecError("top level: expected list")
        return tuple(from_data(BlockGroup, row, f"{BLOCKS}[{at}]") for at, row in enumerate(data))
    except (OSError, ValueError) as error:
        raise InputError(f"{BLOCKS} cannot be read: {error}", _HINT) from error


def _manifest(folder: Path, path: Path) -> Manifest:
    try:
        data = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise InputError(f"{path} is no bundle of schema {SCHEMA}", _HINT)
        manifest = from_data(Manifest, data)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is no bundle: {MANIFEST} cannot be read", _HINT) from error
    if SUMMARY not in {entry.name for entry in manifest.files}:
        raise InputError(f"{path} is no bundle: it lists no {SUMMARY}", _HINT)
    return manifest


def _problems(folder: Path, manifest: Manifest) -> Iterator[str]:
    listed = {entry.name for entry in manifest.files}
    for entry in manifest.files:
        # Checked before it is opened: a name with a path in it would lead out of the bundle.
        if entry.name not in NAMES:
            yield f"{entry.name!r} is no file of a bundle"
        else:
            yield from _file_problems(folder / entry.name, entry)
    for path in sorted(folder.iterdir()):
        if path.name not in {MANIFEST, *listed}:
            yield f"{path.name!r} is not in the manifest"


def _file_problems(path: Path, entry: FileEntry) -> Iterator[str]:
    if path.is_symlink() or not path.is_file():
        yield f"{entry.name} is missing"
    elif path.stat().st_size != entry.bytes:
        yield f"{entry.name} has {path.stat().st_size:,} bytes, the manifest says {entry.bytes:,}"
    elif digest(path) != entry.sha256:
        yield f"{entry.name} has been changed: its SHA-256 is not the manifest's"


def _unpack(path: Path, scratch: Path) -> Path:
    """The files of an archive, each no longer than its manifest says."""
    folder = scratch / "bundle"
    folder.mkdir()
    try:
        with zipfile.ZipFile(path) as archive:
            sizes = _sizes(archive)
            for name in archive.namelist():
                if name not in (MANIFEST, *NAMES):
                    raise InputError(f"{path}: {name!r} is no file of a bundle", _HINT)
                _extract(archive, name, folder, sizes.get(name, 0))
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise InputError(f"{path} is no bundle: {reason(error)}", _HINT) from error
    return folder


def _sizes(archive: zipfile.ZipFile) -> dict[str, int]:
    """By the manifest: what an archive says of its own members may be a lie of any size."""
    try:
        with archive.open(MANIFEST) as file:
            data = json.loads(file.read(_LIMIT_MANIFEST))
        entries = from_data(Manifest, data).files
    except (KeyError, ValueError, CodecError) as error:
        raise InputError(f"no bundle: {MANIFEST} cannot be read", _HINT) from error
    return {MANIFEST: _LIMIT_MANIFEST, **{entry.name: entry.bytes for entry in entries}}


def _extract(archive: zipfile.ZipFile, name: str, folder: Path, limit: int) -> None:
    left = limit + 1
    with archive.open(name) as source, (folder / name).open("wb") as target:
        while left > 0 and (piece := source.read(min(left, 1 << 20))):
            target.write(piece)
            left -= len(piece)
