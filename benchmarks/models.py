"""What recording costs a program that runs models."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measuring import HERE, MIB, NATIVE, Row, alternate, interval, run
from etmem.capture import build, executorch, plan
from etmem.capture.job import openvino_library, prepare
from etmem.capture.launch import PROGRESS, Launch, environment
from etmem.capture.options import ProfileOptions
from etmem.delegates import stack_backends
from tests.accuracy.delegate.building import compile_with_executorch
from tests.models.registry import model_path

WIDTH = "2048"
ALTERNATE = (
    ("XNNPACK inference", "convs", 3),
    ("many small portable operators", "many_operators", 300),
    ("language model, one token", "llama.pte", 30),
)
"""What, model, inferences in a row: some tens of milliseconds."""


def rows(scratch: Path, times: int) -> Iterator[Row]:
    yield from _recording_on_and_off(scratch, times * 10)
    yield from _openvino(scratch, times)
    yield _whole_command(scratch, times)
    yield from _start_up(times)


def _recording_on_and_off(scratch: Path, rounds: int) -> Iterator[Row]:
    """In one process, in turn: the ratio of each round, its median and the interval of 95 % of medians."""
    found = executorch.find()
    assert found.runtime is not None
    program = compile_with_executorch(HERE / "alternate.cpp", scratch / "alternate", f"-I{NATIVE / 'agent'}")
    agent, hooks = build.agent(), build.hooks(found.runtime)
    for what, model, inferences in ALTERNATE:
        command = (program, model_path(model), "forward", agent, hooks, scratch / "on.etmem", rounds, inferences)
        pairs = [tuple(map(float, line.split())) for line in run(command).out.splitlines() if line[:1].isdigit()]
        middle, low, high = interval([on / off for on, off in pairs])
        off = sorted(off for _, off in pairs)[len(pairs) // 2]
        yield Row(what, f"{middle:.3f}", f"off {off / 1e6:.2f} ms", f"{low:.3f} to {high:.3f}", "includes 1.02")


def _start_up(times: int) -> Iterator[Row]:
    """Over a bare interpreter's start, the best of several."""

    def best(*arguments: str) -> float:
        return min(run((sys.executable, *arguments)).seconds for _ in range(times))

    bare = best("-c", "pass")
    for what, arguments, bar in (
        ("import etmem", ("-c", "import etmem"), 50),
        ("etmem --help", ("-m", "etmem", "--help"), 150),
    ):
        yield Row(what, f"{(best(*arguments) - bare) * 1000:.0f} ms", f"bare {bare * 1000:.0f} ms", "", f"{bar} ms")


def _openvino(scratch: Path, times: int) -> Iterator[Row]:
    """Load and 30 inferences, the whole process: 50,000 allocations in one init."""
    library = openvino_library()
    command = _runner(scratch, ProfileOptions(program=model_path("openvino_cnn.pte"), iterations=30))
    bare = {**os.environ, "OPENVINO_LIB_PATH": str(library)}
    recorded = environment(_launch(command, scratch / "openvino.etmem"), bare)
    heaptrack = ("heaptrack", "--output", scratch / "openvino.heaptrack", *command)
    ours, alone = alternate(times, lambda: run(command, recorded).seconds, lambda: run(command, bare).seconds)
    theirs = run(heaptrack, bare).seconds
    yield Row("OpenVINO, load and 30 inferences", f"{ours:.2f} s", f"bare {alone:.2f} s", f"{ours / alone:.2f}", "1.15")
    yield Row("", "", f"heaptrack {theirs:.2f} s", f"{ours / theirs:.3f}")
    ours, alone = (alternate(times, lambda v=v: run(command, v).peak_rss_bytes / MIB)[0] for v in (recorded, bare))
    yield Row("its peak RSS", f"{ours:.1f} MiB", f"bare {alone:.1f} MiB", f"{ours - alone:+.1f} MiB", "+4.0 MiB")


def _whole_command(scratch: Path, times: int) -> Row:
    """The command a user types, to its end: profile and report, against memray's run."""
    model = model_path("mlp")
    etmem = (sys.executable, "-m", "etmem", "profile", model, "--output", scratch / "mlp.etmem")
    memray = (sys.executable, "-m", "memray", "run", "--native", "--force", "--output", scratch / "mlp.bin")
    ours, theirs = alternate(
        times,
        lambda: run(etmem).seconds,
        lambda: run((*memray, HERE / "run_model.py", model, WIDTH)).seconds,
    )
    return Row("whole command, 64 MiB mlp", f"{ours:.2f} s", f"memray {theirs:.2f} s", f"{ours / theirs:.3f}", "0.60 s")


def _runner(scratch: Path, options: ProfileOptions) -> tuple[str, ...]:
    text = scratch / f"{options.program.stem}.plan"
    text.write_bytes(os.fsencode(plan.encode(prepare(options, scratch).plan)))
    return str(build.runner(executorch.find())), str(text)


def _launch(command: tuple[str, ...], trace: Path) -> Launch:
    found = executorch.find()
    assert found.runtime is not None
    return Launch(
        command=tuple(part for part in command if part != PROGRESS),
        agent=build.agent(),
        trace=trace,
        hooks=build.hooks(found.runtime),
        stacks=stack_backends(),
        keep_rusage=True,
    )
