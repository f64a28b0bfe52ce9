"""Both compilers, with every warning an error."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from etmem.capture import build

PROGRAMS = Path(__file__).resolve().parents[2] / "native/tests/programs/clients"
GCC, CLANG = ("gcc", "g++"), ("clang-14", "clang++-14")
STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{build.include_folder()}")


LIBRARIES = ("-lpthread", "-ldl")


def compile_client(
    source: Path,
    output: Path,
    *flags: str,
    compilers: tuple[str, str] = GCC,
    cxx: bool = False,
    libraries: tuple[str, ...] = LIBRARIES,
) -> Path:
    """The program, or with ``-shared`` the library, of one source; a C source as C++ where that is asked for."""
    cxx = cxx or source.suffix == ".cpp"
    language = ("-x", "c++", "-std=c++17") if cxx else ("-std=gnu99",)
    compiler = compilers[cxx]
    assert shutil.which(compiler), f"{compiler} is not installed: see .ci/run"
    command = [compiler, *STRICT, "-O1", *language, str(source), "-o", str(output), *flags, *libraries]
    subprocess.run(command, check=True)
    return output
