"""What is read from ELF files, against binutils and against files that are none."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etmem.capture import elf, executorch


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """Builds a C program: ``program("int x;", "-static")``."""

    def build(source: str, *flags: str) -> Path:
        folder = tmp_path_factory.mktemp("elf")
        (folder / "program.c").write_text(source)
        subprocess.run(["gcc", folder / "program.c", "-o", folder / "program", *flags], check=True)
        return folder / "program"

    return build


def test_a_dynamic_program(program):
    found = elf.read(program("int main(void) { return 0; }", "-Wl,--build-id=0x0123456789abcdef"))
    assert found is not None
    assert "ld-" in (found.interpreter or "")
    assert (found.dynamic, found.bits, found.needed, found.soname) == (True, 64, ("libc.so.6",), None)
    assert found.build_id == "0123456789abcdef"


def test_static_programs(program):
    fixed = elf.read(program("int main(void) { return 0; }", "-static"))
    moving = elf.read(program("int main(void) { return 0; }", "-static-pie"))
    assert fixed is not None
    assert moving is not None
    assert (fixed.interpreter, fixed.dynamic) == (None, False)
    assert moving.interpreter is None


def test_the_runtime_library():
    library = executorch.find().runtime
    assert library is not None
    found = elf.read(library)
    text = subprocess.run(["readelf", "-dnW", library], capture_output=True, text=True, check=False).stdout
    assert found is not None
    assert found.soname == "libexecutorch.so"
    assert list(found.needed) == re.findall(r"Shared library: \[(.+)\]", text)
    assert found.build_id == re.findall(r"Build ID: (\w+)", text)[0] == elf.identity(library)


def test_a_library_without_build_id_is_told_by_its_bytes(program):
    first = program("int x = 1;", "-shared", "-fPIC", "-Wl,--build-id=none")
    second = program("int x = 2;", "-shared", "-fPIC", "-Wl,--build-id=none")
    assert len(elf.identity(first)) == 64
    assert elf.identity(first) != elf.identity(second)


def test_symbols_that_a_file_defines(program):
    path = program(
        'int puts(const char*); static int hidden(void) { return 3; } int main(void) { puts("a"); return hidden(); }',
        "-O0",
    )
    assert elf.defines(path, frozenset({"main"}))
    assert elf.defines(path, frozenset({"nothing", "hidden"}))
    assert not elf.defines(path, frozenset({"puts"}))
    subprocess.run(["strip", path], check=True)
    assert not elf.defines(path, frozenset({"main"}))


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"#!/bin/sh\n", b"\x7fELF\x02\x01" + b"\xff" * 100])
def test_files_that_are_none(tmp_path, content):
    path = tmp_path / "file"
    path.write_bytes(content)
    assert elf.read(path) is None
    assert not elf.defines(path, frozenset({"main"}))


@given(st.data())
def test_any_damage_is_survived(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("elf") / "file"
    content = bytearray(Path(sys.executable).resolve().read_bytes()[:4096])
    for at in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=30)):
        content[at] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(content[: data.draw(st.integers(0, len(content)))]))
    elf.read(path)
    elf.defines(path, frozenset({"main"}))
