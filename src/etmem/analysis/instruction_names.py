"""What an instruction is called, and what the program file says of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

from etmem.analysis.context import Account
from etmem.program.lifetimes import Lifetimes, lifetimes
from etmem.program.model import DelegateCall, FreeCall, JumpFalseCall, KernelCall, MoveCall
from etmem.trace.tables import Scope, ScopeKind

if TYPE_CHECKING:
    from etmem.program.model import Instruction, Plan

NATIVE_CALL = "native_call_"
_OTHERS = {MoveCall: "move", JumpFalseCall: "jump_false", FreeCall: "free"}


@dataclass(frozen=True)
class PlanFacts:
    """One method of a program file, with its planned memory over its instructions."""

    plan: Plan

    @cached_property
    def lifetimes(self) -> Lifetimes:
        return lifetimes(self.plan)

    def time(self, chain: int, instruction: int) -> int | None:
        """The place among all instructions, chains one after another; None for one that the file lacks."""
        if not 0 <= chain < len(self.plan.chains) or not 0 <= instruction < len(self.plan.chains[chain].instructions):
            return None
        return self._starts[chain] + instruction

    def live_bytes(self, chain: int, instruction: int) -> int | None:
        """Planned memory in use while it runs."""
        time = self.time(chain, instruction)
        return None if time is None else self.planned_live[time]

    def instruction(self, chain: int, instruction: int) -> Instruction | None:
        time = self.time(chain, instruction)
        return None if time is None else self.lifetimes.instructions[time]

    def call_of(self, delegate: int) -> tuple[int, int] | None:
        """(chain, instruction) of the first call of a delegate."""
        for number, chain in enumerate(self.plan.chains):
            for index, entry in enumerate(chain.instructions):
                if isinstance(entry, DelegateCall) and entry.delegate == delegate:
                    return number, index
        return None

    def name(self, entry: Instruction) -> str:
        """``aten::cumsum.out``, the backend of a delegate, or the kind of anything else."""
        if isinstance(entry, KernelCall):
            return str(self.plan.operators[entry.operator])
        if isinstance(entry, DelegateCall):
            return self.plan.delegates[entry.delegate].backend
        return _OTHERS[type(entry)]

    @cached_property
    def planned_live(self) -> tuple[int, ...]:
        """By instruction, bytes of the storages in use."""
        change = [0] * (len(self.lifetimes.instructions) + 1)
        for storage in self.lifetimes.storages:
            change[max(storage.first, 0)] += storage.bytes
            if storage.last + 1 < len(change):
                change[storage.last + 1] -= storage.bytes
        return tuple(accumulate(change))

    @cached_property
    def _starts(self) -> tuple[int, ...]:
        return tuple(accumulate((len(chain.instructions) for chain in self.plan.chains), initial=0))


class InstructionNames:
    """Names from the program file where it is there, else from what the runtime and its kernels call themselves."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._plans: dict[tuple[int, str], PlanFacts | None] = {}
        self._inside: dict[int, Scope] = {}
        self._delegates: dict[int, Scope] = {}
        for scope in account.table.scopes.values():
            if scope.kind is ScopeKind.INSTRUCTION and scope.name.startswith(NATIVE_CALL):
                self._inside.setdefault(scope.parent, scope)
            elif scope.kind is ScopeKind.DELEGATE:
                self._delegates.setdefault(scope.parent, scope)

    def plan(self, program: int, method: str) -> PlanFacts | None:
        place = (program, method)
        if place not in self._plans:
            file = self._account.program(program)
            found = file.plan(method) if file is not None else None
            self._plans[place] = PlanFacts(found) if found is not None else None
        return self._plans[place]

    def operator(self, scope: Scope) -> str:
        phase = self._phase(scope)
        plan = self.plan(phase.a, phase.name) if phase is not None else None
        entry = plan.instruction(scope.a, scope.b) if plan is not None else None
        if plan is not None and entry is not None:
            return plan.name(entry)
        delegate = self._delegates.get(scope.id)
        if delegate is not None:
            return delegate.name
        return self._inside.get(scope.id, scope).name.removeprefix(NATIVE_CALL)

    def instance(self, scope: Scope) -> str | None:
        """The label of the delegate that an instruction calls."""
        delegate = self._delegates.get(scope.id)
        index = int(self._account.table.instance[delegate.id]) if delegate is not None else -1
        return self._account.instances[index].label if index >= 0 else None

    def _phase(self, scope: Scope) -> Scope | None:
        return self._account.table.scopes.get(int(self._account.table.phase[scope.id]))
