"""What is allocated in scopes that the program names."""

from __future__ import annotations

from etmem.analysis.named_scopes import LOADERS_OWN
from etmem.trace.tables import ScopeKind
from tests.analysis.worlds import World, summary


def test_an_outer_scope_has_all_that_happens_inside() -> None:
    """GIVEN scopes in scopes, a phase in one, and the profiler's own THEN each has what was allocated in it."""
    world = World()
    with world.scope(ScopeKind.TAG, "request", 0, 0):
        world.alloc(0x1000, 100)
        with world.scope(ScopeKind.TAG, "resize", 0, 0):
            world.alloc(0x2000, 30)
            world.free(0x2000)
            world.alloc(0x3000, 20)
        with world.program_load():
            world.alloc(0x4000, 7)
        with world.scope(ScopeKind.PROFILER, "sources", 0, 0):
            world.alloc(0x5000, 5000)
    with world.scope(ScopeKind.TAG, "request", 0, 0):
        world.alloc(0x6000, 1)
    with world.scope(ScopeKind.TAG, LOADERS_OWN, 0, 0):
        world.alloc(0x7000, 999)
    with world.inference():
        world.alloc(0x8000, 8)
    found = {scope.name: scope for scope in summary(world).named_scopes}
    assert list(found) == ["request", "request/resize"]
    request, resize = found.values()
    # What ended before the first phase began is in no figure: 30 bytes.
    assert (request.entered, request.allocated_bytes, request.allocations) == (2, 100 + 20 + 7 + 1, 4)
    assert (request.peak_bytes, request.live_end_bytes) == (128, 128)
    assert (resize.entered, resize.allocated_bytes, resize.peak_bytes) == (1, 20, 20)


def test_what_is_freed_again_is_not_live_at_the_end() -> None:
    world = World()
    with world.program_load():
        world.alloc(0x1000, 8)
    with world.scope(ScopeKind.TAG, "preprocess", 0, 0):
        world.alloc(0x2000, 300)
        world.free(0x2000)
        world.alloc(0x3000, 200)
        world.free(0x3000)
        world.alloc(0x4000, 50)
    (scope,) = summary(world).named_scopes
    assert (scope.allocated_bytes, scope.peak_bytes, scope.live_end_bytes) == (550, 300, 50)
