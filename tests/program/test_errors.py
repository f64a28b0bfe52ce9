"""Files that are no programs, and damaged ones: always a ``ProgramError`` with a hint, never anything else."""

from __future__ import annotations

import os
import random
import struct
import time

import pytest

from etmem.model.errors import ProgramError, UsageError
from etmem.program import inputs, read, read_data
from etmem.program.bundle import unpack
from tests.models.registry import model_path


def refused(path, words, reader=read):
    with pytest.raises(ProgramError) as caught:
        reader(path)
    assert words in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.hint
    return caught.value


def written(tmp_path, data):
    path = tmp_path / "x.pte"
    path.write_bytes(data)
    return path


def test_paths_that_are_no_file(tmp_path):
    refused(tmp_path / "absent.pte", "does not exist")
    refused(tmp_path, "is a directory")
    refused(tmp_path / "absent" / "x.pte", "does not exist")
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", "not a regular file")
    refused("/dev/zero", "not a regular file")
    refused("a\0.pte", "is no path")


def test_a_file_without_permission(tmp_path, monkeypatch):
    path = written(tmp_path, b"x" * 100)
    path.chmod(0)
    if os.access(path, os.R_OK):  # root reads everything: let the system's answer come from open itself
        from pathlib import Path

        def denied(*args, **kwargs):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "open", denied)
    refused(path, "permission denied")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"hello, this is a text file\nof two lines\n", "a text file"),
        (b"PK\x03\x04" + bytes(100), "zip archive"),
        (b"\x7fELF" + bytes(100), "ELF"),
        (b"GGUF" + bytes(100), "GGUF"),
        (b"\x1c\0\0\0TFL3" + bytes(100), "TensorFlow Lite"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS"),
        (bytes(100), "not an ExecuTorch program"),
        (b"\x10\0\0\0ET99" + bytes(100), "unknown version, ET99"),
        (b"\x10\0\0\0ET12", "malformed"),
        (b"\x10", "not an ExecuTorch program"),
    ],
)
def test_other_files(tmp_path, data, words):
    refused(written(tmp_path, data), words)


def test_kinds_are_told_apart(small):
    refused(small / "_default_external_constant.ptd", "data file")
    refused(small / "branches.pte", "not a data file", read_data)
    refused(small / "branches.pte", "not a bundled program", unpack)


def test_an_unknown_method_names_those_there_are(small):
    with pytest.raises(UsageError, match="no method 'fourward'") as caught:
        inputs(read(small / "dynamic.pte"), "fourward")
    assert "get_vocab_size" in caught.value.hint


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.9, 0.999])
def test_a_truncated_program(tmp_path, keep):
    data = model_path("convs").read_bytes()
    refused(written(tmp_path, data[: int(len(data) * keep)]), "cut off")


def test_a_program_cut_inside_its_header_or_tables(small, tmp_path):
    data = (small / "inline_constants.pte").read_bytes()
    for length in range(8, len(data), 7):
        try:
            read(written(tmp_path, data[:length]))
        except ProgramError as error:
            assert "malformed" in error.message  # noqa: PT017 (a cut in the padding may do no harm)


@pytest.mark.parametrize("name", ["branches.pte", "counter.pte", "external.pte", "bundle.bpte"])
def test_flipped_bytes_never_end_in_anything_but_an_error(small, tmp_path, name):
    """Every third byte of the file in turn, set to 0xFF and to a random value."""
    original = (small / name).read_bytes()
    random.seed(7)
    refusals, began = 0, time.monotonic()
    for place in range(0, min(len(original), 2500), 3):
        for value in (0xFF, random.randrange(256)):
            data = bytearray(original)
            data[place] = value
            try:
                read(written(tmp_path, data))
            except ProgramError:
                refusals += 1
    assert refusals > 50
    assert time.monotonic() - began < 120


def test_flipped_bytes_in_external_data_and_bundles(small, tmp_path):
    for name, reader in (("_default_external_constant.ptd", read_data), ("bundle.bpte", unpack)):
        original = (small / name).read_bytes()
        for place in range(0, min(len(original), 2000), 3):
            data = bytearray(original)
            data[place] ^= 0xFF
            try:
                reader(written(tmp_path, data))
            except ProgramError as error:
                assert error.hint  # noqa: PT017


def test_tables_that_share_their_parts_do_not_multiply(tmp_path):
    """A vector of half a million tables that are all one: more elements than an honest file can hold."""
    count = 500_000
    head = struct.pack("<I4s", 8 + 8, b"ET12") + struct.pack("<HHHH", 8, 8, 0, 4)
    root = struct.pack("<iI", 8, 4)
    plan_at = 24 + 4 + 4 * count
    vector = struct.pack("<I", count) + b"".join(
        struct.pack("<I", plan_at + 16 - (28 + 4 * index)) for index in range(count)
    )
    layout = struct.pack("<HHHHHH", 10, 12, 4, 0, 8, 0)
    name = struct.pack("<I", 1000) + b"x" * 1000
    plan = layout + bytes(4) + struct.pack("<iII", 16, 8, 4 + 1000 + 4) + name + struct.pack("<I", 0)
    began = time.monotonic()
    refused(written(tmp_path, head + root + vector + plan), "malformed")
    assert time.monotonic() - began < 10


def test_a_large_file_is_not_read(tmp_path):
    """A program of 2 GiB (a hole in the file system): only its flatbuffer is looked at."""
    data = model_path("convs").read_bytes()
    path = written(tmp_path, data)
    header = read(path).header
    with path.open("r+b") as file:
        file.truncate(2**31)
        file.seek(32)  # the header's segment data size
        file.write(struct.pack("<Q", 2**31 - header.segment_base))
    assert read(path).header.segment_bytes == 2**31 - header.segment_base
