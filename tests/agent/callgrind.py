"""Instructions of one function of a program, counted by callgrind."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path


def counted(command: tuple[str, ...], folder: Path, function: str, variables: Mapping[str, str]) -> int:
    options = (f"--callgrind-out-file={folder}/out", f"--toggle-collect={function}")
    callgrind = ("valgrind", "--tool=callgrind", *options, *command)
    done = subprocess.run(callgrind, env=variables, capture_output=True, text=True, check=True)
    (count,) = re.findall(r"Collected : (\d+)", done.stderr)
    return int(count)
