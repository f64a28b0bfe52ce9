"""What the fuzzer calls of ``etmem plan``: programs, data files and delegates' blobs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from etmem.delegates import ethos_u
from etmem.delegates.estimating import CannotEstimate, Estimate, Machine
from etmem.delegates.xnnpack import estimate as xnnpack
from etmem.model.errors import EtmemError
from etmem.planning import PlanOptions, ProgramPlan, plan
from etmem.planning.tables import TABLES, rows
from etmem.report.plan_svg import to_svg

EXTERNAL = Path(__file__).parent / "corpus" / "program" / "external_data"
LINE = 500
"""Characters that a message may have at most."""


def program(data: bytes) -> None:
    """The whole of ``etmem plan``: text, JSON, picture and tables, for a phone and for a microcontroller."""
    with tempfile.NamedTemporaryFile(suffix=".pte") as file:
        file.write(data)
        file.flush()
        for options in (PlanOptions(cpu="cortex-a76"), PlanOptions(target="armv7m")):
            found = planned(file.name, options)
            if found is not None:
                assert found.text(full=True)
                assert found.to_json()
                assert to_svg(found)
                assert all(rows(found, table) is not None for table in TABLES)


def external_data(data: bytes) -> None:
    """A ``.ptd`` beside a program that names four tensors."""
    with tempfile.NamedTemporaryFile(suffix=".ptd") as file:
        file.write(data)
        file.flush()
        found = planned(EXTERNAL, PlanOptions(cpu="avx2", data=(Path(file.name),)))
        assert found is None or len(found.contents) == 2


def planned(path: str | Path, options: PlanOptions) -> ProgramPlan | None:
    """None where the file is refused, which has to be in one clear line with a hint."""
    refused: EtmemError | None = None
    try:
        return plan(path, options)
    except EtmemError as error:
        refused = error
    assert refused.hint
    assert "\n" not in refused.message
    assert len(refused.message) < LINE
    return None


def blob(estimate: Estimate) -> Callable[[bytes], None]:
    """A delegate's estimate of its blob: sizes that make sense, or ``CannotEstimate``; nothing else."""

    def run(data: bytes) -> None:
        for isa, cpu in (("avx512", ""), ("neon", "cortex-a53"), ("sme", "max")):
            try:
                found = estimate(memoryview(data), Machine(isa, cpu, 8, 2, None), {})
            except CannotEstimate:
                continue
            assert all(block.bytes >= 0 and block.count >= 0 for block in found.blocks)

    return run


PROGRAM_TARGETS: dict[str, Callable[[bytes], None]] = {
    "program": program,
    "external_data": external_data,
    "xnnpack": blob(xnnpack.estimate),
    "ethos_u": blob(ethos_u.estimate),
}
