"""What works with which ExecuTorch: docs/reference/versions.md.

``python -m tests.accuracy.versions`` runs one program under every wheel and writes the page; a test holds it against
a run.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from etmem.capture import executorch
from etmem.model.summary import Summary
from etmem.model.words import IssueCode
from tests.accuracy.captures import PROGRAMS, XNNPACK, category_bytes, owner_bytes, summarized
from tests.models.registry import ROOT, cache_base, model_path, only_one

PAGE = ROOT / "docs/reference/versions.md"
VERSIONS = ("1.0.1", "1.1.0", "1.2.0", "1.3.1", "1.4.1", "1.5.1")
NEWEST = VERSIONS[-1]
FOR_ANOTHER_TORCH = VERSIONS[:4]
COLUMNS = (
    "native runner",
    "phases, totals",
    "planned memory, allocators",
    "delegates",
    "their categories",
    "instructions",
)
_HEAD = """# What works with which ExecuTorch

`python -m tests.accuracy.versions` runs one program (two convolutions in XNNPACK, `tests/models/tensorless.py`) under
each of these wheels for Linux and writes this page; a test holds it against a run.

"""
_TAIL = """
- **native runner**: `etmem profile` runs the program in a process of its own; else it takes `--runtime python`, and
  Python's own memory stands beside.
- **delegates**: *by instance*, with init, growth and rest of each in a table; *by call stack*: owner and peaks, with
  the issue `untyped_hooks`.
- **their categories**: weights, workspace and operator buffers of XNNPACK told apart, by the functions on the stack.
- **instructions** need a library that was built with its event tracer.

1.0 to 1.3 were made for older torches. Beside torch 2.13 they load when one function that it no longer has is given to
them (`tests/accuracy/programs/missing_in_torch.cpp`), and cannot be handed tensors; so the program takes a number.
1.3.0 and 1.0.0 are not run: 1.3.1 and 1.0.1 replaced them.
"""


def packages(version: str) -> Path:
    """A folder with that ExecuTorch alone, for PYTHONPATH; torch and the rest are the environment's."""
    base = cache_base()
    folder = base / f"executorch-{version}"
    with only_one(base, folder.name):
        if not (folder / "executorch").is_dir():
            # Whole or not at all: what a killed pip left behind would be taken for it.
            with tempfile.TemporaryDirectory(dir=base) as scratch:
                arguments = ("--quiet", "--no-deps", "--target", f"{scratch}/it", f"executorch=={version}")
                subprocess.run([sys.executable, "-m", "pip", "install", *arguments], check=True)
                Path(scratch, "it").rename(folder)
    return folder


@cache
def ran(version: str) -> Summary:
    """``etmem run`` of the program under a version."""
    variables = {} if version == NEWEST else {"PYTHONPATH": str(packages(version))}
    with tempfile.TemporaryDirectory() as folder:
        if version in FOR_ANOTHER_TORCH:
            variables["LD_PRELOAD"] = str(_missing_in_torch(Path(folder)))
        command = (sys.executable, PROGRAMS / "run_tensorless.py", model_path("tensorless"))
        return summarized("run", ("--", *command), variables)


def row(version: str) -> Mapping[str, str]:
    """The page's line: what a run showed."""
    summary = ran(version)
    assert summary.peaks.inference is not None
    moment = summary.peaks.inference.moment
    planned = [arena for arena in summary.arenas if arena.name == "planned[1]"]
    allocators = [arena for arena in summary.arenas if arena.name == "method_allocator" and arena.used_peak_bytes]
    kinds = [str(phase.kind) for phase in summary.phases]
    delegates = "by instance" if summary.delegates else "by call stack" if owner_bytes(moment, XNNPACK) else "no"
    told = category_bytes(moment, XNNPACK, "workspace") and category_bytes(moment, XNNPACK, "operator_buffers")
    cells = (
        _yes(_native(version)),
        _yes(kinds == ["program_load", "method_load", "inference", "inference", "unload"]),
        _yes(planned and allocators),
        delegates,
        _yes(told),
        _yes(any(one.reason is None for one in summary.instructions)),
    )
    return dict(zip(COLUMNS, cells, strict=True))


def codes(version: str) -> set[IssueCode]:
    return {issue.code for issue in ran(version).issues}


def page() -> str:
    lines = [f"| version | {' | '.join(COLUMNS)} |", "|---" * (len(COLUMNS) + 1) + "|"]
    lines += [f"| {version} | {' | '.join(row(version).values())} |" for version in VERSIONS]
    return _HEAD + "\n".join(lines) + "\n" + _TAIL


def _native(version: str) -> bool:
    prefix = None if version == NEWEST else packages(version)
    return executorch.find(prefix).native


def _yes(value: object) -> str:
    return "yes" if value else "no"


def _missing_in_torch(folder: Path) -> Path:
    library = folder / "libmissing.so"
    source = PROGRAMS / "missing_in_torch.cpp"
    subprocess.run(["g++", "-std=c++17", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    return library


if __name__ == "__main__":
    PAGE.write_text(page())
