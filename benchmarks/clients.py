"""The C ABI where no profiler is, and a wrapped allocator: what they cost. Alone: ``python benchmarks/clients.py``."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.measuring import Row, alternate, run, show, told  # noqa: E402
from etmem.capture import build, executorch  # noqa: E402
from etmem.capture.launch import Launch, environment  # noqa: E402

SOURCE = HERE / "client_loop.cpp"
CALLS = 4_000_000
ABSENT_BAR, WRAPPED_BAR = 3, 30


def compile_loop(output: Path) -> Path:
    """Against the installed ExecuTorch, optimised."""
    found = executorch.find()
    assert found.include is not None
    portable = found.include / "executorch/runtime/core/portable_type/c10"
    command = ["g++", "-std=c++17", "-O2", "-w", "-DC10_USING_CUSTOM_GENERATED_MACROS", "-DET_EVENT_TRACER_ENABLED"]
    command += [f"-I{build.include_folder()}", f"-I{found.include}", f"-I{portable}", str(SOURCE), "-o", str(output)]
    run([*command, f"-L{found.libraries}", f"-Wl,-rpath,{found.libraries}", "-lexecutorch"])
    return output


def rows(scratch: Path, times: int) -> Iterator[Row]:
    program = compile_loop(scratch / "client_loop")

    def measure(mode: str, *, recorded: bool = False) -> float:
        command = (str(program), mode, str(CALLS))
        variables = dict(os.environ)
        if recorded:
            launch = Launch(command=command, agent=build.agent(), trace=scratch / "client.etmem")
            variables = environment(launch, os.environ)
        return float(run(command, variables).out)

    calls, empty = alternate(times, lambda: measure("calls"), lambda: measure("empty"))
    yield Row("a call of the C ABI, no etmem", f"{calls - empty:.2f} ns", bar=f"{ABSENT_BAR} ns")
    wrapped, bare = alternate(times, lambda: measure("wrapped", recorded=True), lambda: measure("bare"))
    yield Row("a wrapped allocator, recorded, over the bare one", f"{wrapped - bare:.1f} ns", bar=f"{WRAPPED_BAR} ns")
    wrapped, bare = alternate(times, lambda: measure("wrapped"), lambda: measure("bare"))
    yield Row("the same without a profiler", f"{wrapped - bare:.1f} ns")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="etmem-bench-") as folder:
        show(list(told(rows(Path(folder), 3 if "--quick" in sys.argv[1:] else 7))))
