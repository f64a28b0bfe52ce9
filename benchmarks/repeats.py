"""Do budgets flap? Each case N times against its first run, live bytes with 1 % of tolerance, and how often a
single byte moved:  python benchmarks/repeats.py [N] [CASE ...]"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

LIMITS = """
schema = "etmem.budget/1"
[[limit]]
what = "load"
measure = "live"
baseline = "first"
tolerance = "1 %"
[[limit]]
what = "inference"
measure = "live"
baseline = "first"
tolerance = "1 %"
[[limit]]
what = "steady"
measure = "live"
baseline = "first"
tolerance = "1 %"
"""


def main(repeats: int, cases: list[str]) -> int:
    import etmem
    from etmem.analysis.budget import check
    from etmem.analysis.budget_model import Status
    from etmem.analysis.budget_parse import parse_budget
    from etmem.analysis.diff import diff
    from tests.models.registry import FAMILIES, model_path

    budget, flaps = parse_budget(LIMITS), 0
    for case in cases or [name.removesuffix(".pte") for name in FAMILIES["cases"]]:
        with TemporaryDirectory() as folder:
            runs = [
                etmem.profile(model_path(case), output=Path(folder, "run.etmem")).summary for _ in range(repeats + 1)
            ]
        verdicts = [check(budget, [run], {"first": runs[0]}).status for run in runs[1:]]
        over = sum(status is not Status.OK for status in verdicts)
        moved = sum(not diff(runs[0], run).empty for run in runs[1:])
        flaps += over
        print(f"{case:24} {repeats} repeats: {over} over 1 %, {moved} with a byte of difference", flush=True)
    return 1 if flaps else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 50, sys.argv[2:]))
