"""The trace file: its tables in memory, its reader, its writer for tests.

The package can be called as well: ``with etmem.trace("run.etmem") as t:`` records the running interpreter.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from etmem.capture.attached import Recording


class _Callable(ModuleType):
    def __call__(
        self, path: str | Path, *, stacks: bool = False, describe: str | Path | Sequence[str | Path] = ()
    ) -> Recording:
        """See ``etmem.capture.attached.trace``."""
        from etmem.capture.attached import trace

        return trace(path, stacks=stacks, describe=describe)


sys.modules[__name__].__class__ = _Callable
