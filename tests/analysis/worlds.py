"""Small traces that tests are told in, and what to summarise them with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from etmem.analysis.accounting import account
from etmem.analysis.context import Account
from etmem.analysis.options import SummaryOptions
from etmem.analysis.summarize import summarize
from etmem.model.summary import Environment, Moment, OwnerBytes, Summary, Target
from etmem.model.words import Category
from etmem.trace.tables import DelegateStage, RssLabel, ScopeKind
from etmem.trace.writer import TraceBuilder

XNNPACK = "XnnpackBackend"
XNN = "delegate:XnnpackBackend"

TARGET = Target(
    arch="x86_64", cpu="", isa="avx512", pointer_bytes=8, executorch="1.5.1", runtime="native", loader="mmap",
    iterations=2, dry=False, preset="wheel", backend_options=(), threads=None, inputs=(),
)  # fmt: skip
ENVIRONMENT = Environment(
    etmem="0", python="3.11", platform="linux", kernel="6", libc="glibc", allocator="glibc", page_bytes=4096,
    memlock_limit_bytes=None, command=(), exit_status=0,
)  # fmt: skip
OPTIONS = SummaryOptions(TARGET, ENVIRONMENT)


@dataclass(frozen=True)
class Words:
    """A description that reads the innermost symbol as ``<category>`` or ``<category>@<object>``."""

    functions: tuple[str, ...] = ()
    """Only what these allocate is read; empty: all."""

    def category(self, symbols: Sequence[str], function: str) -> Category:
        word = self._word(symbols, function).partition("@")[0]
        return Category(word) if word else Category.METADATA

    def shared(self, symbols: Sequence[str], function: str) -> str | None:
        return self._word(symbols, function).partition("@")[2] or None

    def _word(self, symbols: Sequence[str], function: str) -> str:
        return next(iter(symbols), "") if not self.functions or function in self.functions else ""


class World(TraceBuilder):
    """A builder with the scopes of ExecuTorch, and call stacks given as symbols.

    Every symbol used has an address of its own, which ``symbols`` has for the account's symbolizer.
    """

    def __init__(self) -> None:
        super().__init__()
        self.symbols: dict[int, str] = {}

    @contextmanager
    def program_load(self, program: int = 1) -> Iterator[int]:
        with self._phase(ScopeKind.PROGRAM_LOAD, "", program) as scope:
            yield scope

    @contextmanager
    def method_load(self, method: str = "forward", program: int = 1) -> Iterator[int]:
        with self._phase(ScopeKind.METHOD_LOAD, method, program) as scope:
            yield scope

    @contextmanager
    def inference(self, iteration: int = 0, method: str = "forward", program: int = 1) -> Iterator[int]:
        with self._phase(ScopeKind.INFERENCE, method, program, iteration) as scope:
            yield scope

    @contextmanager
    def unload(self, method: str = "forward", program: int = 1) -> Iterator[int]:
        with self._phase(ScopeKind.UNLOAD, method, program) as scope:
            yield scope

    @contextmanager
    def init(self, index: int = 0, backend: str = XNNPACK) -> Iterator[int]:
        with self.scope(ScopeKind.DELEGATE, backend, index, DelegateStage.INIT) as scope:
            yield scope

    @contextmanager
    def execute(self, index: int = 0, backend: str = XNNPACK) -> Iterator[int]:
        with (
            self.scope(ScopeKind.INSTRUCTION, "DELEGATE_CALL", 0, index),
            self.scope(ScopeKind.DELEGATE, backend, index, DelegateStage.EXECUTE) as scope,
        ):
            yield scope

    @contextmanager
    def destroy(self, index: int = 0, backend: str = XNNPACK) -> Iterator[int]:
        with self.scope(ScopeKind.DELEGATE, backend, index, DelegateStage.DESTROY) as scope:
            yield scope

    def packed(self, address: int, size: int, word: str, **more: int) -> int:
        """A block whose call stack says what it is, for ``Words``."""
        frame = next((a for a, known in self.symbols.items() if known == word), 0x7000_0000 + 16 * len(self.symbols))
        self.symbols[frame] = word
        return self.alloc(address, size, stack=(frame,), **more)

    @contextmanager
    def _phase(self, kind: ScopeKind, name: str, a: int, b: int = 0) -> Iterator[int]:
        with self.scope(kind, name, a, b) as scope:
            yield scope


def summary(world: World, options: SummaryOptions = OPTIONS, **more: object) -> Summary:
    """The summary, which is the same whether its short-lived blocks are folded or not."""
    found = summarize(world.trace(), options, **more)  # type: ignore[arg-type]
    folded = summarize(world.trace(), replace(options, fold_from=0), **more)  # type: ignore[arg-type]
    assert folded == found
    return found


def accounted(world: World, descriptions: Mapping[str, object] | None = None) -> Account:
    return account(world.trace(), OPTIONS, descriptions or {}, {})  # type: ignore[arg-type]


def filed(found: Account, address: int) -> tuple[str, str | None, Category]:
    """Owner, instance and category of the last block at an address."""
    (row,) = [row for row in range(len(found.blocks)) if int(found.blocks.address[row]) == address][-1:]
    key = found.keys[found.ledger.code[row]]
    return key.owner, key.instance.label if key.instance else None, key.category


def owner(moment: Moment, name: str, instance: str | None = None) -> OwnerBytes:
    return next(one for one in moment.owners if (one.owner, one.instance) == (name, instance))


def rss_edges(world: World, scope: int, start: int, end: int, high: int) -> None:
    """The two samples of a phase that has ended, as if they had been taken at its edges."""
    world.rss(RssLabel.PHASE_BEGIN, start, scope=scope, high_water_bytes=start)
    world.rss(RssLabel.PHASE_END, end, scope=scope, high_water_bytes=high)
