from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from etmem.analysis.summarize import summarize
from etmem.model.summary import Finding, Issue, Summary
from etmem.model.words import Certainty, FindingCode, IssueCode, Severity
from etmem.trace.layout import Status
from etmem.trace.tables import RssLabel
from tests.analysis.worlds import ENVIRONMENT, OPTIONS, XNNPACK, Words, World, rss_edges, summary


def codes(found: Summary) -> list[IssueCode]:
    return [issue.code for issue in found.issues]


def loaded() -> World:
    world = World()
    with world.program_load():
        pass
    with world.method_load():
        world.alloc(0x1000, 100)
    return world


def file_with(delegates: int, method: str = "forward") -> dict[str, object]:
    """As much of a program as is asked here."""
    plan = SimpleNamespace(name=method, delegates=(None,) * delegates, inputs=(), outputs=(), chains=())
    plans = {method: plan}
    return {"/m.pte": SimpleNamespace(
        path="/m.pte", file_bytes=9, plans=(plan,), methods=(method,), plan=plans.get,
    )}  # fmt: skip


def nothing(_context: object) -> tuple[Finding, ...]:
    return ()


def test_nothing_to_say() -> None:
    assert codes(summary(loaded())) == []


def test_what_the_header_says() -> None:
    world = loaded()
    world.dropped_events = 7
    world.status = Status.CLOSED | Status.DISK_FULL
    found = summary(world)
    assert codes(found) == [IssueCode.EVENTS_DROPPED, IssueCode.DISK_FULL]
    assert found.issues[0].detail == {"events": 7}
    assert all(issue.severity is Severity.ERROR for issue in found.issues)


def test_another_malloc() -> None:
    world = loaded()
    world.module(0x7000_0000, 0x1000, "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2")
    world.module(0x7100_0000, 0x1000, "/opt/notlibjemalloc.so")
    found = summary(world)
    assert codes(found) == [IssueCode.OTHER_ALLOCATOR]
    assert found.issues[0].detail == {"path": "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"}


def test_a_torn_file() -> None:
    trace = loaded().trace()
    torn = replace(trace, header=replace(trace.header, truncated=True))
    assert codes(summarize(torn, OPTIONS)) == [IssueCode.TRACE_TRUNCATED]


def test_a_process_that_was_killed() -> None:
    world = loaded()
    world.status = Status(0)
    killed = replace(OPTIONS, environment=replace(ENVIRONMENT, exit_status=-9))
    (issue,) = summary(world, killed).issues
    assert (issue.code, issue.detail) == (IssueCode.PROCESS_KILLED, {"signal": 9})
    assert codes(summary(world, replace(OPTIONS, environment=replace(ENVIRONMENT, exit_status=1)))) == []


def test_no_executorch_at_all() -> None:
    world = World()
    world.alloc(0x1000, 10)
    found = summary(world)
    assert codes(found) == [IssueCode.NO_EXECUTORCH]
    assert (found.phases, found.peaks.load, found.programs) == ((), None, ())


def test_an_empty_trace() -> None:
    assert codes(summary(World())) == [IssueCode.NO_EXECUTORCH]


def test_a_phase_that_failed() -> None:
    world = loaded()
    scope = world.scope_begin(3, "forward", 1, 0)  # type: ignore[arg-type]
    world.scope_end(scope, failed=True)
    (issue,) = summary(world).issues
    assert (issue.code, issue.severity) == (IssueCode.PROGRAM_FAILED, Severity.ERROR)
    assert issue.message.startswith("inference of forward failed")


def test_delegates_that_nobody_entered_withhold_the_owners() -> None:
    world = loaded()
    world.note("program.1.path", "/m.pte")
    with world.inference():
        world.alloc(0x2000, 50)
    found = summary(world, programs=file_with(delegates=2))
    (issue,) = found.issues
    assert (issue.code, issue.severity) == (IssueCode.HOOK_NOT_REACHED, Severity.ERROR)
    assert issue.detail == {"methods": ["forward"]}
    assert [phase.peak.private_bytes for phase in found.phases] == [0, 100, 150]
    assert all(phase.peak.owners == () for phase in found.phases)
    assert found.peaks.load is not None
    assert (found.peaks.load.moment.owners, found.peaks.load.owner_peaks) == ((), ())
    assert (found.delegates, found.largest_blocks, found.findings) == ((), (), ())
    assert codes(summary(world, programs=file_with(delegates=0), find=nothing)) == []
    assert codes(summary(world, programs=file_with(delegates=2, method="other"), find=nothing)) == []


def test_a_note_tells_of_delegates_where_there_is_no_file() -> None:
    world = loaded()
    assert codes(summary(world)) == []
    world.note("program.1.delegates", "0")
    assert codes(summary(world)) == []
    world.note("program.1.delegates", "3")
    assert codes(summary(world)) == [IssueCode.HOOK_NOT_REACHED]


