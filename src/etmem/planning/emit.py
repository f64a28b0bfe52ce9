"""Pool sizes as lines to paste, under the names that ExecuTorch's own runner uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from etmem.planning.model import ProgramPlan

METHOD_POOL = "ET_ARM_BAREMETAL_METHOD_ALLOCATOR_POOL_SIZE"
TEMP_POOL = "ET_ARM_BAREMETAL_SCRATCH_TEMP_ALLOCATOR_POOL_SIZE"


def pool_needs(plan: ProgramPlan) -> dict[str, int]:
    """The method pool has to hold every method that is loaded; the temp pool is given back between loads."""
    pools = [
        next(
            pools
            for pools in method.pools
            if (pools.pointer_bytes, pools.temp_pool) == (plan.target.pointer_bytes, True)
        )
        for method in plan.methods
    ]
    return {
        METHOD_POOL: sum(each.method_bytes for each in pools),
        TEMP_POOL: max((each.temp_bytes for each in pools), default=0),
    }


def cmake_lines(plan: ProgramPlan) -> list[str]:
    return [f"{name}={size}" for name, size in pool_needs(plan).items()]


def cmake(plan: ProgramPlan) -> str:
    """Cache variables for a CMake command line or preset."""
    lines = [f'set({name} {size} CACHE STRING "bytes")' for name, size in pool_needs(plan).items()]
    return "\n".join([f"# {_origin(plan)}", *lines, *(f"# {line}" for line in _planned(plan))]) + "\n"


def header(plan: ProgramPlan) -> str:
    """A C header."""
    lines = [f"#define {name} {size}" for name, size in pool_needs(plan).items()]
    lines += [
        f"#define ETMEM_PLANNED_{_macro(method.name)}_{arena.mem_id}_SIZE {arena.bytes}"
        for method in plan.methods
        for arena in method.arenas
    ]
    return "\n".join([f"/* {_origin(plan)} */", "#pragma once", *lines]) + "\n"


def _macro(name: str) -> str:
    return "".join(character if character.isascii() and character.isalnum() else "_" for character in name).upper()


def _planned(plan: ProgramPlan) -> list[str]:
    return [
        f"planned memory {arena.mem_id} of {_macro(method.name).lower()}: {arena.bytes} bytes"
        for method in plan.methods
        for arena in method.arenas
    ]


def _origin(plan: ProgramPlan) -> str:
    return f"etmem plan, target {plan.target.name}, {8 * plan.target.pointer_bytes}-bit"
