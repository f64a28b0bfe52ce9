"""etmem: a memory profiler for ExecuTorch.

``etmem.profile("model.pte")`` runs a program and says who owns every byte; ``etmem.load("run.etmem")``
reads a trace; ``with etmem.trace("run.etmem") as t:`` records a running interpreter. Names load on first use, so that importing etmem costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from etmem.api import Profile, load, profile
    from etmem.capture.attached import Recording, trace
    from etmem.model.errors import EtmemError
    from etmem.model.summary import Summary

__version__ = "0.1.0"
__all__ = ["EtmemError", "Profile", "Recording", "Summary", "__version__", "load", "profile", "trace"]

_HOMES = {
    "EtmemError": "etmem.model.errors",
    "Profile": "etmem.api",
    "Recording": "etmem.capture.attached",
    "Summary": "etmem.model.summary",
    "load": "etmem.api",
    "profile": "etmem.api",
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
