"""Names for the frames of a profile: its own, or those of unstripped libraries that the user has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from etmem.analysis.symbols import SymbolTable, read_symbols
from etmem.importing.profile import Frame, HeapProfile, Module
from etmem.model.errors import InputError, UsageError

_FULL_FEW = 8


@dataclass(frozen=True)
class Library:
    """A file with symbols."""

    path: Path
    build_id: str
    table: SymbolTable


@dataclass
class Names:
    """Frames to symbols; mangled where a library has them."""

    libraries: Mapping[Module, Library]
    found: dict[Frame, str] = field(default_factory=dict)

    def of(self, stack: Sequence[Frame]) -> list[str]:
        """Innermost first; "" where nothing tells."""
        return [self._name(frame) for frame in stack]

    def _name(self, frame: Frame) -> str:
        name = self.found.get(frame)
        if name is None:
            name = self.found[frame] = self._looked_up(frame) or frame.name
        return name

    def _looked_up(self, frame: Frame) -> str:
        library = self.libraries.get(frame.module) if frame.module else None
        if library is None:
            return ""
        table = library.table
        return table.name(table.address(frame.address) if frame.in_file else frame.address)


def names(profile: HeapProfile, symbols: Iterable[Path]) -> Names:
    """Each library stands for the module with its build id, else with its file name.

    Raises InputError for a file without symbols, UsageError for one that is none of the profile's, or whose build id is
    another one's.
    """
    modules = modules_of(profile)
    chosen: dict[Module, Library] = {}
    for path in symbols:
        library = _library(path)
        for module in _modules_for(library, modules):
            chosen[module] = library
    return Names(chosen)


def modules_of(profile: HeapProfile) -> tuple[Module, ...]:
    """In the order in which samples have them."""
    return tuple(
        dict.fromkeys(frame.module for sample in profile.samples for frame in sample.stack if frame.module is not None)
    )


def _library(path: Path) -> Library:
    if not path.is_file():
        raise InputError(f"{path} is not there", "--symbols names the library with its symbols, before it was stripped")
    table = read_symbols(str(path))
    if table is None or not len(table.starts):
        raise InputError(f"{path} has no symbols", "give the library as it was before it was stripped")
    return Library(path, _build_id(path), table)


def _build_id(path: Path) -> str:
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import NoteSection

    with path.open("rb") as stream:
        elf = ELFFile(stream)
        for section in elf.iter_sections():
            for note in section.iter_notes() if isinstance(section, NoteSection) else ():
                if note["n_type"] == "NT_GNU_BUILD_ID":
                    return str(note["n_desc"])
    return ""


def _modules_for(library: Library, modules: tuple[Module, ...]) -> list[Module]:
    same = [module for module in modules if module.build_id and module.build_id == library.build_id]
    if same:
        return same
    named = [module for module in modules if file_name(module) == library.path.name]
    if not named:
        known = ", ".join(dict.fromkeys(file_name(module) for module in modules[:_FULL_FEW]))
        raise UsageError(f"{library.path.name} is none of the profile's modules", f"it has {known or 'none'}")
    for module in named:
        if module.build_id and library.build_id:
            raise UsageError(
                f"{library.path} is another build: {library.build_id[:12]}, the profile's is {module.build_id[:12]}",
                "give the unstripped file of the very build that was profiled",
            )
    return named


def file_name(module: Module) -> str:
    """``base.apk!libexecutorch.so`` is the library."""
    return PurePosixPath(module.path).name.rpartition("!")[2]
