"""What running for another CPU needs: found, fetched into the cache, or told in one line with its command."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from etmem.capture import cpus, cross, emulator, packages, wheel
from etmem.capture.arch import AARCH64, X86_64
from etmem.capture.emulator import Emulator
from etmem.capture.options import silent
from etmem.model.errors import CaptureError, UsageError


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without cross compiler and emulator; its cache."""
    which = shutil.which
    monkeypatch.setattr(
        cross.shutil, "which", lambda name: None if name.startswith(("aarch64-", "qemu-")) else which(name)
    )
    cache = tmp_path / "cache"
    monkeypatch.setenv("ETMEM_CACHE", str(cache))
    return cache


def test_what_is_missing_is_named_with_its_command(bare: Path) -> None:
    assert cross.missing(AARCH64) == ("g++-aarch64-linux-gnu", "qemu-user")
    assert cross.missing(X86_64)[-1] == "qemu-user"
    assert cross.install_hint(AARCH64) == "sudo apt-get install g++-aarch64-linux-gnu qemu-user"


def make_package(folder: Path, files: dict[str, str]) -> None:
    root = folder / "root"
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    control = root / "DEBIAN" / "control"
    control.parent.mkdir()
    control.write_text("Package: x\nVersion: 1\nArchitecture: all\nMaintainer: x <x@x>\nDescription: x\n")
    subprocess.run(["dpkg-deb", "--build", root, folder / "x_1_all.deb"], check=True, capture_output=True)
    shutil.rmtree(root)


def test_packages_that_were_brought_are_unpacked(bare: Path) -> None:
    """GIVEN package files in the cache THEN they serve as if they were installed, and what is not needed goes."""
    folder = bare / packages.BROUGHT
    folder.mkdir(parents=True)
    library = "usr/aarch64-linux-gnu/lib"
    make_package(
        folder,
        {
            "usr/bin/aarch64-linux-gnu-g++": '#!/bin/sh\necho "compiler $1"\n',
            "usr/bin/qemu-aarch64": '#!/bin/sh\necho "qemu-aarch64 version 8.2.1"\n',
            "usr/bin/qemu-xtensa": "another emulator",
            "usr/share/doc/x": "documentation",
            f"{library}/libc.so": f"GROUP ( /{library}/libc.so.6 )",
            f"{library}/ld-linux-aarch64.so.1": "",
            f"{library}/libstdc++.so.6": "",
        },
    )
    packages.unpack(cross.missing(AARCH64), bare / "packages-root", silent)
    for name in ("qemu-aarch64", "aarch64-linux-gnu-g++"):
        cross._make_wrapper(name)
    toolchain = cross.find_toolchain(AARCH64)
    assert toolchain is not None
    assert subprocess.run([*toolchain.compiler, "7"], capture_output=True, text=True, check=True).stdout == (
        "compiler 7\n"
    )
    assert (toolchain.libraries / "libc.so").read_text() == f"GROUP ( {toolchain.libraries}/libc.so.6 )"
    program = cross.find_emulator(AARCH64)
    assert program is not None
    assert emulator.version(program) == (8, 2, 1)
    assert cross.missing(AARCH64) == ()
    assert not (bare / "packages-root/usr/bin/qemu-xtensa").exists()
    assert not (bare / "packages-root/usr/share").exists()


