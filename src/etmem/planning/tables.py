"""A plan's tables as rows, and as pandas DataFrames where pandas is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from etmem.model.codec import to_data
from etmem.model.errors import EtmemError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from etmem.planning.model import ProgramPlan

Row = dict[str, object]


def rows(plan: ProgramPlan, table: str) -> list[Row]:
    """The rows of one table. Raises UsageError for a name that is none of ``TABLES``."""
    if table not in TABLES:
        raise UsageError(f"a plan has no table {table!r}", f"one of {', '.join(TABLES)}")
    return list(TABLES[table](plan))


def dataframe(plan: ProgramPlan, table: str) -> Any:
    found = rows(plan, table)
    try:
        import pandas as pd
    except ImportError as error:
        raise EtmemError("to_dataframe needs pandas", "pip install pandas") from error
    return pd.DataFrame(found)


def _plain(record: object, **first: object) -> Row:
    """Fields that are numbers or text."""
    return {**first, **{name: value for name, value in to_data(record).items() if not isinstance(value, list | dict)}}


def _estimate(plan: ProgramPlan) -> Iterator[Row]:
    for moment in plan.estimate:
        for line in moment.lines:
            yield _plain(line, at=moment.at)


def _arenas(plan: ProgramPlan) -> Iterator[Row]:
    for method in plan.methods:
        for arena in method.arenas:
            for place in arena.placed:
                yield _plain(place, method=method.name, mem_id=arena.mem_id)


def _contents(plan: ProgramPlan) -> Iterator[Row]:
    for file in plan.contents:
        for part in file.parts:
            yield _plain(part, path=file.path)


def _pools(plan: ProgramPlan) -> Iterator[Row]:
    for method in plan.methods:
        for pools in method.pools:
            yield _plain(pools, method=method.name)


def _delegates(plan: ProgramPlan) -> Iterator[Row]:
    for method in plan.methods:
        for use in method.delegates:
            yield _plain(use, method=method.name)


def _methods(plan: ProgramPlan) -> Iterator[Row]:
    for method in plan.methods:
        yield _plain(method)


def _buffers(plan: ProgramPlan) -> Iterator[Row]:
    for method in plan.methods:
        for arena in method.arenas:
            yield _plain(arena, method=method.name, waste_bytes=arena.waste_bytes, break_bytes=arena.break_bytes)


def _named_data(plan: ProgramPlan) -> Iterator[Row]:
    for file in plan.contents:
        for part in file.named_data:
            yield _plain(part, path=file.path, users=len(part.used_by))


def _verdicts(plan: ProgramPlan) -> Iterator[Row]:
    for verdict in plan.verdicts:
        yield _plain(verdict, left_bytes=verdict.left_bytes)


def _findings(plan: ProgramPlan) -> Iterator[Row]:
    for finding in plan.findings:
        yield _plain(finding)


TABLES: dict[str, Callable[[ProgramPlan], Iterator[Row]]] = {
    "estimate": _estimate,
    "arenas": _arenas,
    "contents": _contents,
    "pools": _pools,
    "findings": _findings,
    "methods": _methods,
    "buffers": _buffers,
    "delegates": _delegates,
    "named_data": _named_data,
    "verdicts": _verdicts,
}
