"""A delegate that allocates known sizes through every route: owners, categories and peaks to the byte."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from etmem.analysis.context import Context
from etmem.capture import build, executorch, launch, plan
from etmem.capture.job import prepare
from etmem.capture.options import ProfileOptions
from etmem.delegates import descriptions
from etmem.delegates.loading import parse
from etmem.model.summary import Phase
from etmem.model.words import PhaseKind
from tests.accuracy.captures import etmem
from tests.accuracy.delegate import accounts
from tests.accuracy.delegate.building import HERE, build_delegate, compile_with_executorch
from tests.models.allocating import BACKEND, EXECUTE, INIT, PLANS
from tests.models.registry import model_path

ITERATIONS = 2
RUNTIMES = ("native", "python")
SMALL = 1024
"""Above what the C library takes for one thread: its table of thread-local storage."""

DESCRIPTION = f"""
backend = "{BACKEND}"
record_stacks = true
threads = "own"

[[rules]]
symbol = 'allocate_weights'
category = "packed_weights"

[dry]
reason = "it only allocates"

[tested]
by = "run"
what = "this test"
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_delegate(tmp_path_factory.mktemp("delegate"))


@pytest.fixture(scope="module")
def runs(library: Path) -> dict[str, Context]:
    """The same program in the native runner and in Python."""
    model, found = model_path("allocating"), {}
    python = (sys.executable, HERE / "run_with_library.py", library, model, ITERATIONS, *sorted(PLANS))
    for name, arguments in (
        ("native", ("profile", model, "--library", library, "--iterations", ITERATIONS)),
        ("python", ("run", "--", *python)),
    ):
        trace = library.parent / f"{name}.etmem"
        verb, *rest = arguments
        ran = etmem(verb, "--output", trace, *rest)
        assert ran.code == 0, ran.out + ran.err
        found[name] = accounts.read(trace)
    return found


def phase(found: Context, kind: PhaseKind, method: str) -> Phase:
    """The first of a kind."""
    return next(one for one in found.phases if one.kind == kind and one.method == method)


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("method", PLANS)
def test_every_block(runs: dict[str, Context], runtime: str, method: str) -> None:
    """GIVEN a plan THEN the delegate's blocks are those of the plan, in category, phase, size and number."""
    expected = accounts.expected_blocks(method, ITERATIONS)
    assert accounts.blocks(runs[runtime], method) == expected


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("method", ["heap", "mappings", "tagged", "nothing"])
def test_peaks_to_the_byte(runs: dict[str, Context], runtime: str, method: str) -> None:
    found, label = runs[runtime], f"{method}/{BACKEND}[0]"
    load, inference = phase(found, PhaseKind.METHOD_LOAD, method), phase(found, PhaseKind.INFERENCE, method)
    assert accounts.bytes_at(load.peak, label) == accounts.held(method, INIT)
    assert accounts.bytes_at(inference.peak, label) == accounts.held(method, INIT, EXECUTE)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_delegates_thread(runs: dict[str, Context], runtime: str) -> None:
    """GIVEN a thread that a delegate starts THEN what it allocates is the delegate's, and so is its own little."""
    found, label = runs[runtime], f"threads/{BACKEND}[0]"
    peak = accounts.bytes_at(phase(found, PhaseKind.INFERENCE, "threads").peak, label)
    planned = accounts.held("threads", INIT, EXECUTE)
    assert planned <= peak <= planned + SMALL


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_executorchs_allocators(runs: dict[str, Context], runtime: str) -> None:
    """GIVEN allocators of ExecuTorch THEN the bytes are ExecuTorch's, and the arena says who asked for them."""
    found = runs[runtime]
    label = f"allocators/{BACKEND}[0]"
    for route, name in accounts.LENT.items():
        asked = [step.bytes for step in PLANS["allocators"] if step.route == route]
        behind = accounts.lent_blocks(found, route)
        times = ITERATIONS if name == "temp_allocator" else 1
        assert all(behind[size] >= times for size in asked)
        arena = next(a for a in found.arenas if (a.name, a.method) == (name, "allocators"))
        user = next(user for user in arena.users if user.instance == label)
        assert (user.bytes, user.allocations) == (times * sum(asked), times * len(asked))
    # All that is left to the delegate is the list of pointers that the allocator itself keeps.
    assert accounts.bytes_at(phase(found, PhaseKind.INFERENCE, "allocators").peak, label) <= SMALL


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_all_is_given_back(runs: dict[str, Context], runtime: str) -> None:
    """GIVEN destroy WHEN the methods are gone THEN so are their blocks, but for what threads keep."""
    found = runs[runtime]
    last = max(span.end for span in found.spans)
    live = [
        row for row in found.live_at(last).tolist() if found.keys[int(found.ledger.code[row])].owner == accounts.OWNER
    ]
    assert sum(int(found.private_bytes[row]) for row in live) <= SMALL


