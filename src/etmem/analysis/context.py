"""Everything that is known once every block has an owner; what the rest of analysis and findings read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from etmem.analysis.descriptions import Descriptions
from etmem.analysis.heaps import Extents
from etmem.analysis.keys import Key
from etmem.analysis.ledger import Ledger
from etmem.analysis.lookup import I64
from etmem.analysis.options import SummaryOptions
from etmem.analysis.owners import Ownership, function_name
from etmem.analysis.scopes import Instance, ScopeTable
from etmem.analysis.segments import Segments
from etmem.analysis.sharing import Sharing
from etmem.analysis.symbols import Symbolizer
from etmem.analysis.threads import Attributed, Threads
from etmem.model.summary import Arena, DelegateInfo, Finding, Moment, Peaks, Phase
from etmem.model.words import Category, PhaseKind
from etmem.trace.tables import Blocks, DelegateStage, Events, Scope, SegmentType, Trace

if TYPE_CHECKING:
    from etmem.program import Program


@dataclass(frozen=True)
class Span:
    """One phase; its stamps are those of its begin and its end, or of the trace's last if it never ended."""

    scope: Scope
    kind: PhaseKind
    begin: int
    end: int


@dataclass(frozen=True)
class Account:
    """The blocks of a trace, each filed under its owner.

    All columns of blocks have one row per block; of a long trace one row may stand for many that were gone before
    anybody looked (``Blocks.folded``).
    """

    trace: Trace
    options: SummaryOptions
    programs: Mapping[str, Program]
    """By path; empty where the files could not be read."""
    table: ScopeTable
    threads: Threads
    events: Events
    """Of all events, those of mappings and of registered heaps."""
    who: Attributed
    """Whose work each block's allocation was, and in which phase."""
    extents: Extents
    device: Extents
    """Those of heaps whose memory is not the process's; their addresses are the device's."""
    segments: Segments
    ownership: Ownership
    sharing: Sharing
    ledger: Ledger
    fresh: npt.NDArray[np.bool_]
    """Blocks that were allocated as they are: not what a partial munmap or mprotect left of another."""
    spans: tuple[Span, ...]
    """All phases by begin, as in ``Summary.phases``."""
    last_stamp: int
    descriptions: Descriptions
    symbolizer: Symbolizer

    @property
    def blocks(self) -> Blocks:
        return self.ledger.blocks

    @property
    def keys(self) -> tuple[Key, ...]:
        return self.ledger.keys

    @property
    def instances(self) -> tuple[Instance, ...]:
        """All delegate instances, by their first scope."""
        return self.table.instances

    @property
    def private_bytes(self) -> I64:
        return self.ledger.private

    @property
    def file_bytes(self) -> I64:
        return self.ledger.file

    def spans_of(self, *kinds: PhaseKind) -> tuple[Span, ...]:
        return tuple(span for span in self.spans if span.kind in kinds)

    def live_at(self, stamp: int) -> I64:
        """Rows of the blocks that are live after all that happened at a stamp."""
        return np.flatnonzero(self.ledger.live(stamp))

    def moment(self, stamp: int) -> Moment:
        return self.ledger.moment(stamp)

    def rows(
        self, *, owner: str | None = None, category: Category | None = None, instance: Instance | None = None
    ) -> I64:
        """Rows of the blocks filed under all that is given, live or not, by begin."""
        wanted = [
            (owner is None or key.owner == owner)
            and (category is None or key.category is category)
            and (instance is None or key.instance == instance)
            for key in self.keys
        ]
        return np.flatnonzero(np.array(wanted, np.bool_)[self.ledger.code])

    def allocated_by(self, instance: Instance) -> I64:
        """Rows of the blocks allocated at the work of one instance, whoever owns them."""
        index = self.instances.index(instance)
        return np.flatnonzero(self.table.instance[self.who.scope] == index)

    def scopes_of(self, instance: Instance, stage: DelegateStage) -> tuple[Scope, ...]:
        """The inits, executes or destroys of one instance, by begin."""
        return self.table.delegate_scopes(self.instances.index(instance), stage)

    def call_stack(self, row: int) -> Sequence[str]:
        """Names of the functions that a block was allocated in, innermost first; empty where none were recorded."""
        return self.symbolizer.stack(self.trace.stacks.get(int(self.blocks.stack[row]), ()))

    def function(self, row: int) -> str:
        """The function that allocated a block."""
        return function_name(int(self.blocks.function[row]))

    def phase_of(self, row: int) -> PhaseKind | None:
        """The kind of the phase that a block was allocated in."""
        return self._phase_kinds.get(int(self.who.phase[row]))

    @cached_property
    def phase_kind_numbers(self) -> npt.NDArray[np.int64]:
        """By phase id, the place of the phase's kind among all kinds; -1 for none."""
        numbers = np.full(len(self.table.phase), -1, np.int64)
        for phase, kind in self._phase_kinds.items():
            numbers[phase] = list(PhaseKind).index(kind)
        return numbers

    @cached_property
    def _phase_kinds(self) -> dict[int, PhaseKind]:
        return {span.scope.id: span.kind for span in self.spans}

    def program_path(self, program: int) -> str | None:
        """As noted or named by the load, else the file that the program's segment was mapped from."""
        noted = self.trace.note(f"program.{program}.path")
        if noted:
            return noted
        loads = [span.scope.name for span in self.spans_of(PhaseKind.PROGRAM_LOAD) if span.scope.a == program]
        return next(filter(None, loads), None) or self._mapped_from.get(program)

    @cached_property
    def _mapped_from(self) -> dict[int, str]:
        found = {}
        for segment, row in zip(self.segments.segments, self.segments.rows.tolist(), strict=True):
            file = int(self.blocks.file[row]) if row >= 0 else -1
            if file >= 0 and segment.type is SegmentType.PROGRAM:
                found[segment.program] = self.trace.file_maps[file].path
        return found

    def program(self, program: int) -> Program | None:
        """The file of a program id: by its path, else the only one of its size, or the only one there is."""
        found = self.programs.get(self.program_path(program) or "")
        if found is None:
            noted = self.trace.number(f"program.{program}.bytes")
            same = [file for file in self.programs.values() if noted in (None, file.file_bytes)]
            found = same[0] if len(same) == 1 else None
        return found


@dataclass(frozen=True)
class Context(Account):
    """The account and what follows from it: what findings are made from."""

    phases: tuple[Phase, ...]
    peaks: Peaks
    peak_stamps: Mapping[str, int]
    """Stamps of the moments in ``peaks``: ``load``, ``inference``, ``steady``, where there are such."""
    arenas: tuple[Arena, ...]
    delegates: tuple[DelegateInfo, ...]


Finder = Callable[[Context], tuple[Finding, ...]]
"""What turns a context into findings."""
