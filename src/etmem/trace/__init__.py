"""The trace file: its tables in memory, its reader, its writer for tests.

The package can be called as well: ``with etmem.trace("run.etmem") as t:`` records the running interpreter.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from etmem.capture.attached import Recording


class _Callable(ModuleType):
    def __call__(self, path: str | Path, **options: Any) -> Recording:
        """See ``etmem.capture.attached.trace``."""
        from etmem.capture.attached import trace

        return trace(path, **options)


sys.modules[__name__].__class__ = _Callable
