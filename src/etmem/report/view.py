"""One run opened for the reports that show more than its summary."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from etmem.analysis.context import Context
from etmem.analysis.issues import hooks_missed
from etmem.model.summary import Summary

if TYPE_CHECKING:
    from etmem.report.plans import PlanMap
    from etmem.report.samples import Samples
    from etmem.report.stacks import Groups, Stacks


@dataclass(frozen=True)
class View:
    """What every exporter reads: the summary, the account behind it, and what several of them share."""

    summary: Summary
    context: Context
    trace_path: Path

    @property
    def title(self) -> str:
        """The program's file name, else the trace's."""
        paths = [program.path for program in self.summary.programs if program.path]
        return PurePath(paths[0]).name if paths else self.trace_path.name

    @property
    def highest(self) -> str:
        """``load`` or ``inference``: which of the two peaks is the larger."""
        load, inference = self.summary.peaks.load, self.summary.peaks.inference
        sizes = [p.moment.private_bytes + p.moment.file_bytes if p is not None else -1 for p in (load, inference)]
        return "load" if sizes[0] > sizes[1] else "inference"

    @cached_property
    def withheld(self) -> bool:
        """Owners are unknown: no view by owner may show them as zero."""
        return bool(hooks_missed(self.context))

    # The text report reads none of these: their modules are imported where they are used.

    @cached_property
    def counted(self) -> Groups:
        from etmem.report.stacks import counted_groups

        return counted_groups(self.context)

    @cached_property
    def samples(self) -> Samples:
        from etmem.report.samples import Samples, samples

        return samples(self.context, self.counted) if not self.withheld else Samples()

    @cached_property
    def stacks(self) -> Stacks:
        from etmem.report.stacks import Stacks, stacks

        return stacks(self.context, self.counted) if not self.withheld else Stacks((), ())

    @cached_property
    def plans(self) -> tuple[PlanMap, ...]:
        from etmem.report.plans import plan_maps

        return plan_maps(self.context, self.summary.planned_tensors)
