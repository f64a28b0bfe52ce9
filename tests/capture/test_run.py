"""``etmem run``: any command, how it ends, and why there may be no trace."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from etmem.capture import build as native
from etmem.capture import diagnose, executorch
from etmem.capture.inputs import default_inputs
from etmem.capture.metadata import CAPTURE_NOTE, decode
from etmem.capture.options import RunOptions
from etmem.capture.plan import RunnerPlan, encode
from etmem.capture.run import run
from etmem.model.errors import CaptureError, UsageError
from etmem.model.words import IssueCode
from etmem.program import read as read_program
from etmem.trace.reader import read
from etmem.trace.tables import EventKind
from tests.capture.programs import build


@pytest.fixture
def options(tmp_path):
    return RunOptions(output=tmp_path / "out.etmem")


def sizes(path: Path) -> set[int]:
    events = read(path).events
    return set(events.size[events.kind == EventKind.ALLOC].tolist())


def test_a_native_program(tmp_path, options):
    capture = run((str(build("plain", tmp_path)),), options)
    assert capture.exit_status == 7
    assert 12345 in sizes(capture.trace_path)
    assert {path.name for path in tmp_path.glob("out*")} == {"out.etmem"}


def test_a_killed_program_keeps_what_it_recorded(tmp_path, options):
    capture = run((str(build("killed", tmp_path)),), options)
    assert capture.exit_status == -signal.SIGKILL
    assert 54321 in sizes(capture.trace_path)
    trace = read(capture.trace_path)
    assert not trace.header.closed
    assert trace.note("exit_status") == "-9"


def test_the_trace_says_how_it_was_made(tmp_path, options):
    program = str(build("plain", tmp_path))
    capture = run((program,), options)
    metadata = decode(read(capture.trace_path).note(CAPTURE_NOTE) or "")
    assert metadata.target == capture.target
    assert metadata.environment == capture.environment
    assert metadata.environment.exit_status == 7
    assert metadata.environment.command == (program,)
    assert metadata.issues == capture.issues


def test_through_execs(tmp_path, options):
    program = build("plain", tmp_path)
    capture = run(("env", "A=1", "nice", str(program)), options)
    assert capture.exit_status == 7
    assert 12345 in sizes(capture.trace_path)


def test_a_program_without_executorch(tmp_path, options):
    (issue,) = run((str(build("plain", tmp_path)),), options).issues
    assert issue.code is IssueCode.NO_EXECUTORCH


def test_children_are_named_where_they_are_not_recorded(tmp_path, options):
    program = build("plain", tmp_path)
    capture = run(("sh", "-c", f"{program}; true"), options)
    assert capture.exit_status == 0
    (issue,) = capture.issues
    assert "--children" in issue.hint
    assert str(program) in issue.hint
    assert 12345 not in sizes(capture.trace_path)
    assert {path.name for path in tmp_path.glob("out*")} == {"out.etmem"}


def test_children_are_recorded_where_asked(tmp_path, options):
    program = build("plain", tmp_path)
    run(("sh", "-c", f"{program}; true"), RunOptions(output=options.output, children=True))
    (child,) = tmp_path.glob("out.etmem.*")
    assert 12345 in sizes(child)
    assert read(child).header.forked_child


def test_a_static_program(tmp_path, options):
    with pytest.raises(CaptureError, match="plain is statically linked"):
        run((str(build("plain", tmp_path, "-static")),), options)


def test_a_static_runtime(tmp_path, options):
    program = build("runtime_inside", tmp_path)
    (issue,) = run(("nice", str(program)), options).issues
    assert issue.code is IssueCode.EXECUTORCH_STATIC
    assert "EXECUTORCH_BUILD_SHARED" in issue.hint


def test_a_stripped_static_runtime(tmp_path):
    program = build("plain", tmp_path)
    assert diagnose.static_runtime((str(program),)) is None
    with program.open("ab") as file:
        file.write(b"Program identifier '%.4s' != expected '%.4s'\0")
    issue = diagnose.static_runtime((str(program),))
    assert issue is not None
    assert issue.detail["path"] == str(program)


def test_a_library_with_the_runtime_is_not_static():
    assert diagnose.static_runtime((str(executorch.find().runtime), sys.executable)) is None


def test_set_user_id(tmp_path, monkeypatch):
    program = build("plain", tmp_path)
    program.chmod(program.stat().st_mode | stat.S_ISUID)
    monkeypatch.setattr(os, "geteuid", lambda: program.stat().st_uid + 1)
    assert "set-user-ID" in diagnose.no_trace((str(program),), 0, tmp_path).message


def test_no_space_for_a_trace(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda folder: type("Usage", (), {"free": 4096})())
    assert diagnose.no_trace((sys.executable,), 0, tmp_path).message == f"no space left in {tmp_path}"


def test_a_program_for_another_machine(tmp_path):
    program = build("plain", tmp_path)
    content = bytearray(program.read_bytes())
    content[18:20] = (243).to_bytes(2, "little")
    program.write_bytes(bytes(content))
    assert "is for riscv64" in diagnose.no_trace((str(program),), 127, tmp_path).message


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "was not found"),
        (lambda path: path.write_text("#!/bin/sh\n"), "is not executable"),
        (lambda path: path.mkdir(), "is not executable"),
    ],
    ids=["missing", "no x bit", "folder"],
)
def test_a_command_that_cannot_be_started(tmp_path, options, make, message):
    make(tmp_path / "command")
    with pytest.raises(CaptureError, match=message) as raised:
        run((str(tmp_path / "command"),), options)
    assert raised.value.hint


def test_a_dry_run_of_a_native_program(tmp_path, model):
    """GIVEN any program WHEN run dry THEN what computed all the same is told from what was seen."""
    program = read_program(model("convs_three_delegates"))
    runs = default_inputs(program, ("forward",), (), 1).runs
    (tmp_path / "plan").write_text(encode(RunnerPlan(model("convs_three_delegates"), ("forward",), runs)))
    runner = str(native.runner(executorch.find()))
    capture = run((runner, str(tmp_path / "plan")), RunOptions(output=tmp_path / "out.etmem", dry=True))
    (issue,) = capture.issues
    assert issue.code is IssueCode.DRY_OUTPUTS_INVALID
    assert "cumsum" in issue.message
    assert capture.target.executorch == executorch.find().version


def test_no_command(options):
    with pytest.raises(UsageError, match="no command"):
        run((), options)


def test_a_place_for_the_trace_that_is_none(tmp_path):
    program = str(build("plain", tmp_path))
    with pytest.raises(CaptureError, match="is not a folder"):
        run((program,), RunOptions(output=tmp_path / "no/out.etmem"))
    with pytest.raises(CaptureError, match="is a folder"):
        run((program,), RunOptions(output=tmp_path))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_goes_to_the_program(tmp_path, number):
    """GIVEN a program that ends in its own way WHEN the launcher is signalled THEN it does, and the trace is kept."""
    program = build("waits", tmp_path)
    code = (
        "import sys; from pathlib import Path\n"
        "from etmem.capture.options import RunOptions; from etmem.capture.run import run\n"
        "print(run(sys.argv[1:2], RunOptions(output=Path(sys.argv[2]))).exit_status)\n"
    )
    launcher = subprocess.Popen(
        [sys.executable, "-c", code, program, tmp_path / "out.etmem"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert launcher.stderr is not None
    assert launcher.stderr.readline() == "ready\n"
    time.sleep(0.1)
    launcher.send_signal(number)
    output, _ = launcher.communicate(timeout=30)
    assert output == f"{int(number)}\n"
    assert read(tmp_path / "out.etmem").header.closed


def test_input_and_output_are_the_callers(tmp_path):
    code = (
        "import sys; from pathlib import Path\n"
        "from etmem.capture.options import RunOptions; from etmem.capture.run import run\n"
        "run(['cat'], RunOptions(output=Path(sys.argv[1])))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "out.etmem"],
        input="through",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "through"
    assert done.stderr == ""
