"""The owner table's rows: who holds what at the peaks of load and inference, and at rest.

Instances of one backend are folded into one owner. Categories under one percent of the table's largest
figure stand together in one row, so that a report of 24 delegates has the length of a report of one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from etmem.model.summary import Moment, OwnerBytes, Peaks, Summary
from etmem.model.words import HOST, Category, is_counted
from etmem.report.names import (
    Instance,
    category_name,
    instances_label,
    memory_name,
    owner_label,
    owner_name,
    parse_instance,
)
from etmem.report.units import Scale, clean, plural

COLUMNS = ("load", "inference", "steady")
LABEL_LIMIT = 36
SMALL = 0.01
"""Share of the table's largest figure under which a category has no row of its own."""
SHORT_NAME = 9
"""Longest name of a row that leaves room for a full note beside it."""
NEARLY_ALL = 0.99
NAMED_BY_FIRST = 0.10
"""Share of a row of small categories that its name may leave out."""

_WEIGHTS = {Category.PACKED_WEIGHTS, Category.ORIGINAL_WEIGHTS}


@dataclass(frozen=True)
class Cell:
    private_bytes: int = 0
    file_bytes: int = 0

    @property
    def bytes(self) -> int:
        return self.private_bytes + self.file_bytes

    @property
    def only_file(self) -> bool:
        return self.file_bytes > 0 and self.private_bytes == 0

    def __add__(self, other: Cell) -> Cell:
        return Cell(self.private_bytes + other.private_bytes, self.file_bytes + other.file_bytes)


@dataclass(frozen=True)
class Row:
    label: str
    detail: str
    cells: tuple[Cell, ...]
    indent: int
    bar: bool

    @property
    def peak(self) -> int:
        return max((cell.bytes for cell in self.cells), default=0)


@dataclass(frozen=True)
class Column:
    name: str
    moment: Moment


@dataclass
class _CategoryTotals:
    """One category of one owner over all columns."""

    cells: list[Cell]
    blocks: list[int]
    by_instance: dict[str | None, int] = field(default_factory=lambda: defaultdict(int))
    """Largest bytes of each instance over the columns."""


def table_columns(peaks: Peaks) -> tuple[Column, ...]:
    """The columns that there are: a run that failed in load has no inference."""
    found = ((name, getattr(peaks, name)) for name in COLUMNS)
    return tuple(Column(name, peak.moment) for name, peak in found if peak is not None)


def owner_rows(summary: Summary, columns: tuple[Column, ...], scale: Scale) -> list[Row]:
    """Rows of the counted owners, the largest owner first."""
    largest = max((c.moment.private_bytes + c.moment.file_bytes for c in columns), default=0)
    owners = _owners(columns)
    rows: list[Row] = []
    for owner in sorted(owners, key=lambda owner: (-_peak(_sum(owners[owner].values(), len(columns))), owner)):
        mine = (d for d in summary.delegates if owner == f"delegate:{d.backend}")
        sharing = [Instance(d.method, d.instance) for d in mine if d.shared_with]
        label = owner_label(owner, summary.delegates, LABEL_LIMIT)
        main = _main_blocks(summary, owner)
        rows += _OwnerRows(owners[owner], columns, sharing, main, largest * SMALL, scale).rows(label)
    return rows


def beside_row(columns: tuple[Column, ...]) -> Row | None:
    """The caller's tensors, which no peak counts."""
    cells = tuple(_host_tensors(column.moment) for column in columns)
    if not any(cell.bytes for cell in cells):
        return None
    return Row("beside: host inputs, outputs", "", cells, 0, bar=False)


def device_rows(summary: Summary, columns: tuple[Column, ...]) -> list[Row]:
    """Memory of devices, which no peak counts: each heap at its own largest in load, in inference and at rest."""
    rows = []
    for heap in summary.device_memory:
        figures = {"load": heap.load_peak_bytes, "inference": heap.inference_peak_bytes, "steady": heap.steady_bytes}
        cells = tuple(Cell(figures[column.name] or 0) for column in columns)
        label = f"beside: {memory_name(heap.memory)}, {owner_name(heap.owner)} {heap.name}"
        rows.append(Row(clean(label, LABEL_LIMIT), "", cells, 0, bar=False))
    return rows


def _host_tensors(moment: Moment) -> Cell:
    cell = Cell()
    for owner in moment.owners:
        if owner.owner == HOST:
            for category in owner.categories:
                if category.category is Category.INPUTS_OUTPUTS:
                    cell += Cell(category.private_bytes, category.file_bytes)
    return cell


def _owners(columns: tuple[Column, ...]) -> dict[str, dict[Category, _CategoryTotals]]:
    owners: dict[str, dict[Category, _CategoryTotals]] = {}
    for at, column in enumerate(columns):
        for entry in column.moment.owners:
            if is_counted(entry.owner):
                _add(owners.setdefault(entry.owner, {}), entry, at, len(columns))
    return owners


def _add(categories: dict[Category, _CategoryTotals], entry: OwnerBytes, at: int, width: int) -> None:
    for item in entry.categories:
        totals = categories.setdefault(item.category, _CategoryTotals([Cell()] * width, [0] * width))
        totals.cells[at] += Cell(item.private_bytes, item.file_bytes)
        totals.blocks[at] += item.blocks
        size = item.private_bytes + item.file_bytes
        totals.by_instance[entry.instance] = max(totals.by_instance[entry.instance], size)


