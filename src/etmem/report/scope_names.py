"""Scopes in words: what was going on when memory was asked for."""

from __future__ import annotations

from etmem.analysis.context import Context
from etmem.analysis.scopes import PHASE_KINDS
from etmem.model.words import EXECUTORCH, HOST, Category
from etmem.trace.tables import Scope, ScopeKind

OUTSIDE = "outside of phases"
_STAGES = ("init", "execute", "destroy")
_CALLS = {"OPERATOR_CALL": "operator call", "DELEGATE_CALL": "delegate call"}
_NATIVE = "native_call_"


class ScopeNames:
    """Paths of one trace's scopes, outermost first; iterations of one method have the same path."""

    def __init__(self, context: Context) -> None:
        self._table = context.table
        self._several = len({span.scope.a for span in context.spans}) > 1
        self._paths: dict[int, tuple[str, ...]] = {0: (OUTSIDE,)}

    def path(self, scope: int) -> tuple[str, ...]:
        found = self._paths.get(scope)
        if found is None:
            found = self._paths[scope] = self._path(self._table.scopes.get(scope))
        return found

    def kernel(self, scope: int) -> str | None:
        """The kernel in whose call a scope lies: ``aten::add.out``."""
        found = self._table.scopes.get(scope)
        while found is not None and not found.kind.is_phase:
            if found.kind is ScopeKind.INSTRUCTION and found.name.startswith(_NATIVE):
                return found.name.removeprefix(_NATIVE)
            found = self._table.scopes.get(found.parent)
        return None

    def category(self, owner: str, category: Category) -> str:
        """What a path ends in: ``XnnpackBackend packed_weights``."""
        name = {EXECUTORCH: "ExecuTorch", HOST: "host"}.get(owner, owner.removeprefix("delegate:"))
        return f"{name} {category.value}"

    def _path(self, scope: Scope | None) -> tuple[str, ...]:
        if scope is None:
            return (OUTSIDE,)
        if scope.kind.is_phase:
            return (self._phase(scope),)
        outer = self.path(scope.parent) if scope.parent in self._table.scopes else (OUTSIDE,)
        if scope.kind is ScopeKind.INSTRUCTION and self._is_same_instruction(scope):
            # The call and the kernel in it are one instruction: the kernel's name says more.
            outer = outer[:-1]
        return (*outer, self._name(scope))

    def _is_same_instruction(self, scope: Scope) -> bool:
        parent = self._table.scopes.get(scope.parent)
        return (
            parent is not None and parent.kind is ScopeKind.INSTRUCTION and (parent.a, parent.b) == (scope.a, scope.b)
        )

    def _name(self, scope: Scope) -> str:
        if scope.kind is ScopeKind.DELEGATE:
            stage = _STAGES[scope.b] if 0 <= scope.b < len(_STAGES) else ""
            return f"{scope.name}[{scope.a}] {stage}".rstrip() if scope.a >= 0 else f"{scope.name} {stage}".rstrip()
        if scope.kind is ScopeKind.INSTRUCTION:
            return f"instruction {scope.b}: {_CALLS.get(scope.name, scope.name.removeprefix(_NATIVE))}"
        return scope.name

    def _phase(self, scope: Scope) -> str:
        kind = PHASE_KINDS[scope.kind].value
        # A program_load carries the file's path, which is no method.
        method = "" if scope.kind is ScopeKind.PROGRAM_LOAD else f" {scope.name}"
        return f"{kind}{method} #{scope.a}" if self._several else f"{kind}{method}"
