"""Why it changed, as far as a reason has a name: findings, delegates, the file, what was configured otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from etmem.analysis.diff_findings import pairs
from etmem.analysis.diff_model import Mismatch, MismatchCode, Reason, ReasonCode
from etmem.model.summary import Summary

_CONFIGURATION = {
    MismatchCode.LOADER: "loader",
    MismatchCode.BACKEND_OPTIONS: "backend options",
    MismatchCode.PRESET: "preset",
    MismatchCode.THREADS: "threads",
    MismatchCode.EXECUTORCH: "ExecuTorch",
    MismatchCode.RUNTIME: "runtime",
    MismatchCode.ISA: "instruction set",
    MismatchCode.ARCH: "architecture",
    MismatchCode.POINTER_WIDTH: "pointer width",
    MismatchCode.INPUTS: "inputs",
    MismatchCode.METHODS: "methods",
}
_NAMED_FIRST = (ReasonCode.CONFIGURATION,)


def reasons(a: Summary, b: Summary, mismatches: tuple[Mismatch, ...]) -> tuple[Reason, ...]:
    """What was configured otherwise first, then by the size of what each reason brings."""
    found = [*_configured(mismatches), *_findings(a, b), *_delegates(a, b), *_programs(a, b)]
    return tuple(
        sorted(found, key=lambda r: (r.code not in _NAMED_FIRST, r.delta_bytes is None, -abs(r.delta_bytes or 0)))
    )


def _configured(mismatches: tuple[Mismatch, ...]) -> Iterator[Reason]:
    for mismatch in mismatches:
        name = _CONFIGURATION.get(mismatch.code)
        if name is not None:
            text = f"{mismatch.a} -> {mismatch.b}. {mismatch.effect}"
            yield Reason(ReasonCode.CONFIGURATION, name, None, text, {"mismatch": mismatch.code.value})


def _findings(a: Summary, b: Summary) -> Iterator[Reason]:
    for x, y in pairs(a.findings, b.findings):
        if x is None and y is not None:
            yield Reason(ReasonCode.FINDING_NEW, y.code.value, y.bytes, y.advice, dict(y.detail))
        elif y is None and x is not None:
            yield Reason(ReasonCode.FINDING_GONE, x.code.value, -x.bytes, f"was: {x.advice}", dict(x.detail))
        elif x is not None and y is not None and x.bytes != y.bytes:
            text = f"{x.bytes:,} -> {y.bytes:,} B; {y.advice}"
            yield Reason(ReasonCode.FINDING_CHANGED, y.code.value, y.bytes - x.bytes, text, dict(y.detail))


def _delegates(a: Summary, b: Summary) -> Iterator[Reason]:
    old, new = _delegate_counts(a), _delegate_counts(b)
    for backend, method in dict.fromkeys((*old, *new)):
        x, y = old[backend, method], new[backend, method]
        if x != y:
            detail: dict[str, object] = {"backend": backend, "method": method, "a": x, "b": y}
            yield Reason(ReasonCode.DELEGATES, "delegates", None, f"{backend} in {method}: {x} -> {y}", detail)


def _delegate_counts(summary: Summary) -> Counter[tuple[str, str]]:
    return Counter((delegate.backend, delegate.method) for delegate in summary.delegates)


def _programs(a: Summary, b: Summary) -> Iterator[Reason]:
    sizes = [sum(program.file_bytes or 0 for program in one.programs) for one in (a, b)]
    if sizes[0] != sizes[1]:
        text = f"the file has {sizes[0]:,} -> {sizes[1]:,} B"
        yield Reason(ReasonCode.PROGRAM, "program file", sizes[1] - sizes[0], text, {"a": sizes[0], "b": sizes[1]})
