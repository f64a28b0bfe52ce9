"""What the fuzzer calls, and the suite with the committed corpus: bytes in, a report or an error with a hint out."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from etmem.analysis.accounting import account
from etmem.analysis.findings import findings
from etmem.analysis.summarize import context, summary
from etmem.api import load
from etmem.model.errors import EtmemError
from etmem.model.summary import Summary
from etmem.report.view import View
from etmem.trace.mappings import IntervalMap, Piece
from etmem.trace.tables import BlockKind
from tests.fuzz.programs import PROGRAM_TARGETS

CORPUS = Path(__file__).parent / "corpus"


def report(data: bytes) -> None:
    """The whole of ``etmem report``: text, full text and JSON. Anything but a report or an EtmemError is a defect."""
    with tempfile.NamedTemporaryFile(suffix=".etmem") as file:
        file.write(data)
        file.flush()
        refused = None
        try:
            profile = load(file.name, keep=True)
            texts = (profile.text(), profile.text(full=True), profile.to_json())
            assert profile.opened is not None
            assert folded(profile.opened) == profile.opened.summary
        except EtmemError as error:
            refused = error
    if refused is not None:
        assert refused.hint
        return
    assert all(texts)
    for balance in profile.summary.balances:
        assert balance.rss_bytes == sum(line.bytes for line in balance.lines) + balance.unaccounted_bytes
    for phase in profile.summary.phases:
        assert phase.peak.private_bytes >= 0
        assert phase.peak.private_bytes + phase.peak.file_bytes >= phase.live_end.private_bytes


def folded(opened: View) -> Summary:
    """The summary as it would be of a trace that is long."""
    known = opened.context
    options = replace(known.options, fold_from=0)
    return summary(context(account(known.trace, options, known.descriptions, known.programs)), findings)


def intervals(data: bytes) -> None:
    """The interval map against a list of bytes: three bytes of data are an operation on 64 of them."""
    found, naive = IntervalMap(), [-1] * 64
    for stamp, at in enumerate(range(0, len(data) - 2, 3), start=1):
        start, size, put = data[at] % 64, data[at + 1] % 65, data[at + 2] & 1
        end = min(64, start + size)
        taken = found.cut(stamp, start, end)
        assert sum(piece.end - piece.start for piece in taken) == sum(owner >= 0 for owner in naive[start:end])
        if put and start < end:
            found.put(Piece(stamp, start, end, BlockKind.ANONYMOUS, False, -1, stamp, 0, 0))
        naive[start:end] = [stamp if put else -1] * (end - start)
        held = [-1] * 64
        for piece in found.pieces:
            assert set(held[piece.start : piece.end]) <= {-1}
            held[piece.start : piece.end] = [piece.scope] * (piece.end - piece.start)
        assert held == naive


TARGETS: dict[str, Callable[[bytes], None]] = {"report": report, "intervals": intervals, **PROGRAM_TARGETS}
