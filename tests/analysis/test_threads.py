"""Events of threads that have no scope of their own."""

from __future__ import annotations

from etmem.delegates import parse
from etmem.model.words import EXECUTORCH, HOST, Category, IssueCode
from etmem.trace.tables import ScopeKind
from tests.analysis.worlds import XNN, World, accounted, filed, summary

XNN0 = "forward/XnnpackBackend[0]"
POOL_CODE, OTHER_CODE = 0x7F0000001000, 0x7F0000101000
MAPS = """\
7f0000000000-7f0000010000 r-xp 00000000 00:00 1 /venv/lib/libexecutorch_threadpool.so
7f0000100000-7f0000110000 r-xp 00000000 00:00 2 /usr/lib/libother.so
"""


def with_pool() -> World:
    world = World()
    world.snapshot("method_load", maps=MAPS)
    return world


def test_a_pool_thread_works_for_whoever_runs() -> None:
    world = with_pool()
    with world.method_load(), world.init():
        # Created inside the delegate's init, and still nobody's.
        world.thread(50, start_routine=POOL_CODE)
        world.alloc(0x1000, 10, thread=50)
    world.alloc(0x2000, 10, thread=50)
    with world.inference():
        world.alloc(0x3000, 10, thread=50)
        with world.scope(ScopeKind.INSTRUCTION, "aten::add", 0, 0):
            world.alloc(0x4000, 10, thread=50)
        with world.execute(1):
            world.alloc(0x5000, 10, thread=50)
    found = accounted(world)
    assert filed(found, 0x1000) == (XNN, XNN0, Category.METADATA)
    assert filed(found, 0x2000) == (HOST, None, Category.OTHER)
    assert filed(found, 0x3000) == (EXECUTORCH, None, Category.METADATA)
    assert filed(found, 0x4000) == (EXECUTORCH, None, Category.KERNEL_SCRATCH)
    assert filed(found, 0x5000) == (XNN, "forward/XnnpackBackend[1]", Category.METADATA)


def test_a_pool_is_told_by_module_records_and_by_name_of_the_library() -> None:
    world = World()
    world.note("executorch.pool.library", "/app/mine.so")
    world.module(0x5000_0000, 0x1000, "/app/mine.so")
    world.module(0x6000_0000, 0x1000, "/venv/_portable_lib.cpython-311.so")
    for tid, code in ((50, 0x5000_0010), (51, 0x6000_0010), (52, 0x7000_0010)):
        world.thread(tid, start_routine=code)
    with world.inference(), world.execute():
        for tid in (50, 51, 52):
            world.alloc(0x1000 * tid, 10, thread=tid)
    found = accounted(world)
    assert [filed(found, 0x1000 * tid)[0] for tid in (50, 51, 52)] == [XNN, XNN, HOST]


def test_with_several_running_pool_bytes_are_the_hosts() -> None:
    world = with_pool()
    world.thread(50, start_routine=POOL_CODE)
    with world.on(1), world.inference(method="a"):
        with world.on(2), world.inference(method="b"), world.execute():
            world.alloc(0x1000, 100, thread=50)
        with world.execute():
            world.alloc(0x2000, 10, thread=50)
    found = accounted(world)
    assert filed(found, 0x1000)[0] == HOST
    assert filed(found, 0x2000)[0] == XNN
    told = summary(world)
    (issue,) = [issue for issue in told.issues if issue.code is IssueCode.CONCURRENT_INFERENCES]
    assert issue.detail == {"bytes": 100}
    assert [phase.unowned_bytes for phase in told.phases] == [0, 100]


def test_a_delegates_own_threads_are_its_for_life_and_so_are_theirs() -> None:
    world = with_pool()
    with world.method_load(), world.init(backend="OpenvinoBackend"):
        world.thread(60, start_routine=OTHER_CODE)
    with world.on(60):
        world.thread(61, start_routine=OTHER_CODE)
    with world.inference():
        world.alloc(0x1000, 10, thread=60)
        world.alloc(0x2000, 10, thread=61)
    world.alloc(0x3000, 10, thread=61)
    told = summary(world)
    found = accounted(world)
    openvino = ("delegate:OpenvinoBackend", "forward/OpenvinoBackend[0]", Category.METADATA)
    assert [filed(found, address) for address in (0x1000, 0x2000, 0x3000)] == [openvino] * 3
    # The third is allocated after the inference, so in no phase.
    assert [(phase.allocated_bytes, phase.allocations) for phase in told.phases] == [(0, 0), (20, 2)]


def test_a_tid_that_is_used_again_is_another_thread() -> None:
    world = with_pool()
    with world.method_load(), world.init():
        world.thread(60, start_routine=OTHER_CODE)
    world.alloc(0x1000, 10, thread=60)
    world.thread_end(60)
    world.thread(60, start_routine=OTHER_CODE)
    world.alloc(0x2000, 10, thread=60)
    found = accounted(world)
    assert filed(found, 0x1000)[0] == XNN
    assert filed(found, 0x2000)[0] == HOST


def test_threads_of_the_application_are_the_hosts() -> None:
    world = with_pool()
    world.thread(70, start_routine=OTHER_CODE)
    with world.inference():
        world.alloc(0x1000, 10, thread=70)
        with world.scope(ScopeKind.INSTRUCTION, "aten::add", 0, 0):
            world.thread(71, start_routine=OTHER_CODE)
        world.alloc(0x2000, 10, thread=71)
    found = accounted(world)
    assert filed(found, 0x1000)[0] == HOST
    assert filed(found, 0x2000)[0] == HOST
    assert summary(world).phases[0].unowned_bytes == 0


def test_a_scope_of_its_own_decides_on_any_thread() -> None:
    world = with_pool()
    with world.method_load(), world.init():
        world.thread(60, start_routine=OTHER_CODE)
    with world.on(60), world.program_load(2):
        world.alloc(0x1000, 10)
    assert filed(accounted(world), 0x1000)[0] == EXECUTORCH


def test_threads_that_a_description_calls_a_pool_are_nobody_s() -> None:
    """GIVEN a thread that starts in a delegate, of no library of ExecuTorch's THEN its description says whose it is."""
    form = """
        backend = "XnnpackBackend"
        record_stacks = false
        threads = "{}"
        [tested]
        by = "run"
        what = "this test"
        [dry]
        reason = "no"
    """
    world = with_pool()
    with world.method_load(), world.init():
        world.thread(50, start_routine=OTHER_CODE)
    with world.inference():
        with world.execute(1):
            world.alloc(0x1000, 10, thread=50)
        world.alloc(0x2000, 10, thread=50)
    own, pool = (
        accounted(world, {"XnnpackBackend": parse(form.format(rule), "test")}) for rule in ("own", "pool")
    )  # fmt: skip
    assert [filed(own, at)[:2] for at in (0x1000, 0x2000)] == [(XNN, XNN0), (XNN, XNN0)]
    assert filed(pool, 0x1000)[:2] == (XNN, "forward/XnnpackBackend[1]")
    assert filed(pool, 0x2000)[0] == EXECUTORCH
