"""The estimate of a program that has just been profiled, where one can be had for the same options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from etmem.capture.options import ProfileOptions, Runtime
from etmem.model.errors import EtmemError

if TYPE_CHECKING:
    from etmem.model.summary import Summary


def estimate_line(options: ProfileOptions, summary: Summary) -> str:
    """Empty where the run is one that a plan does not describe, or the file cannot be planned."""
    if options.runtime is not Runtime.NATIVE or options.share_arenas or summary.environment.emulator:
        return ""
    from etmem.planning import PlanOptions, plan
    from etmem.report.plan_beside import beside_line

    values = {
        option.key: str(option).partition("=")[2]
        for option in options.backend_options
        if option.backend == "XnnpackBackend"
    }
    try:
        found = plan(
            options.program,
            PlanOptions(
                data=options.data,
                methods=options.methods,
                preset=options.preset.value,
                loader=options.load_mode.value,
                threads=options.threads,
                describe=options.describe,
                backend_options=values,
            ),
        )
    except (EtmemError, OSError):
        # The run itself has said what is wrong with the file.
        return ""
    return beside_line(summary, found)
