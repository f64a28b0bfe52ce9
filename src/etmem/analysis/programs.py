"""The rows of ``Summary.programs``."""

from __future__ import annotations

from etmem.analysis.context import Account
from etmem.model.summary import ProgramInfo
from etmem.model.words import PhaseKind
from etmem.program import is_constant_method


def programs(account: Account) -> tuple[ProgramInfo, ...]:
    """One row per loaded program, in the order of their loads."""
    ids = dict.fromkeys(span.scope.a for span in account.spans)
    return tuple(_program(account, program) for program in ids)


def _program(account: Account, program: int) -> ProgramInfo:
    file = account.program(program)
    noted = account.trace.number(f"program.{program}.bytes")
    if file is not None:
        constant = tuple(plan.name for plan in file.plans if is_constant_method(plan))
        methods, size = file.methods, file.file_bytes
    else:
        constant, size = (), None
        methods = tuple(dict.fromkeys(_loaded(account, program)))
    path = account.program_path(program) or (file.path if file is not None else None)
    return ProgramInfo(program, path, noted or size, methods, constant)


def _loaded(account: Account, program: int) -> list[str]:
    noted = account.trace.note(f"program.{program}.methods")
    if noted:
        return [name for name in noted.split(",") if name]
    return [span.scope.name for span in account.spans_of(PhaseKind.METHOD_LOAD) if span.scope.a == program]
