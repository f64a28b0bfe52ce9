"""Writes the table in docs/plan.md: what ``etmem plan`` estimates against what a run counts, model by model.

``python tools/gen_plan_accuracy.py NAME.pte=TRACE ...`` takes traces that ``etmem profile`` wrote.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from etmem.api import summarize_trace  # noqa: E402
from etmem.planning import plan  # noqa: E402

PAGE = ROOT / "docs" / "plan.md"
BEGIN, END = "<!-- begin: tools/gen_plan_accuracy.py -->", "<!-- end -->"
MOMENTS = ("load", "inference", "steady")


def table(pairs: list[tuple[Path, Path]]) -> str:
    lines = ["| model | moment | estimate, B | counted, B | off | exact |", "|---|---|--:|--:|--:|--:|"]
    for model, trace in pairs:
        peaks, found = summarize_trace(trace).peaks, plan(model)
        for at in MOMENTS:
            moment, forecast = getattr(peaks, at).moment, found.forecast(at)
            assert forecast is not None
            counted = moment.private_bytes + moment.file_bytes
            estimate = forecast.private_bytes + forecast.file_bytes
            exact = sum(line.private_bytes + line.file_bytes for line in forecast.lines if line.sure.value == "exact")
            off = 100 * (estimate - counted) / counted
            cells = (
                model.stem,
                at,
                f"{estimate:,}",
                f"{counted:,}",
                f"{off:+.3f} %",
                f"{100 * exact / estimate:.1f} %",
            )
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    pairs = [(Path(model), Path(trace)) for model, _, trace in (word.partition("=") for word in arguments)]
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{table(pairs)}\n{END}{rest.partition(END)[2]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