def test_a_system_that_cannot_fetch_says_what_to_bring(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "apt-get").write_text("#!/bin/sh\necho 'E: Unable to locate package qemu-user' >&2\nexit 100\n")
    (tools / "apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    with pytest.raises(CaptureError) as raised:
        packages.unpack(("qemu-user",), bare / "packages-root", silent)
    assert raised.value.message == "qemu-user cannot be had: E: Unable to locate package qemu-user"
    assert "sudo apt-get install qemu-user" in raised.value.hint
    assert str(bare / packages.BROUGHT) in raised.value.hint


def test_what_apt_would_install_is_read() -> None:
    text = (
        "Inst qemu-user (1:7.2+dfsg-7 Debian:12 [amd64])\nInst libc6 [2.36-8] (2.36-9 Debian:12 [amd64])\nConf x (1)\n"
    )
    assert packages._INSTALLED.findall(text) == [("qemu-user", "1:7.2+dfsg-7"), ("libc6", "2.36-9")]


def test_offline_the_wheel_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(CaptureError) as raised:
        wheel.unpacked("1.5.1+cpu", AARCH64, tmp_path, silent)
    assert raised.value.message.startswith("the aarch64 wheel of executorch 1.5.1 cannot be had: ")
    assert "executorch-1.5.1-*-manylinux_2_28_aarch64.whl" in raised.value.hint
    assert str(tmp_path / wheel.BROUGHT) in raised.value.hint


def brought_wheel(cache: Path, names: tuple[str, ...]) -> None:
    folder = cache / wheel.BROUGHT
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / "executorch-9.0-cp311-cp311-manylinux_2_28_aarch64.whl", "w") as archive:
        for name in names:
            archive.writestr(name, '__version__ = "9.0"\n')


def test_of_a_wheel_only_headers_and_libraries_are_kept(tmp_path: Path) -> None:
    needed = (
        "executorch/lib/libexecutorch.so",
        "executorch/include/executorch/runtime/x.h",
        "executorch/include/executorch/extension/module/module.h",
        "executorch/version.py",
    )
    brought_wheel(tmp_path, (*needed, "executorch/data/bin/flatc", "executorch/exir/__init__.py"))
    found = wheel.unpacked("9.0", AARCH64, tmp_path, silent)
    assert found.native
    assert found.version == "9.0"
    kept = {str(p.relative_to(found.prefix.parent)) for p in found.prefix.rglob("*") if p.is_file()}
    assert kept == {name.replace("executorch/", f"{found.prefix.name}/", 1) for name in needed}


def test_a_wheel_without_its_libraries_is_refused(tmp_path: Path) -> None:
    brought_wheel(tmp_path, ("executorch/version.py",))
    with pytest.raises(CaptureError, match="has no C\\+\\+ libraries"):
        wheel.unpacked("9.0", AARCH64, tmp_path, silent)


def test_an_old_qemu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """GIVEN a qemu that leaves AVX2 out silently THEN haswell is refused: it would count other bytes."""
    monkeypatch.setattr(emulator, "version", lambda program: (6, 2, 0))
    with pytest.raises(CaptureError, match=r"haswell needs qemu 7\.2"):
        emulator.check_version(Path("qemu-x86_64"), cpus.named("haswell"))
    emulator.check_version(Path("qemu-aarch64"), cpus.named("cortex-a53"))


def test_the_command_keeps_the_agent_out_of_the_emulator(tmp_path: Path) -> None:
    cpu = cpus.named("cortex-a76")
    run = Emulator(Path("/bin/qemu-aarch64"), cpu, tmp_path / "root", tmp_path / "lib")
    command = run.command(("runner", "plan"), "/agent.so")
    assert command[-2:] == ("runner", "plan")
    assert "LD_PRELOAD=/agent.so" in command
    assert f"LD_LIBRARY_PATH={tmp_path / 'lib'}" in command
    with pytest.raises(CaptureError, match="comma"):
        run.command(("runner",), "/a,b.so")


def test_an_arm_program_reads_what_it_runs_on(tmp_path: Path) -> None:
    folder = emulator.root(cpus.named("cortex-a53"), tmp_path)
    assert folder is not None
    text = (folder / "proc/cpuinfo").read_text()
    assert text.count("CPU part\t: 0xd03") == emulator.CORES
    assert emulator.root(cpus.named("haswell"), tmp_path) is None


@pytest.mark.parametrize(
    ("arch", "cpu", "name"),
    [("arm64", None, "cortex-a76"), (None, "MAX", "max"), (None, None, None), (None, "host", None)],
)
def test_the_cpu_that_is_meant(arch: str | None, cpu: str | None, name: str | None) -> None:
    chosen = cpus.choose(arch, cpu)
    assert (chosen.name if chosen else None) == name


def test_a_cpu_of_another_arch_is_refused() -> None:
    with pytest.raises(UsageError, match="haswell is no aarch64"):
        cpus.choose("aarch64", "haswell")
