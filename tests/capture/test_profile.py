"""``etmem profile``: the native runner under the agent, from options to a finished trace."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from etmem.capture.metadata import CAPTURE_NOTE, decode
from etmem.capture.options import BackendOption, LoadMode, Preset, ProfileOptions, Runtime, ShapeOption
from etmem.capture.profile import profile
from etmem.model.errors import BuildError, InputError, ProgramError, UsageError
from etmem.model.words import IssueCode, Severity
from etmem.trace.reader import read
from etmem.trace.tables import ScopeKind, Trace


@pytest.fixture
def go(model, tmp_path):
    """Profiles a test model into ``out.etmem``."""

    def run(name: str, **options):
        return profile(ProfileOptions(program=model(name), output=tmp_path / "out.etmem", **options))

    return run


def phases(trace: Trace) -> list[tuple[str, str]]:
    return [
        (scope.kind.name, scope.name) for scope in trace.scopes.values() if scope.kind.is_phase and not scope.failed
    ]


def test_a_program(go, tmp_path):
    steps: list[str] = []
    capture = go("mlp_two_methods", iterations=1, progress=steps.append)
    assert capture.exit_status == 0
    assert capture.issues == ()
    assert [kind for kind, _ in phases(read(capture.trace_path))] == [
        "PROGRAM_LOAD", "METHOD_LOAD", "METHOD_LOAD", "INFERENCE", "INFERENCE", "UNLOAD", "UNLOAD",
    ]  # fmt: skip
    assert {path.name for path in tmp_path.iterdir()} == {"out.etmem", "out.log"}
    assert "loading decode" in steps
    assert "running prefill, 2 of 2" in steps


def test_the_trace_says_how_it_was_made(go, model):
    capture = go(
        "mlp_dynamic", load_mode=LoadMode.FILE, iterations=3, threads=1, shapes=(ShapeOption(None, 0, (2, 2048)),)
    )
    trace = read(capture.trace_path)
    metadata = decode(trace.note(CAPTURE_NOTE) or "")
    assert (metadata.target, metadata.environment) == (capture.target, capture.environment)
    assert metadata.programs == (str(model("mlp_dynamic")),)
    target = metadata.target
    assert (target.runtime, target.loader, target.iterations, target.threads) == ("native", "file", 3, 1)
    assert [(spec.shape, spec.upper_bound) for spec in target.inputs] == [((2, 2048), False)]
    assert trace.note("program.1.path") == str(model("mlp_dynamic"))


def test_constant_methods_are_not_run_unless_named(go):
    capture = go("many_methods", methods=("dense", "count"))
    assert {name for kind, name in phases(read(capture.trace_path)) if kind == "INFERENCE"} == {"dense", "count"}
    capture = go("many_methods", methods=("get_vocab_size",))
    assert {name for kind, name in phases(read(capture.trace_path)) if kind == "INFERENCE"} == {"get_vocab_size"}


def test_a_bundle_runs_on_its_own_inputs(go, model):
    capture = go("bundled", iterations=1)
    assert [spec.shape for spec in capture.target.inputs] == [(2, 16), (2, 16)]
    assert capture.programs == (model("bundled"),)
    assert len([kind for kind, _ in phases(read(capture.trace_path)) if kind == "INFERENCE"]) == 2


def test_an_npz(go, tmp_path):
    np.savez(tmp_path / "one.npz", np.ones((1, 2048), np.float32))
    np.savez(tmp_path / "two.npz", np.ones((2, 2048), np.float32))
    capture = go("mlp_dynamic", inputs=(tmp_path / "one.npz", tmp_path / "two.npz"), iterations=1)
    assert [spec.shape for spec in capture.target.inputs] == [(1, 2048), (2, 2048)]


def test_external_data(go, model):
    (data,) = model("external_data").parent.glob("*.ptd")
    assert go("external_data", data=(data,)).exit_status == 0


def test_a_preset_sets_the_options_of_what_is_there(go):
    assert go("convs", preset=Preset.ANDROID).target.backend_options == ("XnnpackBackend:weight_cache_enabled=true",)
    assert go("every_dtype", preset=Preset.ANDROID).target.backend_options == ()
    own = BackendOption("XnnpackBackend", "weight_cache_enabled", False)
    capture = go("convs", preset=Preset.ANDROID, backend_options=(own,))
    assert capture.target.backend_options == ("XnnpackBackend:weight_cache_enabled=false",)


def test_openvino(go):
    capture = go("openvino_cnn", iterations=1)
    assert capture.issues == ()
    scopes = read(capture.trace_path).scopes.values()
    assert {scope.name for scope in scopes if scope.kind is ScopeKind.DELEGATE} == {"OpenvinoBackend"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("custom_operator", "forward: no kernel is registered for etmem_test::triple.out"),
        ("unknown_backend", "forward: this ExecuTorch has no NoSuchBackend"),
    ],
)
def test_what_nobody_has_is_an_issue_and_leaves_a_trace(go, name, message):
    capture = go(name)
    (issue,) = capture.issues
    assert (issue.code, issue.severity, issue.message) == (IssueCode.PROGRAM_FAILED, Severity.ERROR, message)
    assert "--library" in issue.hint
    assert decode(read(capture.trace_path).note(CAPTURE_NOTE) or "").issues == (issue,)
    assert phases(read(capture.trace_path))[0] == ("PROGRAM_LOAD", "")
    assert any(scope.failed for scope in read(capture.trace_path).scopes.values())


def test_a_dry_run(go):
    capture = go("convs", dry=True)
    assert capture.dry
    assert capture.target.dry
    assert read(capture.trace_path).note("dry.symbol") == "xnn_invoke_runtime"
    (issue,) = capture.issues
    assert (issue.code, issue.detail) == (IssueCode.DRY_OUTPUTS_INVALID, {"operators": ["aten::mean.out"]})


def test_a_dry_run_names_the_operators_that_computed(go):
    (issue,) = go("convs_three_delegates", dry=True).issues
    assert "aten::cumsum.out" in issue.message
    assert issue.severity is Severity.INFO


def test_a_delegate_that_cannot_be_dry(go):
    capture = go("openvino_and_xnnpack", dry=True)
    assert [issue.code for issue in capture.issues] == [IssueCode.DRY_OUTPUTS_INVALID, IssueCode.DRY_UNSUPPORTED]
    assert capture.issues[1].detail == {"backend": "OpenvinoBackend"}


def test_weights_that_are_elsewhere(go, model):
    with pytest.raises(InputError, match=r"external_data\.pte keeps 4 tensors in a file of their own") as raised:
        go("external_data")
    assert "--ptd" in raised.value.hint


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"iterations": 0}, UsageError, "--iterations is 0"),
        ({"threads": 0}, UsageError, "--threads is 0"),
        ({"methods": ("backward",)}, UsageError, "no method 'backward'"),
        ({"libraries": (Path("/no/such.so"),)}, InputError, "/no/such.so does not exist"),
        ({"inputs": (Path("/no/such.npz"),)}, InputError, "/no/such.npz does not exist"),
        ({"data": (Path("/no/such.ptd"),)}, ProgramError, "does not exist"),
        ({"shapes": (ShapeOption(None, 0, (1,)),)}, UsageError, "has 4 dimensions"),
        (
            {"backend_options": (BackendOption("Nobody", "a", 1),)},
            UsageError,
            "Nobody:a=1: this ExecuTorch has no such",
        ),
        ({"backend_options": (BackendOption("XnnpackBackend", "weight_cache_enabled", 1),)}, UsageError, "is refused"),
        ({"executorch": Path("/nowhere")}, UsageError, "no ExecuTorch under /nowhere"),
        ({"runtime": Runtime.PYTHON, "share_arenas": True}, UsageError, "--share-arenas"),
        ({"runtime": Runtime.PYTHON, "preset": Preset.ANDROID}, UsageError, "takes no backend options"),
    ],
)
def test_what_cannot_be_asked(go, options, error, message):
    with pytest.raises(error, match=message):
        go("convs", **options)


def test_shape_and_input_together(go, tmp_path):
    np.savez(tmp_path / "in.npz", np.ones((1, 2048), np.float32))
    with pytest.raises(UsageError, match="--input and --shape"):
        go("mlp_dynamic", inputs=(tmp_path / "in.npz",), shapes=(ShapeOption(None, 0, (1, 2048)),))


def test_a_library_that_is_none(go, tmp_path):
    (tmp_path / "ops.so").write_text("no library")
    with pytest.raises(UsageError, match="--library cannot be opened"):
        go("convs", libraries=(tmp_path / "ops.so",))


@pytest.mark.parametrize("content", [b"", b"a text file", b"\0\0\0\0ET12" + b"\xff" * 200])
def test_files_that_are_no_programs(tmp_path, content):
    path = tmp_path / "model.pte"
    path.write_bytes(content)
    with pytest.raises(ProgramError):
        profile(ProfileOptions(program=path, output=tmp_path / "out.etmem"))
    assert {entry.name for entry in tmp_path.iterdir()} == {"model.pte"}


def test_no_compiler(go, tmp_path, monkeypatch):
    monkeypatch.setenv("ETMEM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(BuildError, match=r"no C\+\+ compiler"):
        go("convs")


def test_twice_into_the_same_file(go):
    first = len(read(go("convs").trace_path).events)
    assert abs(len(read(go("convs").trace_path).events) - first) < 20


def test_the_python_runtime(go):
    """GIVEN the same plan WHEN Python runs it THEN the phases are the same."""
    capture = go("convs_three_delegates", runtime=Runtime.PYTHON)
    assert capture.exit_status == 0
    assert (capture.target.runtime, capture.target.loader) == ("python", "mlock")
    trace = read(capture.trace_path)
    kinds = [kind for kind, _ in phases(trace)]
    assert kinds == ["PROGRAM_LOAD", "METHOD_LOAD", "INFERENCE", "INFERENCE", "UNLOAD"]


def test_the_python_runtime_on_a_program_that_fails(go):
    capture = go("custom_operator", runtime=Runtime.PYTHON)
    (issue,) = capture.issues
    assert issue.code is IssueCode.PROGRAM_FAILED
    assert "etmem_test::triple.out" in issue.message
