"""Opening program files: which kind a file is, and a clear error for everything that is none."""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Callable
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from etmem.model.errors import ProgramError, reason

if TYPE_CHECKING:
    from collections.abc import Iterator

_EXPORT = "Export the model again and check that the whole file was copied."


class FileKind(Enum):
    """The formats that ExecuTorch writes, by their flatbuffer identifier."""

    PTE = "ET12"
    PTD = "FT01"
    BPTE = "BP08"


_FAMILIES = {b"ET": "program (.pte)", b"FT": "external data (.ptd)", b"BP": "bundled program (.bpte)"}
_OTHERS = (
    (0, b"PK\x03\x04", "a zip archive, as torch.save and torch.export.save write"),
    (0, b"GGUF", "a GGUF model"),
    (0, b"\x7fELF", "an ELF binary"),
    (4, b"TFL3", "a TensorFlow Lite model"),
    (4, b"ED00", "an ETDump"),
)


def identify(head: bytes, name: str) -> FileKind:
    """The kind of a file by its first 8 bytes or more; ``ProgramError`` for every other file."""
    if not head:
        raise ProgramError(f"{name} is empty", _EXPORT)
    identifier = head[4:8]
    for kind in FileKind:
        if identifier == kind.value.encode():
            return kind
    if head.startswith(b"version https://git-lfs"):
        raise ProgramError(f"{name} is a Git LFS pointer, not the file itself", "Fetch it with: git lfs pull")
    for offset, magic, what in _OTHERS:
        if head[offset : offset + len(magic)] == magic:
            raise ProgramError(f"{name} is {what}, not an ExecuTorch program", "Export it to a .pte first.")
    family = _FAMILIES.get(identifier[:2])
    if family is not None and identifier[2:].isdigit():
        raise ProgramError(
            f"{name} is an ExecuTorch {family} of an unknown version, {identifier.decode()}",
            "etmem reads " + ", ".join(kind.value for kind in FileKind) + ". Export it with a supported ExecuTorch.",
        )
    what = "a text file" if _looks_like_text(head) else "not an ExecuTorch program"
    raise ProgramError(f"{name} is {what}: a .pte has 'ET12' at byte 4", _EXPORT)


def _looks_like_text(head: bytes) -> bool:
    try:
        text = head.decode()
    except UnicodeDecodeError:
        return False
    return all(character.isprintable() or character.isspace() for character in text)


Read = Callable[[int, int], bytes]
"""(first byte, count) -> the bytes."""


@contextmanager
def sparse(path: str | os.PathLike[str]) -> Iterator[Read]:
    """Reading a few bytes here and there of a large file.

    A fault in a mapping brings in as much as the page cache keeps together, 2 MiB on newer kernels: sixteen samples
    of a tensor would read it whole.
    """
    with Path(path).open("rb", buffering=0) as file:
        number = file.fileno()
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(number, 0, 0, os.POSIX_FADV_RANDOM)

        def read(start: int, count: int) -> bytes:
            if hasattr(os, "pread"):
                return os.pread(number, count, start)
            file.seek(start)
            return file.read(count)

        yield read


@contextmanager
def mapped(path: str | os.PathLike[str]) -> Iterator[memoryview]:
    """The bytes of a regular file, mapped read-only: only the pages that are looked at are read.

    The map goes when the last view of it does; closing it here would fail while an error on its way up
    still refers to one.
    """
    name = Path(path).name or str(path)
    try:
        # Before opening it: opening a pipe that nobody writes to would wait for ever.
        if not stat.S_ISREG(Path(path).stat().st_mode) and not Path(path).is_dir():
            raise ProgramError(f"{path} is not a regular file", "Give the path of a .pte.")
        with Path(path).open("rb", buffering=0) as file:
            if os.fstat(file.fileno()).st_size == 0:
                raise ProgramError(f"{name} is empty", _EXPORT)
            mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise _unreadable(path, error) from error
    except ValueError as error:  # a null byte in it: a trace may name such a path
        raise ProgramError(f"{path!s:.80} is no path", "Check the path.") from error
    yield memoryview(mapping)


def _unreadable(path: str | os.PathLike[str], error: OSError) -> ProgramError:
    if isinstance(error, FileNotFoundError):
        return ProgramError(f"{path} does not exist", "Check the path.")
    if isinstance(error, IsADirectoryError):
        return ProgramError(f"{path} is a directory", "Give the path of a .pte.")
    if isinstance(error, PermissionError):
        return ProgramError(f"{path} cannot be read: permission denied", "Check the file's permissions.")
    return ProgramError(f"{path} cannot be read: {reason(error)}", "Check the path and the file system.")
