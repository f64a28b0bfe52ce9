"""What recording costs a program that runs models."""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.measuring import HERE, MIB, NATIVE, WIDTH, Ran, Row, alternate, interval, peak_rss, run
from benchmarks.peers import HEAPTRACK, MASSIF, MEMRAY_NATIVE
from etmem.capture import build, executorch, plan
from etmem.capture.job import openvino_library, prepare
from etmem.capture.launch import PROGRESS, Launch, environment
from etmem.capture.options import ProfileOptions
from etmem.delegates import stack_backends
from etmem.trace.reader import read
from tests.accuracy.delegate.building import compile_with_executorch
from tests.models.registry import model_path

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
        yield Row(
            what,
            f"{middle:.3f}",
            f"off {off / 1e6:.2f} ms",
            f"{low:.3f} to {high:.3f}",
            "includes 1.02" if model == "convs" else "",
        )


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
    command = runner_command(scratch, ProfileOptions(program=model_path("openvino_cnn.pte"), iterations=30))
    bare = {**os.environ, "OPENVINO_LIB_PATH": str(library)}
    recorded = environment(_launch(command, scratch / "openvino.etmem"), bare)
    pairs = [(run(command, recorded), run(command, bare)) for _ in range(times * 2)]
    yield _over(pairs, "OpenVINO, load and 30 inferences", lambda ran: ran.seconds, "1.15, aim 1.10")
    yield _over(pairs, "its CPU time", lambda ran: ran.cpu_seconds)
    ours = min(ran.seconds for ran, _ in pairs)
    for peer in (HEAPTRACK, MASSIF):
        if peer.installed:
            theirs = run(peer.command(scratch, *command), bare).seconds
            yield Row("", "", f"{peer.name} {theirs:.2f} s", f"{ours / theirs:.3f}")
        else:
            yield peer.absent()
    more = statistics.median(peak_rss(command, recorded) - peak_rss(command, bare) for _ in range(times)) / MIB
    yield Row("its peak RSS", f"{more:+.1f} MiB", "", "", "+4.0 MiB")
    memory = read(scratch / "openvino.etmem").header.agent_bytes / MIB
    yield Row("the agent's own memory in it", f"{memory:.2f} MiB", "", "", "4 MiB")


def _over(pairs: Sequence[tuple[Ran, Ran]], what: str, figure: Callable[[Ran], float], bar: str = "") -> Row:
    """The ratio of each pair, its median and the interval of 95 % of medians."""
    middle, low, high = interval([figure(ours) / figure(bare) for ours, bare in pairs])
    ours, bare = (min(figure(pair[side]) for pair in pairs) for side in (0, 1))
    beside = f"{ours * 1000:.0f} ms, bare {bare * 1000:.0f} ms"
    return Row(what, f"{middle:.3f}", beside, f"{low:.3f} to {high:.3f}", bar)


def _whole_command(scratch: Path, times: int) -> Row:
    """The command a user types, to its end: profile and report, against memray's run."""
    model, name, bar = model_path("mlp"), "whole command, 64 MiB mlp", "0.60 s"
    etmem = (sys.executable, "-m", "etmem", "profile", model, "--output", scratch / "mlp.etmem")
    memray = MEMRAY_NATIVE.python(scratch, HERE / "run_model.py", model, WIDTH)
    if not MEMRAY_NATIVE.installed:
        (ours,) = alternate(times, lambda: run(etmem).seconds)
        return Row(name, f"{ours:.2f} s", MEMRAY_NATIVE.absent().beside, "", bar)
    ours, theirs = alternate(times, lambda: run(etmem).seconds, lambda: run(memray).seconds)
    return Row(name, f"{ours:.2f} s", f"memray --native {theirs:.2f} s", f"{ours / theirs:.3f}", bar)


def runner_command(scratch: Path, options: ProfileOptions) -> tuple[str, ...]:
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
