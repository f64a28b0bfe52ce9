"""What changed between two program files, by what they say: nothing is run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from etmem.planning.model import Forecast
    from etmem.program import Plan, Program

SCHEMA = "etmem.program-diff/1"


@dataclass(frozen=True)
class FileChange:
    """One figure of the file. ``what`` is ``file``, ``constants``, ``named_data``, ``planned``, ``delegates``,
    ``delegate_blobs``, ``kernels``, ``input`` ..., null figures where one file has no such thing."""

    method: str | None
    what: str
    name: str
    a: int | None
    b: int | None
    unit: str
    """``B`` or empty for a count."""

    @property
    def delta(self) -> int:
        return (self.b or 0) - (self.a or 0)


@dataclass(frozen=True)
class ProgramDiff:
    a: str
    b: str
    changes: tuple[FileChange, ...]
    """Bytes first, the largest change first; then counts."""
    schema: str = SCHEMA

    @property
    def empty(self) -> bool:
        return not self.changes


@dataclass(frozen=True)
class FileFigure:
    """One figure of a program file."""

    method: str | None
    what: str
    name: str
    value: int
    unit: str


_Key = tuple[str | None, str, str, str]


def figures(program: Program) -> tuple[FileFigure, ...]:
    """What a program file says of memory."""
    return tuple(FileFigure(*key[:3], value, key[3]) for key, value in _figures(program))


def estimate(forecasts: Sequence[Forecast]) -> tuple[FileFigure, ...]:
    """What a plan expects: private and file bytes at each moment, in all and by owner and category."""
    found = []
    for forecast in forecasts:
        total = forecast.private_bytes + forecast.file_bytes
        found.append(FileFigure(forecast.method, "estimate", forecast.at, total, "B"))
        sizes: Counter[str] = Counter()
        for line in forecast.lines:
            sizes[f"{line.owner} {line.category.value}"] += line.private_bytes + line.file_bytes
        found += [FileFigure(forecast.method, f"estimate of {forecast.at}", *part, "B") for part in sizes.items()]
    return tuple(found)


def diff_programs(
    a: Program,
    b: Program,
    *,
    names: tuple[str, str] = ("a", "b"),
    estimates: tuple[Sequence[FileFigure], Sequence[FileFigure]] = ((), ()),
) -> ProgramDiff:
    """``estimates`` are those of the two programs' plans, where both have one."""
    old, new = (
        dict(_figures(program)) | {(one.method, one.what, one.name, one.unit): one.value for one in expected}
        for program, expected in zip((a, b), estimates, strict=True)
    )
    changes = [
        FileChange(key[0], key[1], key[2], old.get(key), new.get(key), key[3])
        for key in dict.fromkeys((*old, *new))
        if old.get(key) != new.get(key)
    ]
    changes.sort(key=lambda change: (not change.unit, -abs(change.delta)))
    return ProgramDiff(*names, tuple(changes))


def _figures(program: Program) -> Iterator[tuple[_Key, int]]:
    yield (None, "file", "", "B"), program.file_bytes
    yield (None, "flatbuffer", "", "B"), program.header.program_bytes
    yield (None, "constants", "", "B"), program.constant_bytes
    named = dict.fromkeys(data.segment for data in program.named_data)
    yield (None, "named_data", "", "B"), sum(program.segments[segment].bytes for segment in named)
    for plan in program.plans:
        yield from _method(program, plan)


def _method(program: Program, plan: Plan) -> Iterator[tuple[_Key, int]]:
    from etmem.program import KernelCall, Tensor

    for mem_id, size in plan.planned:
        yield (plan.name, "planned", f"planned[{mem_id}]", "B"), size
    blobs: Counter[str] = Counter()
    for delegate in plan.delegates:
        blobs[delegate.backend] += program.blob_bytes(delegate)
    for backend, size in blobs.items():
        yield (plan.name, "delegate_blobs", backend, "B"), size
    for backend, count in Counter(delegate.backend for delegate in plan.delegates).items():
        yield (plan.name, "delegates", backend, ""), count
    calls = (one for chain in plan.chains for one in chain.instructions if isinstance(one, KernelCall))
    for operator, count in Counter(str(plan.operators[call.operator]) for call in calls).items():
        yield (plan.name, "kernels", operator, ""), count
    for kind, indices in (("input", plan.inputs), ("output", plan.outputs)):
        for number, index in enumerate(indices):
            value = plan.values[index]
            if isinstance(value, Tensor):
                yield (plan.name, kind, str(number), "B"), value.nbytes
