"""Compiles the tests' own C++ against the installed ExecuTorch: a delegate, and programs."""

from __future__ import annotations

import subprocess
from pathlib import Path

from etmem.capture import executorch

HERE = Path(__file__).parent
INCLUDE = Path(__file__).resolve().parents[3] / "native/include"
COMPONENTS = ("", "_kernels_optimized", "_backend_xnnpack", "_threadpool", "_etdump")


def compile_with_executorch(source: Path, output: Path, *flags: str) -> Path:
    """The program of one source, or with ``-shared`` the library, linked with all of the wheel's C++ libraries."""
    found = executorch.find()
    assert found.include is not None
    assert found.libraries is not None
    portable = found.include / "executorch/runtime/core/portable_type/c10"
    subprocess.run(
        [
            *("g++", "-w", "-O1", "-g1", "-std=c++17", source, "-o", output, *flags),
            *("-DC10_USING_CUSTOM_GENERATED_MACROS", "-DET_EVENT_TRACER_ENABLED"),
            *(f"-I{HERE}", f"-I{INCLUDE}", f"-I{found.include}", f"-I{portable}"),
            *(f"-L{found.libraries}", f"-Wl,-rpath,{found.libraries}", "-Wl,--no-as-needed"),
            *(f"-lexecutorch{name}" for name in COMPONENTS),
            *("-ldl", "-lpthread"),
        ],
        check=True,
    )
    return output


def build_delegate(folder: Path) -> Path:
    return compile_with_executorch(HERE / "delegate.cpp", folder / "liballocating.so", "-shared", "-fPIC")
