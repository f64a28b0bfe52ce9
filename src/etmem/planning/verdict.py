"""Whether budgets hold: of private bytes, of RSS, and of each region of a device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from etmem.planning.model import Need, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from etmem.planning.model import Contents, Forecast, MethodPlan
    from etmem.planning.options import PlanOptions, Region


def verdicts(
    options: PlanOptions,
    contents: Sequence[Contents],
    methods: Sequence[MethodPlan],
    estimate: Sequence[Forecast],
) -> tuple[Verdict, ...]:
    found: list[Verdict] = []
    if options.budget_bytes is not None:
        found.append(_peak("private", options.budget_bytes, estimate, methods, file=False))
    if options.budget_rss_bytes is not None:
        found.append(_peak("rss", options.budget_rss_bytes, estimate, methods, file=True))
    found += [_region(region, contents, methods) for region in options.regions]
    return tuple(found)


def _peak(
    name: str, budget: int, estimate: Sequence[Forecast], methods: Sequence[MethodPlan], *, file: bool
) -> Verdict:
    """Against the largest moment. RSS counts what a mapping has read too, and not the process itself."""
    if not estimate:
        need, parts, told = _pools(methods)
        return Verdict(name, budget, need, need <= budget if told else None, "" if told else _UNTOLD, tuple(parts))
    largest = max(estimate, key=lambda moment: moment.private_bytes + (moment.file_bytes if file else 0))
    need = largest.private_bytes + (largest.file_bytes if file else 0)
    spread = None if largest.high_bytes is None else largest.high_bytes - (largest.private_bytes + largest.file_bytes)
    reason = "the process itself (a runtime, its libraries) comes on top" if file else ""
    fits: bool | None
    if need > budget and need - _slack(largest) > budget:
        fits = False
    elif spread is None:
        fits, reason = None, "a delegate's own memory is not told by its blob"
    elif need + spread > budget or need > budget:
        fits, reason = None, "the estimate's interval reaches over the budget"
    else:
        fits = True
    parts = [Need(f"peak of {largest.at}", need)]
    return Verdict(name, budget, need, fits, reason, tuple(parts))


def _slack(moment: Forecast) -> int:
    return moment.private_bytes + moment.file_bytes - moment.low_bytes


_UNTOLD = "a delegate does not tell what it asks of the method pool"


def _pools(methods: Sequence[MethodPlan]) -> tuple[int, list[Need], bool]:
    """Planned memory and pools of all methods, as a runner holds them."""
    parts: list[Need] = []
    told = True
    for method in methods:
        parts += [Need(f"planned.{arena.mem_id}", arena.bytes) for arena in method.arenas]
        pools = next(pools for pools in method.pools if pools.temp_pool)
        parts += [Need("method", pools.method_bytes), Need("temp", pools.temp_bytes)]
        told = told and pools.delegates_bytes is not None
    return sum(part.bytes for part in parts), parts, told


def _region(region: Region, contents: Sequence[Contents], methods: Sequence[MethodPlan]) -> Verdict:
    parts = [Need(name, size) for held in region.holds for name, size in _held(held, contents, methods)]
    told = all(pools.delegates_bytes is not None for method in methods for pools in method.pools if pools.temp_pool)
    need = sum(part.bytes for part in parts)
    unsure = not told and "method" in region.holds
    fits = False if need > region.bytes else None if unsure else True
    return Verdict(region.name, region.bytes, need, fits, _UNTOLD if unsure and fits is None else "", tuple(parts))


def _held(held: str, contents: Sequence[Contents], methods: Sequence[MethodPlan]) -> Iterator[tuple[str, int]]:
    kind, _, number = held.partition(".")
    if held == "program":
        yield held, sum(file.file_bytes for file in contents)
    elif held == "delegates":
        yield held, sum(part.bytes for file in contents for part in file.parts if part.kind == "delegate_blob")
    for method in methods:
        pools = next(pools for pools in method.pools if pools.temp_pool)
        if held == "method":
            yield held, pools.method_bytes
        elif held == "temp":
            yield held, pools.temp_bytes
        elif held == "inputs":
            yield held, method.caller_bytes
        elif kind == "planned":
            for arena in method.arenas:
                if not number or int(number) == arena.mem_id:
                    yield f"planned.{arena.mem_id}", arena.bytes
