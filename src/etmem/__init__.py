"""etmem: a memory profiler for ExecuTorch.

``etmem.profile("model.pte")`` runs a program and says who owns every byte; ``etmem.load("run.etmem")``
reads a trace; ``with etmem.trace("run.etmem") as t:`` records a running interpreter; ``etmem.plan("model.pte")``
tells what a program will need from its file alone; ``with etmem.scope("preprocess"):`` and ``etmem.tag("weights")`` say
what the code of a recorded process does. Names load on first use, so that importing etmem costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from etmem.api import Profile, load, profile
    from etmem.capture.attached import Recording, trace
    from etmem.capture.client import scope, tag
    from etmem.model.errors import EtmemError
    from etmem.model.summary import Summary
    from etmem.planning import PlanOptions, ProgramPlan, plan

__version__ = "0.1.0"
__all__ = [
    "EtmemError",
    "PlanOptions",
    "Profile",
    "ProgramPlan",
    "Recording",
    "Summary",
    "__version__",
    "load",
    "plan",
    "profile",
    "scope",
    "tag",
    "trace",
]

_HOMES = {
    "EtmemError": "etmem.model.errors",
    "PlanOptions": "etmem.planning",
    "Profile": "etmem.api",
    "ProgramPlan": "etmem.planning",
    "Recording": "etmem.capture.attached",
    "Summary": "etmem.model.summary",
    "load": "etmem.api",
    "plan": "etmem.planning",
    "profile": "etmem.api",
    "scope": "etmem.capture.client",
    "tag": "etmem.capture.client",
}


def __getattr__(name: str) -> object:
    if name == "trace":  # the package of that name, which can be called: it stands here once it is imported
        return import_module("etmem.trace")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'etmem' has no attribute {name!r}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_HOMES) | {"trace"})
