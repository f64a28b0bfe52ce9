"""Recording a running interpreter: each case is a script of its own, since the agent stays in the process."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import etmem
from etmem.model.words import IssueCode
from etmem.trace.reader import read

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HEAD = """
import ctypes, json, sys
import etmem
from executorch.runtime import Runtime
import torch
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
runtime = Runtime.get()
def load():
    program = runtime.load_program(sys.argv[1])
    return program, program.load_method("forward")
def run(method, times=2):
    for _ in range(times):
        method.execute([torch.zeros(1, 3, 256, 256)])
"""


@pytest.fixture
def attached(tmp_path: Path, model: Callable[[str], Path]) -> Callable[[str], Path]:
    """Runs a script with the convs model as its argument, in the test's folder."""

    def script(text: str) -> Path:
        file = tmp_path / "script.py"
        file.write_text(HEAD + text)
        done = subprocess.run(
            [sys.executable, file, model("convs")], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return tmp_path

    return script


def blocks_of(summary: etmem.Summary, category: str) -> list[tuple[int, int]]:
    return [
        (row.requested_bytes, row.count)
        for row in summary.largest_blocks
        if row.at == "inference" and row.category == category
    ]


def test_a_part_of_what_an_interpreter_does(attached: Callable[[str], Path]) -> None:
    folder = attached(
        'with etmem.trace("run.etmem") as t:\n    program, method = load()\n    run(method)\n'
        'open("summary.json", "w").write(t.profile.to_json())\nassert "PEAK" in t._repr_html_()\n'
    )
    summary = etmem.load(folder / "run.etmem").summary
    assert blocks_of(summary, "workspace") == [(16_777_248, 1)]
    assert [count for _, count in blocks_of(summary, "operator_buffers")] == [6]
    assert summary.target.runtime == "attached"
    assert json.loads((folder / "summary.json").read_text())["schema"] == "etmem.summary/1"
    rest = next(b for b in summary.balances if b.at == "last_inference")
    assert rest.rss_bytes == sum(line.bytes for line in rest.lines) + rest.unaccounted_bytes
    assert abs(rest.unaccounted_bytes) < 512 * 1024


def test_traces_one_after_the_other_are_each_complete(attached: Callable[[str], Path]) -> None:
    folder = attached(
        'for name in ("one", "two"):\n    with etmem.trace(name + ".etmem"):\n'
        "        program, method = load()\n        run(method)\n        del method, program\n"
    )
    one, two = (etmem.load(folder / f"{name}.etmem").summary for name in ("one", "two"))
    # metadata is larger in the first: XNNPACK initialises itself once in a process
    for category in ("workspace", "operator_buffers", "packed_weights", "planned_memory"):
        assert blocks_of(one, category) == blocks_of(two, category) != []
    assert len(two.balances) == 3


def test_what_was_loaded_before_is_told(attached: Callable[[str], Path]) -> None:
    folder = attached('program, method = load()\nwith etmem.trace("run.etmem"):\n    run(method)\n')
    issues = etmem.load(folder / "run.etmem").summary.issues
    assert IssueCode.METHODS_LOADED_BEFORE_ATTACH in [issue.code for issue in issues]


def test_stopping_gives_every_slot_back(attached: Callable[[str], Path]) -> None:
    folder = attached(
        'with etmem.trace("run.etmem"):\n    program, method = load()\n    run(method)\n'
        "run(method, 3)\nprogram, method = load()\nrun(method)\n"
        'with etmem.trace("two.etmem"):\n    pass\n'
    )
    first = read(folder / "run.etmem")
    inferences = [s for s in first.scopes.values() if s.kind == 3]
    assert len(inferences) == 2
    assert not [s for s in read(folder / "two.etmem").scopes.values() if s.kind <= 4]


def test_modules_that_come_later_are_followed(tmp_path: Path, model: Callable[[str], Path]) -> None:
    """The first import of ExecuTorch happens inside the trace."""
    script = tmp_path / "later.py"
    script.write_text(
        'import sys, etmem\nwith etmem.trace("later.etmem"):\n'
        "    from executorch.runtime import Runtime\n    import torch\n"
        '    method = Runtime.get().load_program(sys.argv[1]).load_method("forward")\n'
        "    method.execute([torch.zeros(1, 3, 256, 256)])\n"
    )
    subprocess.run([sys.executable, script, model("convs")], cwd=tmp_path, capture_output=True, check=True)
    assert blocks_of(etmem.load(tmp_path / "later.etmem").summary, "workspace") == [(16_777_248, 1)]


def test_call_stacks(attached: Callable[[str], Path]) -> None:
    folder = attached('with etmem.trace("run.etmem", stacks=True):\n    program, method = load()\n    run(method)\n')
    trace = read(folder / "run.etmem")
    inside = (trace.events.kind == 1) & (trace.events.scope != 0)
    scopes = {s.id for s in trace.scopes.values() if s.kind != 8}
    pairs = zip(trace.events.stack[inside], trace.events.scope[inside], strict=True)
    told = [bool(stack) for stack, scope in pairs if int(scope) in scopes]
    assert told
    assert all(told)
    assert etmem.load(folder / "run.etmem").summary.balances
    inferences = [s for s in trace.scopes.values() if s.kind == 3]
    for scope in inferences:
        frames = trace.python_stacks[scope.id]
        assert any(frame.function == "run" and frame.file.endswith("script.py") for frame in frames)


def test_one_inside_the_other(attached: Callable[[str], Path]) -> None:
    folder = attached(
        'with etmem.trace("outer.etmem"):\n    program, method = load()\n    run(method, 2)\n'
        '    with etmem.trace("inner.etmem") as inner:\n        run(method, 3)\n'
        "    assert inner.summary().peaks.inference is not None\n    run(method, 1)\n"
    )
    outer, inner = (etmem.load(folder / f"{name}.etmem").summary for name in ("outer", "inner"))
    assert [phase.kind for phase in inner.phases] == ["inference"] * 3
    assert [phase.iteration for phase in inner.phases] == [2, 3, 4]
    assert len([phase for phase in outer.phases if phase.kind == "inference"]) == 6
    assert blocks_of(inner, "workspace") == [(16_777_248, 1)]
    assert inner.peaks.load is None


def test_a_folder_that_is_not_there(attached: Callable[[str], Path]) -> None:
    attached(
        'try:\n    with etmem.trace("nowhere/run.etmem"):\n        pass\n'
        "except etmem.EtmemError as error:\n    assert error.exit_code == 1 and error.hint\n"
    )
