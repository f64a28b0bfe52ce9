"""``python -m etmem.capture.hooks_builder LIBRARY``: the hooks for a runtime library, built if need be.

The agent runs this inside the profiled process's start, when the first ExecuTorch function is called. The
path of the hooks goes to stdout; one line says on stderr what failed.
"""

from __future__ import annotations

import sys
from pathlib import Path

from etmem.capture import build
from etmem.model.errors import EtmemError


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m etmem.capture.hooks_builder LIBRARY\n")
        return 2
    try:
        hooks = build.hooks(Path(arguments[0]))
    except (EtmemError, OSError) as error:
        hint = f". {error.hint}" if isinstance(error, EtmemError) else ""
        sys.stderr.write(f"{error}{hint}\n")
        return 1
    sys.stdout.write(f"{hooks}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
