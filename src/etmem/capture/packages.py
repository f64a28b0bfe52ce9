"""Debian's packages unpacked into the cache: a cross compiler and qemu where nobody may install them.

apt downloads and checks them, as any user; nothing of the system is changed.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from etmem.model.errors import CaptureError

if TYPE_CHECKING:
    from etmem.capture.options import Progress

BROUGHT = "packages"
"""The folder of the cache where package files can be put by hand."""


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
        _relocate(target, folder)
        shutil.copytree(target, folder, symlinks=True, dirs_exist_ok=True)


def _download(names: tuple[str, ...], cache: Path, scratch: Path, progress: Progress) -> list[Path]:
    progress(f"asking apt for {', '.join(names)}")
    listed = _run(("apt-get", "install", "--print-uris", "-qq", "--no-install-recommends", *names), names, cache)
    # Each line: 'URI' FILE BYTES HASH, the file's name being NAME_VERSION_ARCHITECTURE.deb with : as %3a.
    wanted = []
    for line in listed.splitlines():
        if line.startswith("'"):
            name, version, _ = line.split()[1].split("_", 2)
            wanted.append(f"{name}={version.replace('%3a', ':')}")
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
