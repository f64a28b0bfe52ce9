"""Wrong input of every kind: one clear line with a hint, the right exit code, and what was captured is readable."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import etmem as package
from tests.accuracy.captures import Ran, etmem
from tests.models.registry import model_path

FAILURE, USAGE, WRONG_FIGURE = 1, 2, 4


def refused(ran: Ran, code: int, *words: str) -> None:
    """One line that names the thing and a hint, no traceback, nothing on standard output."""
    assert ran.code == code, f"exit {ran.code}\n{ran.out}\n{ran.err}"
    assert "Traceback" not in ran.out + ran.err
    lines = [line for line in ran.err.splitlines() if line.strip()]
    assert 1 <= len(lines) <= 4, ran.err
    for word in words:
        assert word in ran.err, ran.err


def profiled(path: Path, *options: object, cwd: Path) -> Ran:
    return etmem("profile", path, *options, "--output", cwd / "trace.etmem", cwd=cwd)


def changed(name: str, target: Path, at: int, to: bytes) -> Path:
    data = bytearray(model_path(name).read_bytes())
    data[at : at + len(to)] = to
    target.write_bytes(data)
    return target


def test_a_missing_file(tmp_path: Path) -> None:
    refused(profiled(tmp_path / "none.pte", cwd=tmp_path), FAILURE, "none.pte")


def test_a_text_file(tmp_path: Path) -> None:
    path = tmp_path / "text.pte"
    path.write_text("this is no program\n" * 50)
    refused(profiled(path, cwd=tmp_path), FAILURE, "text.pte")


def test_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "empty.pte"
    path.touch()
    refused(profiled(path, cwd=tmp_path), FAILURE, "empty.pte")


@pytest.mark.parametrize("kept", [40, 2_000, 100_000])
def test_a_truncated_program(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "short.pte"
    path.write_bytes(model_path("convs").read_bytes()[:kept])
    refused(profiled(path, cwd=tmp_path), FAILURE, "short.pte")


@pytest.mark.parametrize("at", [4, 8, 16, 24], ids=["identifier", "header", "program size", "segment base"])
def test_flipped_bytes_in_the_header(tmp_path: Path, at: int) -> None:
    path = changed("convs", tmp_path / "header.pte", at, b"\xff\xff\xff\xff")
    refused(profiled(path, cwd=tmp_path), FAILURE, "header.pte")


@pytest.mark.parametrize("at", range(48, 1_200, 96))
def test_flipped_bytes_in_the_program(tmp_path: Path, at: int) -> None:
    """Whatever the damage does: refused in one line, or run to an end, never a crash of etmem."""
    path = changed("convs", tmp_path / "damaged.pte", at, b"\xa5\x5a\xa5\x5a")
    ran = profiled(path, cwd=tmp_path)
    assert ran.code in (0, FAILURE, WRONG_FIGURE), ran.err
    assert "Traceback" not in ran.out + ran.err


def test_an_old_program_without_a_constant_segment(tmp_path: Path) -> None:
    """The file is well formed: it is the runtime that refuses it, and its own words are the hint."""
    ran = profiled(model_path("without_constant_segment"), cwd=tmp_path)
    assert ran.code == WRONG_FIGURE, ran.err
    assert "re-export" in ran.out + ran.err
    assert readable(tmp_path / "trace.etmem")


def test_an_operator_that_no_runtime_has(tmp_path: Path) -> None:
    ran = profiled(model_path("custom_operator"), cwd=tmp_path)
    assert ran.code == WRONG_FIGURE, ran.err
    assert "etmem_test::triple" in ran.out + ran.err
    assert "--library" in ran.out + ran.err
    assert readable(tmp_path / "trace.etmem")


def test_a_backend_that_no_runtime_has(tmp_path: Path) -> None:
    ran = profiled(model_path("unknown_backend"), cwd=tmp_path)
    assert ran.code == WRONG_FIGURE, ran.err
    assert "NoSuchBackend" in ran.out + ran.err
    assert readable(tmp_path / "trace.etmem")


def readable(trace: Path) -> bool:
    """A trace of a failed run holds the program load at least."""
    return any(phase.kind == "program_load" for phase in package.load(trace).summary.phases)


@pytest.mark.parametrize(
    ("options", "code", "word"),
    [
        (("--shape", "0=1x3x128x128"), USAGE, "256"),
        (("--shape", "7=1x3x256x256"), USAGE, "7"),
        (("--shape", "0=1xthree"), USAGE, "0=1xthree"),
        (("--method", "backward"), USAGE, "backward"),
        (("--iterations", "0"), USAGE, "iterations"),
        (("--load-mode", "carrier-pigeon"), USAGE, "carrier-pigeon"),
        (("--backend-option", "XnnpackBackend"), USAGE, "XnnpackBackend"),
        (("--input", "none.npz"), FAILURE, "none.npz"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_wrong_options(tmp_path: Path, options: tuple[str, ...], code: int, word: str) -> None:
    ran = profiled(model_path("convs"), *options, cwd=tmp_path)
    assert ran.code == code, f"exit {ran.code}\n{ran.err}"
    assert word in ran.err
    assert "Traceback" not in ran.err


def test_a_folder_as_program(tmp_path: Path) -> None:
    refused(profiled(tmp_path, cwd=tmp_path), FAILURE)


def test_an_unreadable_file(tmp_path: Path) -> None:
    """As a user without the right to read it: root reads anything."""
    path = tmp_path / "secret.pte"
    path.write_bytes(model_path("convs").read_bytes())
    path.chmod(0)
    if os.geteuid() != 0:
        refused(profiled(path, cwd=tmp_path), FAILURE, "secret.pte")
        return
    ran = subprocess.run(
        ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all", "--", *etmem_command(path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    refused(Ran(ran.returncode, ran.stdout, ran.stderr), FAILURE, "secret.pte")


def etmem_command(path: Path) -> list[str]:
    from tests.accuracy.captures import ETMEM

    return [*ETMEM, "profile", str(path)]


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB, mounted where this test is allowed to."""
    folder = tmp_path / "small"
    folder.mkdir()
    prefix = [] if os.geteuid() == 0 else ["sudo", "--non-interactive"]
    subprocess.run([*prefix, "mount", "-t", "tmpfs", "-o", "size=256k,mode=1777", "tmpfs", folder], check=True)
    yield folder
    subprocess.run([*prefix, "umount", folder], check=True)


def test_a_full_disk(tmp_path: Path, full_disk: Path) -> None:
    """GIVEN no room for the trace THEN the program still runs to its end, and an issue says what is missing."""
    ran = etmem("profile", model_path("llama.pte"), "--output", full_disk / "trace.etmem", cwd=tmp_path)
    assert ran.code in (FAILURE, WRONG_FIGURE), ran.err
    assert "Traceback" not in ran.out + ran.err
    assert "disk" in (ran.out + ran.err).lower() or "space" in (ran.out + ran.err).lower()


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    ran = etmem("profile", model_path("convs"), "--output", tmp_path / "none" / "trace.etmem", cwd=tmp_path)
    refused(ran, FAILURE, str(tmp_path / "none"))