def test_categories_by_call_stack(library: Path, tmp_path: Path) -> None:
    """GIVEN a description with a rule for a function THEN what is allocated in it has the rule's category."""
    job = prepare(ProfileOptions(program=model_path("allocating"), libraries=(library,)), tmp_path)
    text, trace = tmp_path / "plan", tmp_path / "run.etmem"
    text.write_text(plan.encode(job.plan))
    runner = build.runner(executorch.find())
    command = (str(runner), str(text), launch.PROGRESS)
    status = launch.run(launch.Launch(command=command, agent=build.agent(), trace=trace, stacks=(BACKEND,)))
    assert status == 0
    found = accounts.read_with(trace, {**descriptions(), BACKEND: parse(DESCRIPTION, "test")})
    heap = accounts.blocks(found, "heap")
    planned = accounts.expected_blocks("heap", ITERATIONS)
    through = {step.bytes for step in PLANS["heap"] if step.route == "malloc"}
    assert {size for category, _, size in heap if category == "packed_weights"} == through
    assert sum(heap.values()) == sum(planned.values())


@pytest.fixture(scope="module")
def two_threads(library: Path) -> Path:
    folder = library.parent
    flags = (f"-L{folder}", f"-Wl,-rpath,{folder}", "-Wl,--no-as-needed", "-lallocating")
    return compile_with_executorch(HERE / "two_threads.cpp", folder / "two_threads", *flags)


def run_two(program: Path, trace: Path, *arguments: object) -> Context:
    ran = etmem("run", "--output", trace, "--", program, *arguments)
    assert ran.code == 0, ran.out + ran.err
    return accounts.read(trace)


def test_two_methods_on_two_threads(two_threads: Path, tmp_path: Path) -> None:
    """GIVEN one program WHEN two of its methods load and run at once THEN each byte has the right owner."""
    model = model_path("allocating")
    for one, other in (("heap", "mappings"), ("tagged", "threads")):
        found = run_two(two_threads, tmp_path / "run.etmem", model, one, model, other, ITERATIONS)
        for method in (one, other):
            assert accounts.blocks(found, method) == accounts.expected_blocks(method, ITERATIONS)


def test_two_programs_on_two_threads(two_threads: Path, tmp_path: Path) -> None:
    """GIVEN two programs WHEN the same method of both runs at once THEN each instance has what its plan says."""
    model, copy = model_path("allocating"), tmp_path / "copy.pte"
    copy.write_bytes(model.read_bytes())
    found = run_two(two_threads, tmp_path / "run.etmem", model, "heap", copy, "threads", ITERATIONS)
    assert {(instance.program, instance.method) for instance in found.instances} == {(1, "heap"), (2, "threads")}
    assert accounts.blocks(found, "heap", 1) == accounts.expected_blocks("heap", ITERATIONS)
    assert accounts.blocks(found, "threads", 2) == accounts.expected_blocks("threads", ITERATIONS)
