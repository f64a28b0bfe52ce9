"""What a recorded run holds of each plan, and what it must hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from etmem.analysis.accounting import account
from etmem.analysis.context import Context
from etmem.analysis.descriptions import Descriptions
from etmem.analysis.options import SummaryOptions
from etmem.analysis.summarize import context
from etmem.api import analyze_trace
from etmem.model.summary import Moment
from etmem.model.words import PhaseKind
from tests.models.allocating import BACKEND, INIT, PAGE, PLANS, Step

OWNER = f"delegate:{BACKEND}"
LENT = {"runtime_allocator": "method_allocator", "temp_allocator": "temp_allocator"}
"""Routes over ExecuTorch's allocators, and the category that they are filed under."""

Row = tuple[str, PhaseKind | None, int]
"""Category, phase and bytes of a block."""


def read(trace: Path) -> Context:
    return analyze_trace(trace)[1]


def read_with(trace: Path, descriptions: Descriptions) -> Context:
    """The same with other descriptions of delegates."""
    known = read(trace)
    return context(account(known.trace, SummaryOptions(**vars(known.options)), descriptions, known.programs))


def blocks(found: Context, method: str, program: int = 1) -> Counter[Row]:
    """Every block that the delegate of a method ever owned, its threads' own small ones left out."""
    rows: Counter[Row] = Counter()
    for instance in found.instances:
        if (instance.program, instance.method) == (program, method):
            for row in found.rows(owner=OWNER, instance=instance).tolist():
                key = found.keys[int(found.ledger.code[row])]
                size = int(found.private_bytes[row])
                if size >= PAGE:
                    rows[str(key.category), found.phase_of(row), size] += 1
    return rows


def expected_blocks(method: str, iterations: int) -> Counter[Row]:
    rows: Counter[Row] = Counter()
    for step in PLANS[method]:
        if step.route in LENT:
            continue
        phase = PhaseKind.METHOD_LOAD if step.stage == INIT else PhaseKind.INFERENCE
        times = 1 if step.kept else iterations
        for size in sizes(step):
            rows[step.category or "metadata", phase, size] += times
    return rows


def sizes(step: Step) -> Iterator[int]:
    """Of the blocks that a step makes one after the other."""
    yield step.bytes
    if step.route == "realloc":
        yield step.bytes // 2
    if step.route == "mremap":
        yield step.bytes // 2 // PAGE * PAGE


def held(method: str, *stages: int) -> int:
    """Bytes of the delegate's own that live at the end of a stage, whatever it is about to free."""
    return sum(step.bytes for step in PLANS[method] if step.stage in stages and step.route not in LENT)


def bytes_at(moment: Moment, label: str) -> int:
    """Private bytes of one instance."""
    return sum(part.private_bytes for part in moment.owners if part.owner == OWNER and part.instance == label)


def lent_blocks(found: Context, route: str) -> Counter[int]:
    """Sizes of the blocks behind an allocator of ExecuTorch."""
    wanted = [key.owner == "executorch" and key.category == LENT[route] for key in found.keys]
    rows = np.flatnonzero(np.array(wanted, np.bool_)[found.ledger.code])
    return Counter(found.private_bytes[rows].tolist())
