"""ExecuTorch's wheel of another platform: its headers and libraries, in the cache. Nothing is installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from etmem.capture import executorch
from etmem.model.errors import CaptureError, reason

if TYPE_CHECKING:
    from etmem.capture.arch import Arch
    from etmem.capture.executorch import ExecuTorch
    from etmem.capture.options import Progress

BROUGHT = "wheels"
"""The folder of the cache where a wheel can be put by hand."""


def unpacked(version: str, arch: Arch, cache: Path, progress: Progress) -> ExecuTorch:
    """The same version for another instruction set, downloaded by pip at the first time. Raises ``CaptureError``."""
    version = version.partition("+")[0]  # 1.5.1+cpu: the local part is one of builds, not of releases
    folder = cache / f"executorch-{version}-{arch.name}"
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="wheel-", dir=cache) as scratch:
            file = _brought(version, arch, cache) or _downloaded(version, arch, cache, Path(scratch), progress)
            progress(f"unpacking {file.name}")
            _unpack(file, Path(scratch, "unpacked"), folder)
    found = executorch.describe(folder, wheel=False)
    if not found.native:
        raise CaptureError(
            f"the {arch.shown} wheel of ExecuTorch {version} has no C++ libraries",
            "executorch 1.5 and newer have them: update it, or point at a build with --executorch PREFIX.",
        )
    return found


def is_unpacked(version: str, arch: Arch, cache: Path) -> bool:
    return (cache / f"executorch-{version.partition('+')[0]}-{arch.name}").is_dir()


def _brought(version: str, arch: Arch, cache: Path) -> Path | None:
    names = f"executorch-{version}-*{arch.name}.whl"
    return next(iter(sorted((cache / BROUGHT).glob(names))), None)


def _downloaded(version: str, arch: Arch, cache: Path, scratch: Path, progress: Progress) -> Path:
    progress(f"downloading the {arch.shown} wheel of executorch {version}, once")
    command = [
        *(sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet"),
        *("download", f"executorch=={version}", "--no-deps", "--only-binary=:all:"),
        *("--platform", arch.wheel_platform, "--dest", str(scratch)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    found = next(scratch.glob("*.whl"), None)
    if done.returncode != 0 or found is None:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        raise CaptureError(
            f"the {arch.shown} wheel of executorch {version} cannot be had: {said[-1] if said else 'pip failed'}",
            f"Offline: bring executorch-{version}-*-{arch.wheel_platform}.whl into {cache / BROUGHT}. The command is: "
            f"pip download executorch=={version} --no-deps --only-binary=:all: --platform {arch.wheel_platform}",
        )
    return found


def _unpack(wheel: Path, scratch: Path, folder: Path) -> None:
    """Headers, libraries and the version; moved into place as a whole."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if _is_needed(name):
                    archive.extract(name, scratch)
    except (zipfile.BadZipFile, OSError) as error:
        raise CaptureError(f"{wheel} cannot be unpacked: {reason(error)}", "Download it again.") from error
    if not (scratch / "executorch").is_dir():
        raise CaptureError(f"{wheel.name} holds no ExecuTorch", "Is it the wheel of another package?")
    try:
        (scratch / "executorch").rename(folder)
    except OSError:
        if not folder.is_dir():  # else another process was first with the same thing
            raise
        shutil.rmtree(scratch, ignore_errors=True)


def _is_needed(name: str) -> bool:
    library = name.startswith("executorch/lib/") and name.endswith((".so", ".cmake"))
    return library or name.startswith("executorch/include/") or name == "executorch/version.py"
