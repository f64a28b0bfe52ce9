"""Pools against the runtime's own allocations: 64-bit by loading with bump allocators, 32-bit as measured on ARM."""

from __future__ import annotations

import importlib.util
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from etmem.planning import PlanOptions, plan
from etmem.planning.options import parse_region
from etmem.planning.pools import method_bytes, method_requests, pool_sizes
from etmem.program import is_constant_method, read

PROGRAM = Path(__file__).parent / "programs" / "pools.cpp"
FILES = Path(__file__).parent / "files"
"""Programs that are kept, for what exports them is not at hand everywhere."""
PROGRAMS = (
    "mlp_portable", "many_operators", "every_dtype", "structured", "many_methods", "quantized_portable",
    "convs_three_delegates", "llama", "keyword_spotting",
)  # fmt: skip
MEASURED = {
    ("mlp_portable", 8, False): (4686, 0),
    ("mlp_portable", 8, True): (3168, 177),
    ("mlp_portable", 4, False): (2846, 0),
    ("mlp_portable", 4, True): (2032, 93),
    ("keyword_spotting", 8, True): (16976, 404),
    ("keyword_spotting", 4, False): (14142, 0),
    ("keyword_spotting", 4, True): (11496, 212),
}
"""(method pool, temp pool): the runtime core as built for each width, the narrow one run under qemu-arm."""


@pytest.fixture
def file(model) -> Callable[[str], Path]:
    """The path of a program, kept or exported."""
    return lambda name: kept if (kept := FILES / f"{name}.pte").exists() else model(name)


@pytest.fixture(scope="session")
def pools(tmp_path_factory):
    spec = importlib.util.find_spec("executorch")
    assert spec is not None
    prefix = Path(next(iter(spec.submodule_search_locations)))
    target = tmp_path_factory.mktemp("pools") / "pools"
    include = prefix / "include"
    command = [
        "g++", "-std=c++17", "-w", f"-I{include}", f"-I{include}/executorch/runtime/core/portable_type/c10",
        "-DC10_USING_CUSTOM_GENERATED_MACROS", str(PROGRAM), "-o", str(target), f"-L{prefix}/lib",
        "-Wl,--no-as-needed", "-lexecutorch", "-lexecutorch_backend_xnnpack",
        f"-Wl,-rpath,{prefix}/lib",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return target


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("temp", [True, False])
def test_the_runtime_takes_what_is_computed(file, pools, name, temp):
    path = file(name)
    program = read(path)
    for method in program.plans:
        if is_constant_method(method):
            continue
        operators = sorted({str(operator) for operator in method.operators})
        command = [pools, path, method.name, str(int(temp)), *operators]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
        assert done.returncode == 0, (method.name, done.returncode, done.stderr[-500:])
        loaded, _, temp_high = map(int, done.stdout.split())
        found = pool_sizes(program, method, 8, temp_pool=temp)
        assert (found.method_bytes, found.temp_bytes) == (loaded, temp_high), method.name


@pytest.mark.parametrize(("name", "width", "temp"), MEASURED)
def test_the_values_measured_at_both_widths(file, name, width, temp):
    program = read(file(name))
    found = pool_sizes(program, program.plans[0], width, temp_pool=temp)
    assert (found.method_bytes, found.temp_bytes) == MEASURED[name, width, temp]


def test_what_a_malloc_allocator_is_asked_for(model):
    program = read(model("mlp_portable"))
    asked = method_requests(program, program.plans[0], 8, temp_pool=False, own_temp=False)
    sizes = method_bytes(tuple(asked.entries))
    assert (sum(sizes), len(sizes)) == (4573, 128)


def test_a_backend_that_does_not_tell_is_said(model):
    program = read(model("unknown_backend"))
    found = pool_sizes(program, program.plans[0], 4, temp_pool=True)
    assert found.delegates_bytes is None
    assert found.method_bytes > 0


def test_a_microcontroller_s_program_on_one_screen(file):
    """GIVEN a keyword spotter THEN its memories, its budget and the lines to paste are what was measured."""
    region = parse_region("sram=512KiB:planned,method,temp")
    found = plan(file("keyword_spotting"), PlanOptions(target="armv7m", regions=(region,)))
    (arena,) = found.methods[0].arenas
    assert arena.bytes == 16000 == arena.live_peak_bytes
    verdict = found.verdicts[0]
    assert (verdict.need_bytes, verdict.left_bytes) == (27708, 496580)
    text = found.text()
    assert "FITS 512 KiB sram (524,288 B): 27,708 B needed, 496,580 B left" in text
    assert "without a temp pool: method allocator 14,142, temp 0   64-bit host: 16,976 + 404" in text
    assert "16 kernels (8 different)" in text
