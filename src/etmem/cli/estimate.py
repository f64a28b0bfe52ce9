"""The estimate of a program that has just been profiled, where one can be had for the same options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from etmem.capture.options import ProfileOptions, Runtime
from etmem.model.errors import EtmemError

if TYPE_CHECKING:
    from etmem.model.summary import Summary
    from etmem.planning import ProgramPlan


def estimate_line(options: ProfileOptions, summary: Summary) -> str:
    """Empty where the run is one that a plan does not describe, or the file cannot be planned."""
    if options.runtime is not Runtime.NATIVE or options.share_arenas:
        return ""
    from etmem.capture.emulator import CORES
    from etmem.planning import PlanOptions, plan
    from etmem.report.plan_beside import beside_line

    values = {
        option.key: str(option).partition("=")[2]
        for option in options.backend_options
        if option.backend == "XnnpackBackend"
    }
    emulated = bool(summary.environment.emulator)
    try:
        found = plan(
            options.program,
            PlanOptions(
                data=options.data,
                methods=options.methods,
                preset=options.preset.value,
                loader=options.load_mode.value,
                describe=options.describe,
                cpu=summary.target.cpu if emulated else None,
                threads=options.threads or (CORES if emulated and summary.target.arch == "aarch64" else None),
                backend_options=values,
            ),
        )
    except (EtmemError, OSError):
        # The run itself has said what is wrong with the file.
        return ""
    return beside_line(summary, found) if _same_shapes(summary, found) else ""


def _same_shapes(summary: Summary, found: ProgramPlan) -> bool:
    """Whether dynamic inputs ran at their upper bounds, which is what the estimate is for."""
    ran = {(spec.method, spec.index): spec.shape for spec in summary.target.inputs}
    planned = [spec for method in found.methods for spec in method.inputs if spec.upper_bound]
    return all(ran.get((spec.method, spec.index), spec.shape) == spec.shape for spec in planned)