@dataclass(frozen=True)
class _OwnerRows:
    """The rows of one owner."""

    categories: dict[Category, _CategoryTotals]
    columns: tuple[Column, ...]
    sharing: list[Instance]
    main_blocks: dict[Category, list[tuple[int, int]]]
    small: float
    scale: Scale

    def rows(self, label: str) -> list[Row]:
        total = self._sum(self.categories)
        order = [c for c in sorted(self.categories, key=self._rank) if self._peak(c) > 0]
        large = [category for category in order if self._peak(category) >= self.small]
        rest = [category for category in order if category not in large]
        if not large:
            return [Row(label, "", total, 0, bar=False)]
        inline = f"{label}  {category_name(large[0])}"
        if len(large) == 1 and _peak(self._sum(rest)) < self.small and len(inline) <= LABEL_LIMIT:
            return [Row(inline, "", total, 0, bar=True)]
        rows = [Row(label, "", total, 0, bar=False)]
        for category in large:
            totals = self.categories[category]
            rows.append(Row(category_name(category), self._detail(category, totals), tuple(totals.cells), 2, bar=True))
        return [*rows, self._rest_row(rest)] if rest else rows

    def _rank(self, category: Category) -> tuple[float, str]:
        # Where two are as large, what is there in more columns comes first: packed weights before the originals.
        present = sum(1 for cell in self.categories[category].cells if cell.bytes)
        return -self._peak(category) * (1 + 0.05 * present), category.value

    def _peak(self, category: Category) -> int:
        return _peak(self.categories[category].cells)

    def _sum(self, categories: Iterable[Category]) -> tuple[Cell, ...]:
        return _sum([self.categories[category] for category in categories], len(self.columns))

    def _rest_row(self, rest: list[Category]) -> Row:
        at_rest = max(rest, key=lambda c: (self.categories[c].cells[-1].bytes, self._peak(c)))
        named = [c for c in rest if c in _WEIGHTS] or [at_rest]
        name = "weights" if len(named) == 2 else category_name(named[0])
        cells = self._sum(rest)
        pairs = zip(cells, self._sum(named), strict=True)
        if any(cell.bytes - part.bytes > NAMED_BY_FIRST * cell.bytes for cell, part in pairs):
            name += ", other"
        return Row(name, self._file_note(name, rest, cells), cells, 2, bar=True)

    def _file_note(self, name: str, rest: list[Category], cells: tuple[Cell, ...]) -> str:
        """What of a mixed cell is file-backed, as a cell has one mark only: ``(+0.2 f original in load)``."""
        for at, (cell, column) in enumerate(zip(cells, self.columns, strict=True)):
            passing = any(other.file_bytes == 0 for other in cells)
            if cell.file_bytes and cell.private_bytes and passing:
                backed = [category for category in rest if self.categories[category].cells[at].file_bytes]
                what = f" {category_name(backed[0]).split()[0]}" if len(backed) == 1 and len(name) <= SHORT_NAME else ""
                return f"(+{self.scale.plain(cell.file_bytes)} f{what} in {column.name})"
        return ""

    def _detail(self, category: Category, totals: _CategoryTotals) -> str:
        """How many blocks, in whose name: ``4 blocks``, ``[0]9 [1]9 [2]9``, ``shared by [0..2]``."""
        sizes = {name: size for name, size in totals.by_instance.items() if size}
        if set(sizes) == {None} and len(self.sharing) > 1:
            return f"shared by {instances_label(self.sharing)}"
        known = sorted((found, sizes[name]) for name in sizes if name and (found := parse_instance(name)))
        plain = len({instance.method for instance, _ in known}) == 1 and all(size >= self.small for _, size in known)
        if 2 <= len(known) <= 3 and plain:
            return " ".join(f"[{instance.index}]{self.scale.whole(size)}" for instance, size in known)
        # The pieces of a mapped file are the loader's doing and say nothing.
        if not any(cell.private_bytes for cell in totals.cells):
            return ""
        return plural(_count(self.main_blocks.get(category, []), _peak(totals.cells)) or max(totals.blocks), "block")


def _main_blocks(summary: Summary, owner: str) -> dict[Category, list[tuple[int, int]]]:
    """(bytes, count) of an owner's largest blocks by category, at the peak of inference or else of load."""
    found: dict[Category, list[tuple[int, int]]] = {}
    for at in ("load", "inference"):
        for category in {b.category for b in summary.largest_blocks if b.owner == owner and b.at == at}:
            mine = (b for b in summary.largest_blocks if (b.owner, b.at, b.category) == (owner, at, category))
            found[category] = sorted(((b.requested_bytes, b.count) for b in mine), reverse=True)
    return found


def _count(blocks: list[tuple[int, int]], total: int) -> int:
    """How many blocks make up nearly all of a category: four packed weights, not the dozen tables beside them.
    0 where the largest blocks do not tell."""
    held = count = 0
    for size, number in blocks:
        held, count = held + size * number, count + number
        if held >= NEARLY_ALL * total:
            return count
    return 0


def _sum(parts: Iterable[_CategoryTotals], width: int) -> tuple[Cell, ...]:
    found = list(parts)
    return tuple(sum((part.cells[at] for part in found), Cell()) for at in range(width))


def _peak(cells: Iterable[Cell]) -> int:
    return max((cell.bytes for cell in cells), default=0)
