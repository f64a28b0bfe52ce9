"""Debian's packages unpacked into the cache: a cross compiler and qemu where nobody may install them.

apt downloads and checks them, as any user; nothing of the system is changed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from etmem.capture.arch import ALL
from etmem.model.errors import CaptureError

if TYPE_CHECKING:
    from etmem.capture.options import Progress

BROUGHT = "packages"
"""The folder of the cache where package files can be put by hand."""


_INSTALLED = re.compile(r"^Inst (\S+) (?:\[\S+\] )?\((\S+) ", re.MULTILINE)
"""What apt says it would install: ``Inst NAME [OLD] (VERSION SOURCE)``."""


def available() -> bool:
    """Whether this is a system whose packages can be unpacked."""
    return all(shutil.which(tool) for tool in ("apt-get", "dpkg-deb"))


def unpack(names: tuple[str, ...], folder: Path, progress: Progress) -> None:
    """The packages, and those of their dependencies that are not installed, under ``folder``.

    Raises ``CaptureError`` with what can be done instead.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="packages-", dir=folder.parent) as scratch:
        brought = sorted((folder.parent / BROUGHT).glob("*.deb"))
        files = brought or _download(names, folder.parent, Path(scratch), progress)
        target = Path(scratch, "root")
        for number, file in enumerate(files, 1):
            progress(f"unpacking {file.name}, {number} of {len(files)}")
            _run(("dpkg-deb", "-x", str(file), str(target)), names, folder.parent)
            if file not in brought:
                file.unlink()
        _prune(target)
        _relocate(target, folder)
        shutil.copytree(target, folder, symlinks=True, dirs_exist_ok=True)


def _download(names: tuple[str, ...], cache: Path, scratch: Path, progress: Progress) -> list[Path]:
    progress(f"asking apt for {', '.join(names)}")
    planned = _run(("apt-get", "install", "--simulate", "--no-install-recommends", *names), names, cache)
    wanted = [f"{match[1]}={match[2]}" for match in _INSTALLED.finditer(planned)]
    for number, package in enumerate(wanted, 1):
        progress(f"downloading {package.partition('=')[0]}, {number} of {len(wanted)}, once")
        _run(("apt-get", "download", "-qq", package), names, cache, scratch)
    return sorted(scratch.glob("*.deb"))


def _run(command: tuple[str, ...], names: tuple[str, ...], cache: Path, folder: Path | None = None) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, cwd=folder
        )
    except OSError as error:
        raise _failed(names, cache, str(error)) from error
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if line.startswith("E:")] or done.stderr.splitlines()
        raise _failed(names, cache, said[0] if said else f"{command[0]} failed")
    return done.stdout


def _failed(names: tuple[str, ...], cache: Path, why: str) -> CaptureError:
    return CaptureError(
        f"{' and '.join(names)} cannot be had: {why}",
        f"sudo apt-get update && sudo apt-get install {' '.join(names)}. Offline: bring their .deb files and those of "
        f"their dependencies into {cache / BROUGHT}.",
    )


def _prune(root: Path) -> None:
    """Two thirds of the bytes: other processors' emulators, link-time optimisation, sanitizers, documentation."""
    kept = {arch.emulator for arch in ALL}
    unneeded = [path for path in root.glob("usr/bin/qemu-*") if path.name not in kept]
    for pattern in ("usr/bin/*-lto-dump*", "usr/lib/gcc-cross/*/*/lto1", "usr/*-linux-gnu/lib/lib*san.*", "usr/share"):
        unneeded += root.glob(pattern)
    for path in unneeded:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _relocate(root: Path, final: Path) -> None:
    """libc.so and its like are texts that name the libraries by their installed paths."""
    for folder in root.glob("usr/*-linux-gnu/lib"):
        for script in folder.glob("lib*.so"):
            if script.is_symlink() or script.stat().st_size > 4096:
                continue
            text = script.read_bytes()
            if b"GROUP" in text:
                installed = f"/{folder.relative_to(root)}/".encode()
                script.write_bytes(text.replace(installed, f"{final}{installed.decode()}".encode()))
