"""Instruction sets and CPU names from /proc/cpuinfo."""

from __future__ import annotations

import pytest

from etmem.capture import machine

AVX512 = "avx avx2 fma sse4_1 avx512f avx512cd avx512bw avx512dq avx512vl"


@pytest.mark.parametrize(
    ("flags", "isa"),
    [
        (AVX512, "avx512"),
        (AVX512.replace("avx512vl", ""), "avx2"),
        ("sse4_1 avx fma", "fma3"),
        ("sse4_1 avx", "avx"),
        ("sse4_1", "sse4.1"),
        ("", "sse2"),
    ],
)
def test_x86(flags, isa):
    fields = machine.cpu_fields(
        f"processor\t: 0\nmodel name\t: Some  CPU @ 2 GHz\nflags\t\t: {flags}\n\nprocessor\t: 1\n"
    )
    assert machine.instruction_set(fields, "x86_64") == isa
    assert machine.cpu_model(fields) == "Some CPU @ 2 GHz"


@pytest.mark.parametrize(("features", "isa"), [("fp asimd", "neon"), ("fp asimd sve sme", "sme")])
def test_arm(features, isa):
    fields = machine.cpu_fields(f"processor : 0\nFeatures : {features}\nCPU implementer : 0x41\nCPU part : 0xd0b\n")
    assert machine.instruction_set(fields, "aarch64") == isa
    assert machine.cpu_model(fields) == "implementer 0x41 part 0xd0b"


def test_this_machine():
    name, isa = machine.cpu()
    assert name
    assert isa
    here = machine.environment(("etmem", "profile"), {"LD_PRELOAD": "/usr/lib/libjemalloc.so.2"})
    assert here.allocator == "jemalloc"
    assert here.page_bytes % 4096 == 0
    assert here.exit_status is None
