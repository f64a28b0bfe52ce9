"""The plan of a microcontroller: what lies in SRAM and flash, and the lines to paste."""

from __future__ import annotations

from typing import TYPE_CHECKING

from etmem.report.units import clean

if TYPE_CHECKING:
    from etmem.planning.model import MethodPlan, PoolSizes, ProgramPlan


def device_lines(plan: ProgramPlan, width: int) -> list[str]:  # noqa: ARG001 -- as the other sections
    lines = [_row("bytes", "SRAM", "flash", "how")]
    bits = 8 * plan.target.pointer_bytes
    for method in plan.methods:
        name = f" of {clean(method.name, 20)}" if len(plan.methods) > 1 else ""
        lines += [
            _row(f"planned memory {arena.mem_id}{name}", f"{arena.bytes:,}", "-", "exact (from the file)")
            for arena in method.arenas
        ]
        pools = pools_of(method, plan.target.pointer_bytes, temp_pool=True)
        how = f"computed, {bits}-bit, temp pool" + ("" if pools.delegates_bytes is not None else ", without delegates")
        lines.append(_row(f"method allocator{name}", f"{pools.method_bytes:,}", "-", how))
        when = "computed; load only"
        if pools.temp_bytes > pools.temp_load_bytes:
            when = f"delegates' scratch; {pools.temp_load_bytes:,} in load"
        lines.append(_row(f"temp allocator{name}", f"{pools.temp_bytes:,}", "-", when))
    lines.append(_row("program and weights", "-", f"{plan.contents[0].file_bytes:,}", "read in place (buffer)"))
    caller = sum(method.caller_bytes for method in plan.methods)
    lines.append(_row("inputs, outputs", f"{caller:,}", "-", "the caller's" if caller else "inside planned memory"))
    for method in plan.methods:
        without = pools_of(method, plan.target.pointer_bytes, temp_pool=False)
        wide = pools_of(method, 8, temp_pool=True)
        lines.append(
            f"without a temp pool: method allocator {without.method_bytes:,}, temp 0   "
            f"64-bit host: {wide.method_bytes:,} + {wide.temp_bytes:,}"
        )
    return [*lines, "", *_paste(plan)]


def _paste(plan: ProgramPlan) -> list[str]:
    from etmem.planning.emit import cmake_lines

    pasted = cmake_lines(plan)
    return [f"paste: {pasted[0]}", *(f"       {line}" for line in pasted[1:])]


def pools_of(method: MethodPlan, pointer_bytes: int, *, temp_pool: bool) -> PoolSizes:
    return next(pools for pools in method.pools if (pools.pointer_bytes, pools.temp_pool) == (pointer_bytes, temp_pool))


def _row(label: str, sram: str, flash: str, how: str) -> str:
    return f"{label:<28}{sram:>9}{flash:>12}   {how}"
