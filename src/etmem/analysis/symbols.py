"""Names for return addresses, from the symbol tables of the module files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, overload

import numpy as np
import numpy.typing as npt

from etmem.analysis.modules import CodeMap
from etmem.trace.tables import U64

_FUNCTION, _INDIRECT_FUNCTION = 2, 10
_SYMTAB, _DYNSYM = 2, 11


def _section(word: str) -> np.dtype[Any]:
    """A section header; ``word`` is the type of addresses and sizes."""
    fields = (("name", "<u4"), ("type", "<u4"), ("flags", word), ("address", word), ("offset", word), ("size", word))
    return np.dtype([*fields, ("link", "<u4"), ("info", "<u4"), ("align", word), ("entry", word)])


_SECTION_64, _SECTION_32 = _section("<u8"), _section("<u4")
_SYMBOL_64 = np.dtype([("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"),
                       ("size", "<u8")])  # fmt: skip
_SYMBOL_32 = np.dtype([("name", "<u4"), ("value", "<u4"), ("size", "<u4"), ("info", "u1"), ("other", "u1"),
                       ("section", "<u2")])  # fmt: skip


@dataclass(frozen=True)
class SymbolTable:
    """The functions of one file, by address. ``loads`` are (file offset, virtual address, bytes)."""

    starts: U64
    ends: U64
    names: tuple[tuple[bytes, int], ...]
    """String table and offset in it, for each function."""
    loads: tuple[tuple[int, int, int], ...]

    @property
    def lowest(self) -> int:
        """The virtual address that the module begins at."""
        return min((address for _, address, _ in self.loads), default=0)

    def name(self, address: int) -> str:
        """The function that holds a virtual address, or ""."""
        position = int(np.searchsorted(self.starts, np.uint64(address), "right")) - 1
        # A local function that no table names must not pass for the one before it.
        if position < 0 or address >= int(self.ends[position]):
            return ""
        strings, offset = self.names[position]
        return strings[offset : strings.index(b"\0", offset)].decode("utf-8", "replace")

    def address(self, file_offset: int) -> int:
        """The virtual address of a byte of the file."""
        for offset, address, size in self.loads:
            if offset <= file_offset < offset + size:
                return file_offset - offset + address
        return file_offset


@dataclass
class Symbolizer:
    """Names of the functions on a call stack; keeps what it looked up."""

    code: CodeMap
    unreadable: set[str] = field(default_factory=set)
    """Files that frames lie in and whose symbols cannot be read here."""
    _names: dict[int, str] = field(default_factory=dict)

    def stack(self, return_addresses: Sequence[int]) -> Sequence[str]:
        """One name per frame, found when it is asked for: most descriptions look no further than the first few."""
        return _Names(self, return_addresses)

    def name(self, return_address: int) -> str:
        known = self._names.get(return_address)
        if known is None:
            known = self._names[return_address] = self._look_up(return_address)
        return known

    def _look_up(self, return_address: int) -> str:
        # The return address may be the first byte of the next function when the call never returns.
        call = return_address - 1
        piece = self.code.at(call)
        if piece is None:
            return ""
        table = read_symbols(piece.path)
        if table is None:
            self.unreadable.add(piece.path)
            return ""
        within = call - piece.start
        address = table.lowest + within if piece.offset is None else table.address(within + piece.offset)
        return table.name(address)


class _Names(Sequence[str]):
    def __init__(self, symbolizer: Symbolizer, addresses: Sequence[int]) -> None:
        self._symbolizer = symbolizer
        self._addresses = addresses

    def __len__(self) -> int:
        return len(self._addresses)

    def __iter__(self) -> Iterator[str]:
        return (self._symbolizer.name(address) for address in self._addresses)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return _Names(self._symbolizer, self._addresses[index])
        return self._symbolizer.name(self._addresses[index])


@cache
def read_symbols(path: str) -> SymbolTable | None:
    """The functions in .symtab and .dynsym; None where the file is not there or is no ELF file."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        with Path(path).open("rb") as stream:
            elf = ELFFile(stream)
            loads = tuple(
                (int(s["p_offset"]), int(s["p_vaddr"]), int(s["p_filesz"]))
                for s in elf.iter_segments()
                if s["p_type"] == "PT_LOAD"
            )
            wide = elf.elfclass == 64
            tables = _symbol_sections(stream, wide, elf["e_shoff"], elf["e_shnum"])
    except (OSError, ELFError, ValueError):
        return None
    return _table(tables, loads)


def _symbol_sections(stream: BinaryIO, wide: bool, offset: int, count: int) -> list[tuple[npt.NDArray[Any], bytes]]:
    """Symbols and their strings, .symtab before .dynsym. Only their headers are looked at: a library has sixty."""
    layout, symbol = (_SECTION_64, _SYMBOL_64) if wide else (_SECTION_32, _SYMBOL_32)
    headers = np.frombuffer(_read(stream, offset, count * layout.itemsize), layout)
    found = []
    for kind in (_SYMTAB, _DYNSYM):
        for header in headers[headers["type"] == kind]:
            if header["link"] >= count:
                continue
            strings = headers[int(header["link"])]
            size = int(header["size"]) // symbol.itemsize * symbol.itemsize
            symbols = np.frombuffer(_read(stream, int(header["offset"]), size), symbol)
            found.append((symbols, _read(stream, int(strings["offset"]), int(strings["size"]))))
    return found


def _read(stream: BinaryIO, offset: int, size: int) -> bytes:
    stream.seek(offset)
    data = stream.read(size)
    if len(data) != size:
        raise ValueError("the file ends inside a section")
    return data


def _table(tables: list[tuple[npt.NDArray[Any], bytes]], loads: tuple[tuple[int, int, int], ...]) -> SymbolTable:
    found: dict[int, tuple[int, tuple[bytes, int]]] = {}
    for symbols, strings in tables:
        kinds = symbols["info"] & 15
        functions = symbols[((kinds == _FUNCTION) | (kinds == _INDIRECT_FUNCTION)) & (symbols["section"] != 0)]
        for value, size, name in zip(
            functions["value"].tolist(), functions["size"].tolist(), functions["name"].tolist(), strict=True
        ):
            found.setdefault(value, (size, (strings, name)))
    starts = sorted(found)
    sizes = [found[start][0] for start in starts]
    return SymbolTable(
        starts=np.array(starts, np.uint64),
        ends=np.array(starts, np.uint64) + np.array(sizes, np.uint64),
        names=tuple(found[start][1] for start in starts),
        loads=loads,
    )
