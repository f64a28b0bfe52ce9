"""Finding an ExecuTorch installation: the wheel of this Python, or a prefix with ``include`` and ``lib``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from etmem.capture import elf
from etmem.model.errors import CaptureError, UsageError

RUNTIME = "libexecutorch.so"
UNKNOWN_VERSION = "unknown"

_COMPONENTS = (
    "executorch_kernels_optimized",
    "executorch_kernels_quantized",
    "executorch_backend_xnnpack",
    "executorch_backend_openvino",
    "executorch_threadpool",
    "executorch_etdump",
)


@dataclass(frozen=True)
class ExecuTorch:
    prefix: Path
    version: str
    include: Path | None
    """The folder that holds ``executorch/runtime``; None where headers are not installed."""
    libraries: Path | None
    runtime: Path | None
    """The library that defines ``executorch::runtime``; None where nothing shared does."""
    wheel: bool
    """It is the package of this Python, so that ``import executorch`` finds it."""

    @property
    def native(self) -> bool:
        """Whether a C++ program can be built on it."""
        return (
            self.runtime is not None
            and self.runtime.name == RUNTIME
            and self.include is not None
            and (self.include / "executorch/extension/module/module.h").is_file()
        )

    @property
    def typed(self) -> bool:
        """Whether its headers know Program and Method: those of the wheels do from 1.3 on."""
        return self.include is not None and (self.include / "executorch/runtime/executor/method.h").is_file()

    def components(self) -> tuple[str, ...]:
        """Names (as for ``-l``) of the kernels, backends and extensions that are there."""
        if self.libraries is None:
            return ()
        return tuple(name for name in _COMPONENTS if (self.libraries / f"lib{name}.so").is_file())


def find(prefix: Path | None = None) -> ExecuTorch:
    """The installation under ``prefix``, or that of this Python. Imports nothing of it.

    Raises ``UsageError`` for a prefix that holds none, ``CaptureError`` where this Python has none.
    """
    if prefix is not None:
        return _at_prefix(prefix)
    spec = find_spec("executorch")
    for location in (spec.submodule_search_locations or ()) if spec else ():
        found = describe(Path(location), wheel=True)
        if found.runtime is not None or found.include is not None:
            return found
    raise CaptureError(
        "ExecuTorch is not installed in this Python",
        "pip install executorch, or point at a build with --executorch PREFIX.",
    )


def of_library(library: Path) -> ExecuTorch:
    """The installation that a runtime library belongs to, by its place. It may lack headers."""
    for folder in library.resolve().parents[:4]:
        if (folder / "include/executorch/runtime").is_dir():
            return _with_runtime(describe(folder, wheel=False), library)
    return _with_runtime(describe(library.resolve().parent, wheel=False), library)


def describe(prefix: Path, *, wheel: bool) -> ExecuTorch:
    """What is under a folder, which may be nothing."""
    include = prefix / "include"
    libraries = next((prefix / name for name in ("lib", "lib64") if (prefix / name / RUNTIME).is_file()), None)
    runtime = libraries / RUNTIME if libraries else _portable_library(prefix)
    return ExecuTorch(
        prefix=prefix,
        version=_version(prefix),
        include=include if (include / "executorch/runtime").is_dir() else None,
        libraries=libraries,
        runtime=runtime,
        wheel=wheel,
    )


def has_event_tracer(library: Path) -> bool:
    """Whether a runtime was built with ET_EVENT_TRACER_ENABLED: only then does it name its operator events."""
    return elf.contains(library, b"OPERATOR_CALL")


def _at_prefix(prefix: Path) -> ExecuTorch:
    for folder in (prefix, prefix / "executorch"):
        found = describe(folder, wheel=False)
        if found.runtime is not None:
            return found
    if any((prefix / name / "libexecutorch.a").is_file() for name in ("lib", "lib64")):
        raise UsageError(
            f"{prefix} holds a static ExecuTorch only",
            "Build it with -DEXECUTORCH_BUILD_SHARED=ON.",
        )
    raise UsageError(f"no ExecuTorch under {prefix}", "A prefix holds include/executorch and lib/libexecutorch.so.")


def _with_runtime(found: ExecuTorch, library: Path) -> ExecuTorch:
    return ExecuTorch(found.prefix, found.version, found.include, found.libraries, library, found.wheel)


def _portable_library(prefix: Path) -> Path | None:
    """Before 1.5 the runtime lives in the Python extension."""
    return next(iter(sorted((prefix / "extension/pybindings").glob("_portable_lib*.so"))), None)


def _version(prefix: Path) -> str:
    for path, pattern in (
        (prefix / "version.py", r'__version__ = "([^"]+)"'),
        *(
            (path, r'PACKAGE_VERSION "([^"]+)"')
            for lib in ("lib", "lib64")
            for path in sorted((prefix / lib / "cmake").glob("*/*[Vv]ersion.cmake"))
        ),
    ):
        match = re.search(pattern, path.read_text()) if path.is_file() else None
        if match:
            return match.group(1)
    return UNKNOWN_VERSION
