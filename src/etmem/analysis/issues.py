"""Typed remarks on the data: what is missing from it, and what that does to the figures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath

from etmem.analysis import by_stack
from etmem.analysis.context import Account
from etmem.analysis.descriptions import described
from etmem.analysis.misuse import misuse
from etmem.delegates.description import Evidence
from etmem.model.summary import Issue
from etmem.model.words import IssueCode, PhaseKind, Severity, is_delegate
from etmem.trace.tables import DelegateStage, as_number

NOTE_PREFIX = "issue."
"""What the agent and the hooks note under this and a code becomes that issue; the note is its text."""

_HINTS: dict[IssueCode, tuple[Severity, str]] = {
    IssueCode.MEMLOCK_LIMITED: (Severity.WARNING, "raise `ulimit -l`, or compare only runs under the same limit"),
    IssueCode.HIGH_WATER_UNAVAILABLE: (Severity.WARNING, "peaks of RSS need a writable /proc/self/clear_refs"),
    IssueCode.RESIDENCY_UNAVAILABLE: (Severity.WARNING, "the balance needs PAGEMAP_SCAN or /proc/self/pagemap"),
    IssueCode.OTHER_ALLOCATOR: (
        Severity.WARNING,
        "run without it for exact blocks of C++ code; of malloc they are",
    ),
    IssueCode.HOOKS_UNAVAILABLE: (Severity.ERROR, "`etmem doctor` says what is missing to build the hooks"),
    IssueCode.EXECUTORCH_STATIC: (Severity.ERROR, "link ExecuTorch's shared libraries, or use etmem's decorators"),
    IssueCode.METHODS_LOADED_BEFORE_ATTACH: (Severity.WARNING, "start the capture before the program is loaded"),
    IssueCode.NO_EVENT_TRACER: (Severity.INFO, "instructions need an ExecuTorch built with its event tracer"),
}


_ALLOCATOR = re.compile(r"lib(?:jemalloc|tcmalloc|mimalloc)[\w-]*\.so")

_CODES = frozenset(code.value for code in IssueCode)


def issues(account: Account) -> tuple[Issue, ...]:
    """The capture's own first, then what the trace tells; of equal code and message only one.

    Where the capture has an issue of a code, it knows more about it than the trace does.
    """
    checks = (
        *(_noted, _recording, _process, _phases, _hooks, _threads, _descriptions, _dry),
        *(_allocator, _snapshots, _high_water, _memlock, _malloc, misuse),
    )
    found = list(account.options.issues)
    known = {issue.code for issue in found}
    for check in checks:
        found += (issue for issue in check(account) if issue.code not in known)
    return tuple({(issue.code, issue.message): issue for issue in reversed(found)}.values())[::-1]


def hooks_missed(account: Account) -> tuple[str, ...]:
    """Methods that were loaded and by their file have delegates, of which no scope was ever entered."""
    if by_stack.asked_for(account.trace) and any(is_delegate(key.owner) for key in account.ownership.keys):
        return ()
    entered = {(instance.program, instance.method) for instance in account.instances}
    missed: dict[str, None] = {}
    for span in account.spans_of(PhaseKind.METHOD_LOAD):
        place = (span.scope.a, span.scope.name)
        if not span.scope.failed and place not in entered and _has_delegates(account, *place):
            missed[place[1]] = None
    return tuple(missed)


def _has_delegates(account: Account, program: int, method: str) -> bool:
    file = account.program(program)
    plan = file.plan(method) if file is not None else None
    if plan is not None:
        return bool(plan.delegates)
    return account.trace.note(f"program.{program}.delegates") not in (None, "0")


def _noted(account: Account) -> Iterator[Issue]:
    for key, text in account.trace.notes:
        if key.startswith(NOTE_PREFIX) and key.removeprefix(NOTE_PREFIX) in _CODES:
            code = IssueCode(key.removeprefix(NOTE_PREFIX))
            severity, hint = _HINTS.get(code, (Severity.WARNING, f"`etmem explain {code}`"))
            yield Issue(code, severity, text, hint)


def _recording(account: Account) -> Iterator[Issue]:
    header = account.trace.header
    if header.dropped_events:
        yield Issue(
            IssueCode.EVENTS_DROPPED,
            Severity.ERROR,
            f"{header.dropped_events:,} events were not recorded: blocks are missing, or seem to live on",
            "profile again with fewer inferences, or a trace on a larger disk",
            {"events": header.dropped_events},
        )
    if header.truncated:
        yield Issue(
            IssueCode.TRACE_TRUNCATED,
            Severity.ERROR,
            "the trace file is shorter than it was: what was cut off is missing",
            "copy it again from where it was written",
        )
    if header.disk_full:
        yield Issue(
            IssueCode.DISK_FULL,
            Severity.ERROR,
            "the disk was full: nothing is recorded after that",
            "write the trace elsewhere with --output",
        )


def _process(account: Account) -> Iterator[Issue]:
    status = account.options.environment.exit_status
    if not account.trace.header.closed and status is not None and status < 0:
        yield Issue(
            IssueCode.PROCESS_KILLED,
            Severity.WARNING,
            f"the process was ended by signal {-status}; the report covers what came before",
            "the log beside the trace may say why",
            {"signal": -status},
        )


def _phases(account: Account) -> Iterator[Issue]:
    static = any(issue.code is IssueCode.EXECUTORCH_STATIC for issue in account.options.issues)
    if not account.spans and not static:
        yield Issue(
            IssueCode.NO_EXECUTORCH,
            Severity.ERROR,
            "no ExecuTorch program was loaded in this process",
            "if a child process runs it, record those too: `etmem run --children`",
        )
    failed = [span for span in account.spans if span.scope.failed]
    for span in failed:
        name = f" of {span.scope.name}" if span.kind is not PhaseKind.PROGRAM_LOAD else ""
        yield Issue(
            IssueCode.PROGRAM_FAILED,
            Severity.ERROR,
            f"{span.kind}{name} failed: its figures end where it did",
            "ExecuTorch's log says why: --verbose",
        )


def _hooks(account: Account) -> Iterator[Issue]:
    error = account.trace.note("hooks.error")
    if error is not None:
        severity, hint = _HINTS[IssueCode.HOOKS_UNAVAILABLE]
        yield Issue(IssueCode.HOOKS_UNAVAILABLE, severity, f"ExecuTorch's calls could not be followed: {error}", hint)
    if by_stack.asked_for(account.trace):
        yield Issue(
            IssueCode.UNTYPED_HOOKS,
            Severity.WARNING,
            "delegates are told by call stack: this ExecuTorch's headers do not have Method",
            "totals, peaks and owners hold; instances, instructions and delegates' tables need executorch 1.3",
        )
    missed = hooks_missed(account)
    if missed:
        yield Issue(
            IssueCode.HOOK_NOT_REACHED,
            Severity.ERROR,
            f"the delegates of {', '.join(missed)} ran unseen: totals hold, owners are left out",
            "`etmem doctor` says which functions of this ExecuTorch can be followed",
            {"methods": list(missed)},
        )


def _threads(account: Account) -> Iterator[Issue]:
    lost = account.who.ambiguous & account.fresh
    if lost.any():
        size = int((account.private_bytes + account.file_bytes)[lost].sum())
        yield Issue(
            IssueCode.CONCURRENT_INFERENCES,
            Severity.WARNING,
            f"several inferences ran at once: {size:,} bytes of pool threads are the host's",
            "run one inference at a time to see whose they are",
            {"bytes": size},
        )


def _dry(account: Account) -> Iterator[Issue]:
    """A delegate whose answer was never asked for has computed."""
    if not account.options.target.dry:
        return
    reached = {value for key, value in account.trace.notes if key == "dry.symbol"}
    for backend, description in described(account.instances, account.descriptions):
        ran = any(account.scopes_of(one, DelegateStage.EXECUTE) for one in account.instances if one.backend == backend)
        symbol = description.dry.symbol
        if ran and symbol is not None and symbol not in reached:
            yield Issue(
                IssueCode.DRY_UNSUPPORTED,
                Severity.WARNING,
                f"{backend} computed: {symbol}, which a dry run answers, was not called from another library",
                "Its bytes are those of a real run.",
                {"backend": backend, "symbol": symbol},
            )


def _descriptions(account: Account) -> Iterator[Issue]:
    for backend in sorted({instance.backend for instance in account.instances} - set(account.descriptions)):
        yield Issue(
            IssueCode.NO_DELEGATE_DESCRIPTION,
            Severity.INFO,
            f"nothing is known about {backend}: what it does not tag itself is metadata",
            "its owner, instance and totals are right; only categories are missing",
            {"backend": backend},
        )
    for backend, description in described(account.instances, account.descriptions):
        if description.tested.by is Evidence.READING:
            yield Issue(
                IssueCode.DESCRIPTION_BY_READING,
                Severity.INFO,
                f"categories of {backend} are by reading: {description.tested.what}",
                "owner, instance and totals are counted; --describe FILE corrects a category",
                {"backend": backend, "sources": list(description.tested.sources)},
            )
    for path in sorted(account.symbolizer.unreadable):
        yield Issue(
            IssueCode.NO_DELEGATE_DESCRIPTION,
            Severity.WARNING,
            f"{path} cannot be read: what was allocated in it has no category",
            "read the trace where it was recorded, or copy the file to the same place",
            {"path": path},
        )


def _allocator(account: Account) -> Iterator[Issue]:
    """These define C++'s operators besides malloc, which go past every hook of malloc's."""
    paths = dict.fromkeys(module.path for module in account.trace.modules)
    for path in paths:
        name = PurePath(path).name
        if _ALLOCATOR.match(name):
            severity, hint = _HINTS[IssueCode.OTHER_ALLOCATOR]
            text = f"{name} serves malloc and C++'s new: what is allocated with new counts as its mappings"
            yield Issue(IssueCode.OTHER_ALLOCATOR, severity, text, hint, {"path": path})


def _snapshots(account: Account) -> Iterator[Issue]:
    snapshots = account.trace.snapshots
    if snapshots and not any(snapshot.scanned for snapshot in snapshots):
        severity, hint = _HINTS[IssueCode.RESIDENCY_UNAVAILABLE]
        yield Issue(
            IssueCode.RESIDENCY_UNAVAILABLE, severity, "resident pages could not be read: there is no balance", hint
        )


def _malloc(account: Account) -> Iterator[Issue]:
    """A recorder without malloc hooks, on a device."""
    if account.trace.note("blocks") == "reported":
        missing = ", ".join(sorted({instance.backend for instance in account.instances}))
        yield Issue(
            IssueCode.MALLOC_NOT_FOLLOWED,
            Severity.ERROR if missing else Severity.WARNING,
            f"malloc was not followed: what {missing or 'kernels'} took from it is missing",
            "link malloc with --wrap too, or report that memory with etmem/etmem.h",
        )


def _memlock(account: Account) -> Iterator[Issue]:
    """A loader that locks what it maps ignores that it may not; then fewer pages are resident at load."""
    trace = account.trace
    limit = trace.number("memlock.limit")
    # ExecuTorch's Python module always maps programs so.
    python = any(PurePath(module.path).parent.name == "pybindings" for module in trace.modules)
    wants = python or account.options.target.loader == "mlock"
    noted = (value for key, value in trace.notes if key.startswith("program.") and key.endswith(".bytes"))
    size = sum(as_number(value) or 0 for value in noted)
    locked = max((sample.locked_bytes for sample in trace.rss), default=0)
    if wants and limit is not None and limit < size and locked < size:
        severity, hint = _HINTS[IssueCode.MEMLOCK_LIMITED]
        yield Issue(
            IssueCode.MEMLOCK_LIMITED,
            severity,
            f"{limit:,} bytes may be locked in memory, of a program of {size:,}: less of it is resident at load",
            hint,
            {"limit_bytes": limit, "program_bytes": size, "locked_bytes": locked},
        )


def _high_water(account: Account) -> Iterator[Issue]:
    if account.trace.rss and not any(sample.high_water_bytes for sample in account.trace.rss):
        severity, hint = _HINTS[IssueCode.HIGH_WATER_UNAVAILABLE]
        yield Issue(IssueCode.HIGH_WATER_UNAVAILABLE, severity, "the kernel gave no high water", hint)