def test_notes_of_the_agent_become_issues_once() -> None:
    world = loaded()
    for _ in range(2):
        world.note("issue.executorch_static", "libfoo has ExecuTorch inside")
    world.note("issue.no such code", "?")
    world.note("hooks.error", "no compiler")
    first = Issue(IssueCode.PYTHON_FALLBACK, Severity.WARNING, "python", "")
    found = summary(world, replace(OPTIONS, issues=(first,))).issues
    assert [(issue.code, issue.severity) for issue in found] == [
        (IssueCode.PYTHON_FALLBACK, Severity.WARNING),
        (IssueCode.EXECUTORCH_STATIC, Severity.ERROR),
        (IssueCode.HOOKS_UNAVAILABLE, Severity.ERROR),
    ]
    assert found[1].message == "libfoo has ExecuTorch inside"
    assert "no compiler" in found[2].message


def test_the_capture_knows_better() -> None:
    world = World()
    told = Issue(IssueCode.NO_EXECUTORCH, Severity.ERROR, "python called no function of ExecuTorch", "")
    assert summary(world, replace(OPTIONS, issues=(told,))).issues == (told,)
    static = Issue(IssueCode.EXECUTORCH_STATIC, Severity.ERROR, "it is inside", "")
    assert summary(world, replace(OPTIONS, issues=(static,))).issues == (static,)


def test_a_backend_without_description() -> None:
    world = World()
    with world.method_load(), world.init(backend="MyBackend"):
        pass
    (issue,) = summary(world, descriptions={XNNPACK: Words()}).issues
    assert (issue.code, issue.detail) == (IssueCode.NO_DELEGATE_DESCRIPTION, {"backend": "MyBackend"})
    assert codes(summary(world, descriptions={"MyBackend": Words()})) == []


def test_module_files_that_cannot_be_read() -> None:
    world = World()
    world.module(0x7000_0000, 0x1000, "/gone/lib.so")
    with world.method_load(), world.init():
        world.alloc(0x1000, 10, stack=(0x7000_0010,))
    (issue,) = summary(world, descriptions={XNNPACK: Words()}).issues
    assert (issue.code, issue.severity) == (IssueCode.NO_DELEGATE_DESCRIPTION, Severity.WARNING)
    assert issue.detail == {"path": "/gone/lib.so"}


def test_no_high_water() -> None:
    world = World()
    with world.method_load() as load:
        pass
    rss_edges(world, load, 500, 500, 0)
    assert codes(summary(world)) == []  # its begin had one
    blind = World()
    blind.rss(RssLabel.START, 500, high_water_bytes=0)
    with blind.method_load():
        pass
    assert codes(summary(blind)) == [IssueCode.HIGH_WATER_UNAVAILABLE]


@pytest.mark.parametrize(("limit", "locked", "loader", "limited"), [
    ("65536", 0, "mlock", True),
    ("65536", 1_000_000, "mlock", False),
    ("unlimited", 0, "mlock", False),
    ("65536", 0, "mmap", False),
    ("8388608", 0, "mlock", False),
])  # fmt: skip
def test_the_limit_of_locked_memory(limit: str, locked: int, loader: str, limited: bool) -> None:
    world = World()
    world.note("memlock.limit", limit)
    world.note("program.1.bytes", "1000000")
    with world.program_load() as load:
        pass
    world.rss(RssLabel.PHASE_END, 10, scope=load, locked_bytes=locked)
    options = replace(OPTIONS, target=replace(OPTIONS.target, loader=loader))
    assert (IssueCode.MEMLOCK_LIMITED in codes(summary(world, options))) is limited
    world.module(0x7000_0000, 0x1000, "/venv/executorch/extension/pybindings/_C.cpython-311-x86_64-linux-gnu.so")
    in_python = limit == "65536" and not locked
    assert (IssueCode.MEMLOCK_LIMITED in codes(summary(world, options))) is in_python


def test_findings_are_asked_with_the_context() -> None:
    world = loaded()
    finding = Finding(FindingCode.DOUBLE_WEIGHTS, "executorch", 100, None, Certainty.EXACT, "")

    def find(context: object) -> tuple[Finding, ...]:
        assert context.peaks.load.moment.private_bytes == finding.bytes  # type: ignore[attr-defined]
        return (finding,)

    assert summary(world, find=find).findings == (finding,)


def test_programs_by_note_and_by_file() -> None:
    world = loaded()
    with world.method_load("decode", 2):
        pass
    world.note("program.2.bytes", "1234")
    world.note("program.2.methods", "decode,get_vocab_size")
    rows = [(p.program, p.path, p.file_bytes, p.methods, p.constant_methods) for p in summary(world).programs]
    assert rows == [
        (1, None, None, ("forward",), ()),
        (2, None, 1234, ("decode", "get_vocab_size"), ()),
    ]
