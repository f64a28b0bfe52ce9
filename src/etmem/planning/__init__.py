"""What a program will need, told by its file alone: contents, arenas, pools, an estimate and a verdict."""

from etmem.planning.build import plan
from etmem.planning.model import ProgramPlan
from etmem.planning.options import PlanOptions, Region

__all__ = ["PlanOptions", "ProgramPlan", "Region", "plan"]
