"""Whether two runs are like for like, and if not, why and what that spoils."""

from __future__ import annotations

from collections.abc import Iterator

from etmem.analysis.diff_model import Mismatch, MismatchCode, Spoils
from etmem.model.summary import InputSpec, Summary
from etmem.model.words import IssueCode, Severity

_ALL = (Spoils.LOAD, Spoils.INFERENCE, Spoils.BLOCKS)
_WITHHOLDING = (IssueCode.HOOK_NOT_REACHED, IssueCode.HOOKS_UNAVAILABLE, IssueCode.EXECUTORCH_STATIC)
_LIBC_MALLOC = ("libc", "glibc")


def mismatches(a: Summary, b: Summary) -> tuple[Mismatch, ...]:
    """All that differs in how the two were run and on what; empty for runs that are like for like."""
    return (*_target(a, b), *_environment(a, b), *_quality(a, b))


def comparable(found: tuple[Mismatch, ...], what: Spoils) -> bool:
    return not any(what in mismatch.spoils for mismatch in found)


def _target(a: Summary, b: Summary) -> Iterator[Mismatch]:
    old, new = a.target, b.target
    code = MismatchCode
    rows: tuple[tuple[MismatchCode, object, object, str, tuple[Spoils, ...]], ...] = (
        (code.ARCH, old.arch, new.arch, "Delegates pack and tile by the instruction set.", _ALL),
        (code.ISA, old.isa, new.isa, "XNNPACK's packed weights and tiles follow the CPU's instruction set.", _ALL),
        (code.POINTER_WIDTH, old.pointer_bytes, new.pointer_bytes, "Tables of pointers differ in width.", _ALL),
        (code.EXECUTORCH, old.executorch, new.executorch, "Another runtime allocates in other ways.", ()),
        (code.RUNTIME, old.runtime, new.runtime, "Another program around the runtime allocates for it.", (Spoils.RSS,)),
        (code.LOADER, old.loader, new.loader, "The loader decides what of the file is private, mapped or kept.", ()),
        (code.PRESET, old.preset, new.preset, "The presets have other backend options.", ()),
        (
            code.BACKEND_OPTIONS,
            " ".join(old.backend_options) or "none",
            " ".join(new.backend_options) or "none",
            "Options decide what a delegate shares and keeps.",
            (),
        ),
        (code.THREADS, old.threads or "default", new.threads or "default", "Delegates may keep memory per thread.", ()),
        (code.DRY, _dry(old.dry), _dry(new.dry), "A dry run has no RSS and touches no page.", (Spoils.RSS,)),
        (
            code.ITERATIONS,
            old.iterations,
            new.iterations,
            "Allocations add up over more inferences; peaks do not.",
            (Spoils.ALLOCATIONS,),
        ),
        (
            code.INPUTS,
            _inputs(old.inputs),
            _inputs(new.inputs),
            "Other shapes need other memory in inference.",
            (Spoils.INFERENCE, Spoils.BLOCKS),
        ),
        (
            code.METHODS,
            _methods(a),
            _methods(b),
            "Only what both runs have is alike.",
            _ALL[:2],
        ),
    )
    for name, one, other, effect, spoils in rows:
        if one != other:
            yield Mismatch(name, str(one), str(other), effect, spoils)


def _environment(a: Summary, b: Summary) -> Iterator[Mismatch]:
    old, new = a.environment, b.environment
    if old.page_bytes != new.page_bytes:
        effect = "Mappings are counted in whole pages."
        yield Mismatch(MismatchCode.PAGE_SIZE, str(old.page_bytes), str(new.page_bytes), effect, _ALL)
    allocators = [("libc" if e.allocator in _LIBC_MALLOC else e.allocator) for e in (old, new)]
    if allocators[0] != allocators[1]:
        effect = "Requested bytes are the same under any malloc; what it keeps, and RSS, are not."
        yield Mismatch(MismatchCode.ALLOCATOR, old.allocator, new.allocator, effect, (Spoils.RSS,))


def _quality(a: Summary, b: Summary) -> Iterator[Mismatch]:
    wrong = [_errors(a), _errors(b)]
    if any(wrong):
        effect = "Figures of a run that failed, or was not seen whole, end where it ended."
        yield Mismatch(MismatchCode.FAILED, wrong[0] or "ok", wrong[1] or "ok", effect, _ALL)
    known = [owners_known(a), owners_known(b)]
    if not all(known):
        words = ["known" if one else "withheld" for one in known]
        yield Mismatch(
            MismatchCode.OWNERS_WITHHELD, words[0], words[1], "Only totals can be compared.", (Spoils.BLOCKS,)
        )


def _errors(summary: Summary) -> str:
    return ", ".join(issue.code.value for issue in summary.issues if issue.severity is Severity.ERROR)


def owners_known(summary: Summary) -> bool:
    """Owners are withheld as a whole where the hooks were not reached."""
    return not any(issue.code in _WITHHOLDING and issue.severity is Severity.ERROR for issue in summary.issues)


def _dry(dry: bool) -> str:
    return "dry" if dry else "computed"


def _inputs(inputs: tuple[InputSpec, ...]) -> str:
    return " ".join(f"{spec.method}:{spec.index}={spec.dtype}[{','.join(map(str, spec.shape))}]" for spec in inputs)


def _methods(summary: Summary) -> str:
    loaded = dict.fromkeys(phase.method for phase in summary.phases if phase.method is not None)
    return " ".join(sorted(loaded)) or "none"
