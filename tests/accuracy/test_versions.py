"""Every wheel that is served, by one program: the page of what works, and its figures beside the newest one's."""

from __future__ import annotations

import pytest

from etmem.analysis.by_stack import backend_class, backend_of
from etmem.model.words import IssueCode
from tests.accuracy import versions
from tests.accuracy.captures import XNNPACK, owner_bytes
from tests.accuracy.versions import NEWEST, VERSIONS, ran

SLACK = 96 * 1024


@pytest.mark.parametrize("version", VERSIONS)
def test_a_version(version: str) -> None:
    """GIVEN one program, whose planned memory, workspace and indirection buffers follow from the file WHEN a wheel runs
    it THEN the page says what is told, both peaks are the newest's but for the runtime's own bookkeeping, and what is
    lost is an issue. One test, because a run takes seconds."""
    documented = [line for line in versions.PAGE.read_text().splitlines() if line.startswith(f"| {version} |")]
    assert documented == [f"| {version} | {' | '.join(versions.row(version).values())} |"]

    old, new = ran(version), ran(NEWEST)
    for at in ("load", "inference"):
        one, other = getattr(old.peaks, at).moment, getattr(new.peaks, at).moment
        assert one.private_bytes == pytest.approx(other.private_bytes, abs=SLACK)
    one, other = (owner_bytes(s.peaks.inference.moment, XNNPACK) for s in (old, new))
    assert one == pytest.approx(other, abs=SLACK)
    assert other > 24 * 1024 * 1024
    (planned,) = [arena.bytes for arena in old.arenas if arena.name == "planned[1]"]
    assert planned == next(arena.bytes for arena in new.arenas if arena.name == "planned[1]")

    untyped = version in ("1.0.1", "1.1.0", "1.2.0")
    codes = {issue.code for issue in old.issues}
    assert (IssueCode.UNTYPED_HOOKS in codes) == untyped
    assert not {IssueCode.HOOK_NOT_REACHED, IssueCode.NO_EXECUTORCH, IssueCode.HOOKS_UNAVAILABLE} & codes


_CLASS = "_ZNK10executorch8backends14XnnpackBackend"
_INIT = "4initERNS_7runtime18BackendInitContextEPNS2_14FreeableBufferENS2_8ArrayRefINS2_11CompileSpecEEE"
_EXECUTE = "7executeERNS_7runtime23BackendExecutionContextEPvNS2_4SpanIPNS2_6EValueEEE"


@pytest.mark.parametrize(
    ("symbol", "found"),
    [
        (_CLASS + _INIT, "XnnpackBackend"),
        (_CLASS + _EXECUTE, "XnnpackBackend"),
        (_CLASS + "7destroyEPv", "XnnpackBackend"),
        ("_ZN10executorch7runtime6Method7executeEv", None),
        ("_ZNK3foo4initERi", None),
        ("_ZN4initERN10executorch7runtime18BackendInitContextE", None),
        ("_ZN99999init", None),
        ("main", None),
        ("", None),
    ],
)
def test_a_backend_is_told_by_what_the_runtime_calls(symbol: str, found: str | None) -> None:
    assert backend_class(symbol) == found


def test_the_innermost_backend_has_it_under_its_id() -> None:
    inner = "_ZNK1a15OpenVINOBackend7destroyEPv"
    outer = "_ZNK1a14XnnpackBackend7destroyEPv"
    assert backend_of(["malloc", inner, outer], {"OpenvinoBackend", "XnnpackBackend"}) == "OpenvinoBackend"
    assert backend_of(["malloc", inner], ()) == "OpenVINOBackend"
    assert backend_of(["malloc", "main"], {"XnnpackBackend"}) is None
