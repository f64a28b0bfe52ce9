"""What an ELF file says about itself, as far as a launch and a build need it.

Read with ``struct``: the hooks are looked up inside the profiled process's start, where the import of a
library for ELF files would cost more than everything else together.
"""

from __future__ import annotations

import hashlib
import mmap
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PT_DYNAMIC, _PT_INTERP, _PT_NOTE = 2, 3, 4
_PT_LOAD = 1
_DT_NEEDED, _DT_STRTAB, _DT_SONAME = 1, 5, 14
_SHT_SYMTAB, _SHT_DYNSYM = 2, 11
_NT_GNU_BUILD_ID = 3

_DAMAGED = (struct.error, IndexError, OverflowError, UnicodeDecodeError)
"""What reading raises where a file's own numbers lead out of it."""

_MACHINES = {3: "i386", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv64"}


@dataclass(frozen=True)
class Elf:
    machine: str
    """As ``uname -m`` says it; the number where it is another."""
    bits: int
    interpreter: str | None
    """The dynamic linker. None for a library, and for a static executable."""
    dynamic: bool
    soname: str | None
    needed: tuple[str, ...]
    build_id: str | None


@dataclass(frozen=True)
class _Segment:
    type: int
    offset: int
    address: int
    size: int


def read(path: Path) -> Elf | None:
    """The file's own description; None where it is no ELF file, or a damaged one. Raises OSError."""
    with path.open("rb") as file:
        try:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:
            return None
        with data:
            try:
                return _read(data)
            except _DAMAGED:
                return None


def identity(path: Path) -> str:
    """Tells two builds of a library apart: its build id, or a hash of its bytes. Raises OSError."""
    elf = read(path)
    if elf is not None and elf.build_id is not None:
        return elf.build_id
    return hashlib.sha256(path.read_bytes()).hexdigest()


def defines(path: Path, symbols: frozenset[str]) -> bool:
    """Whether the file itself holds one of these symbols, exported or not. Raises OSError."""
    with path.open("rb") as file:
        try:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:
            return False
        with data:
            try:
                return data[:4] == b"\x7fELF" and data[4] == 2 and _defines(data, symbols)
            except _DAMAGED:
                return False


def contains(path: Path, text: bytes) -> bool:
    """Whether these bytes are anywhere in the file. Raises OSError."""
    with path.open("rb") as file:
        try:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:
            return False
        with data:
            return data.find(text) >= 0


def _read(data: mmap.mmap) -> Elf | None:
    if data[:4] != b"\x7fELF" or data[5] != 1:
        return None
    wide = data[4] == 2
    (machine,) = struct.unpack_from("<H", data, 18)
    segments = list(_segments(data, wide))
    strings = {tag: [] for tag in (_DT_NEEDED, _DT_SONAME)}  # type: dict[int, list[int]]
    table = 0
    for tag, value in _dynamic(data, wide, segments):
        if tag == _DT_STRTAB:
            table = _file_offset(segments, value)
        elif tag in strings:
            strings[tag].append(value)
    names = {tag: [_text(data, table + at) for at in offsets] for tag, offsets in strings.items()}
    interpreter = next((_text(data, s.offset) for s in segments if s.type == _PT_INTERP), None)
    return Elf(
        machine=_MACHINES.get(machine, str(machine)),
        bits=64 if wide else 32,
        interpreter=interpreter,
        dynamic=any(s.type == _PT_DYNAMIC for s in segments),
        soname=next(iter(names[_DT_SONAME]), None),
        needed=tuple(names[_DT_NEEDED]),
        build_id=next(_build_ids(data, segments), None),
    )


def _segments(data: mmap.mmap, wide: bool) -> Iterator[_Segment]:
    if wide:
        (start,) = struct.unpack_from("<Q", data, 32)
        size, count = struct.unpack_from("<HH", data, 54)
    else:
        (start,) = struct.unpack_from("<I", data, 28)
        size, count = struct.unpack_from("<HH", data, 42)
    for at in range(start, start + size * count, size or 1):
        if wide:
            kind, _, offset, address, _, bytes_ = struct.unpack_from("<IIQQQQ", data, at)
        else:
            kind, offset, address, _, bytes_ = struct.unpack_from("<IIIII", data, at)
        yield _Segment(kind, offset, address, bytes_)


def _dynamic(data: mmap.mmap, wide: bool, segments: list[_Segment]) -> Iterator[tuple[int, int]]:
    form, size = ("<qQ", 16) if wide else ("<iI", 8)
    for segment in segments:
        if segment.type != _PT_DYNAMIC:
            continue
        for at in range(segment.offset, segment.offset + segment.size - size + 1, size):
            tag, value = struct.unpack_from(form, data, at)
            if tag == 0:
                return
            yield tag, value


def _file_offset(segments: list[_Segment], address: int) -> int:
    for segment in segments:
        if segment.type == _PT_LOAD and segment.address <= address < segment.address + segment.size:
            return segment.offset + address - segment.address
    return 0


def _build_ids(data: mmap.mmap, segments: list[_Segment]) -> Iterator[str]:
    for segment in segments:
        at = segment.offset
        while segment.type == _PT_NOTE and at + 12 <= segment.offset + segment.size:
            name_bytes, bytes_, kind = struct.unpack_from("<III", data, at)
            name = at + 12
            body = name + (name_bytes + 3 & ~3)
            if kind == _NT_GNU_BUILD_ID and data[name : name + 4] == b"GNU\0":
                yield data[body : body + bytes_].hex()
            at = body + (bytes_ + 3 & ~3)


def _text(data: mmap.mmap, offset: int) -> str:
    return data[offset : data.find(b"\0", offset)].decode()


def _defines(data: mmap.mmap, symbols: frozenset[str]) -> bool:
    wanted = {symbol.encode() for symbol in symbols}
    (start,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, start + i * size) for i in range(count)]
    for _, kind, _, _, offset, bytes_, link, _, _, entry in headers:
        if kind not in (_SHT_SYMTAB, _SHT_DYNSYM) or entry != 24:
            continue
        names = headers[link][4]
        for name, _, _, section, _, _ in struct.iter_unpack("<IBBHQQ", data[offset : offset + bytes_ - bytes_ % 24]):
            if section != 0 and name != 0:
                at = names + name
                if data[at : data.find(b"\0", at)] in wanted:
                    return True
    return False
