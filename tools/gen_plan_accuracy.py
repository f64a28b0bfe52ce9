"""Writes the table in docs/plan.md: how far ``etmem plan`` is off what a dry run counts, model by model, on two CPUs.

``python tools/gen_plan_accuracy.py``: exports the test models that are not cached yet, and needs an AVX-512 machine.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from etmem.capture.emulator import CORES  # noqa: E402
from etmem.model.summary import Summary  # noqa: E402
from etmem.planning import PlanOptions, ProgramPlan, plan  # noqa: E402
from tests.models.registry import FAMILIES, model_path  # noqa: E402
from tests.phone.profiles import profiled  # noqa: E402

PAGE = ROOT / "docs" / "plan.md"
BEGIN, END = "<!-- begin: tools/gen_plan_accuracy.py -->", "<!-- end -->"
MOMENTS = ("load", "inference", "steady")
NAMES = (*FAMILIES["cases"], *FAMILIES["architectures"], "llama.pte", *FAMILIES["odd_shapes"])
HEAD = (
    "| model | load, B | inference, B | exact | AVX-512: load | inference | rest | A76: load | inference | rest |",
    "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
)


def off(found: ProgramPlan, summary: Summary) -> list[str]:
    """Per moment, by how much of what was counted the estimate is off."""
    cells = []
    for at in MOMENTS:
        forecast, moment = found.forecast(at), getattr(summary.peaks, at).moment
        assert forecast is not None
        counted = moment.private_bytes + moment.file_bytes
        cells.append(f"{100 * (forecast.private_bytes + forecast.file_bytes - counted) / counted:+.3f} %")
    return cells


def row(name: str) -> str:
    here = plan(model_path(name), PlanOptions(cpu="avx512"))
    phone = plan(model_path(name), PlanOptions(cpu="cortex-a76", threads=CORES))
    inference = here.forecast("inference")
    assert inference is not None
    sizes = [
        f"{forecast.private_bytes + forecast.file_bytes:,}"
        for at in MOMENTS[:2]
        if (forecast := here.forecast(at)) is not None
    ]
    exact = sum(line.private_bytes + line.file_bytes for line in inference.lines if line.sure.value == "exact")
    cells = [
        name.partition(".")[0],
        *sizes,
        f"{100 * exact / (inference.private_bytes + inference.file_bytes):.1f} %",
        *off(here, profiled(name, "host")),
        *off(phone, profiled(name, "cortex-a76")),
    ]
    return f"| {' | '.join(cells)} |"


def main() -> int:
    lines = [*HEAD, *map(row, NAMES)]
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    table = "\n".join(lines)
    PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{rest.partition(END)[2]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
