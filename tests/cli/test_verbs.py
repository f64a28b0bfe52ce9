"""What the verbs do with a profile: output options, exit codes, logs. The capture itself is tested elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from etmem.api import Profile, profile_options
from etmem.capture.options import (
    BackendOption,
    Capture,
    LoadMode,
    Preset,
    Runtime,
    ShapeOption,
    parse_backend_option,
    parse_shape,
)
from etmem.cli.main import run
from etmem.model.errors import CaptureError, UsageError
from etmem.report.json import from_json
from tests.report import samples


@pytest.fixture
def captured(monkeypatch, tmp_path):
    """The options that capture was given; what it answers is set by the test."""
    given = []
    answer = {"summary": samples.mlp(), "status": 0, "log": None}

    def capture(*arguments):
        given.append(arguments)
        if "error" in answer:
            raise answer["error"]
        summary = answer["summary"]
        return Capture(
            tmp_path / "mlp.etmem", answer["log"], answer["status"], summary.target, summary.environment, (), dry=False
        )

    monkeypatch.setattr("etmem.capture.profile.profile", capture)
    monkeypatch.setattr("etmem.capture.run.run", capture)
    monkeypatch.setattr(
        "etmem.api.from_capture", lambda c, *_, **__: Profile(answer["summary"], c.trace_path, c.log_path)
    )
    monkeypatch.setattr("etmem.api.load", lambda path, **_: Profile(answer["summary"], Path(path)))
    answer["given"] = given
    return answer


def test_profile_prints_the_first_screen(captured, capsys, tmp_path):
    assert run(["profile", "mlp.pte"]) == 0
    out, err = capsys.readouterr()
    assert out == Profile(samples.mlp(), tmp_path / "mlp.etmem").text()
    assert err == ""


def test_options_reach_the_capture(captured):
    arguments = (
        "profile m.pte -m prefill -m decode -n 5 --shape 0=1x64 --shape decode:1= --load-mode file --ptd a.ptd "
        "--threads 2 --backend-option XnnpackBackend:weight_cache_enabled=true --preset android --share-arenas "
        "--library k.so --dry --runtime python --output t.etmem --executorch /opt/et --keep-rusage --quiet"
    )
    assert run(arguments.split()) == 0
    (options,) = captured["given"][0]
    assert options.program == Path("m.pte")
    assert options.methods == ("prefill", "decode")
    assert options.iterations == 5
    assert options.shapes == (ShapeOption(None, 0, (1, 64)), ShapeOption("decode", 1, ()))
    assert options.load_mode is LoadMode.FILE
    assert options.data == (Path("a.ptd"),)
    assert options.threads == 2
    assert options.backend_options == (BackendOption("XnnpackBackend", "weight_cache_enabled", True),)
    assert options.preset is Preset.ANDROID
    assert options.runtime is Runtime.PYTHON
    assert options.libraries == (Path("k.so"),)
    assert (options.share_arenas, options.dry, options.keep_rusage) == (True, True, True)
    assert (options.output, options.executorch) == (Path("t.etmem"), Path("/opt/et"))


def test_a_command_s_own_options_stay_its_own(captured):
    assert run(["run", "--children", "-o", "t.etmem", "-q", "--", "python", "-c", "pass", "--full", "-q"]) == 0
    command, options = captured["given"][0]
    assert command == ("python", "-c", "pass", "--full", "-q")
    assert options.children
    assert options.output == Path("t.etmem")


def test_json_on_stdout_stands_alone(captured, capsys):
    assert run(["report", "x.etmem", "--json", "-"]) == 0
    assert from_json(capsys.readouterr().out) == samples.mlp()


def test_json_in_a_file_stands_beside_the_text(captured, capsys, tmp_path):
    target = tmp_path / "s.json"
    assert run(["report", "x.etmem", "--json", str(target)]) == 0
    assert json.loads(target.read_text())["schema"] == "etmem.summary/1"
    assert list(tmp_path.iterdir()) == [target]
    assert "PEAK of load" in capsys.readouterr().out


def test_quiet_prints_nothing(captured, capsys):
    assert run(["report", "x.etmem", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("option", "text"), [("--full", "PHASES"), ("--bytes", "134,341,289 B")])
def test_more_of_the_report(captured, capsys, option, text):
    assert run(["report", "x.etmem", option]) == 0
    assert text in capsys.readouterr().out


def test_an_error_in_the_data_is_exit_code_four_and_shows_the_log_s_end(captured, capsys, tmp_path):
    log = tmp_path / "mlp.log"
    log.write_text("".join(f"line {n}\x1b[31m\n" for n in range(100)))
    captured.update(summary=samples.failed(), status=1, log=log)
    assert run(["profile", "mlp.pte"]) == 4
    out, err = capsys.readouterr()
    assert "error program_failed" in out
    assert "last 20 of 100 lines" in err
    assert "line 99\\x1b[31m" in err
    assert "line 79" not in err


def test_a_command_that_failed_is_a_failure(captured):
    captured.update(status=3)
    assert run(["run", "-q", "--", "false"]) == 1


def test_the_log_stays_away_unless_asked_for(captured, capsys, tmp_path):
    log = tmp_path / "mlp.log"
    log.write_text("hello\n" * 50)
    captured.update(log=log)
    assert run(["profile", "mlp.pte", "-q"]) == 0
    assert capsys.readouterr().err == ""
    assert run(["profile", "mlp.pte", "-q", "--verbose"]) == 0
    assert capsys.readouterr().err.count("hello") == 50


def test_a_capture_error_is_one_line_with_its_hint(captured, capsys):
    captured["error"] = CaptureError("no trace\nwas written", "try\nagain")
    assert run(["profile", "mlp.pte"]) == 1
    assert capsys.readouterr().err == "etmem: error: no trace was written\nhint: try again\n"


@pytest.mark.parametrize("text", ["", "0", "=1", "0=1x", "x=1", "a:b=1", ":0=1", "0=-1", "0=1,2", "0=1x٣x"])
def test_malformed_shapes(text):
    with pytest.raises(UsageError) as caught:
        parse_shape(text)
    assert "INDEX" in caught.value.hint


def test_shapes():
    assert parse_shape("0=1x3x224x224") == ShapeOption(None, 0, (1, 3, 224, 224))
    assert parse_shape("a:b:12=7") == ShapeOption("a:b", 12, (7,))


def test_backend_options_are_typed_and_print_as_they_were_given():
    for text, value in (("B:k=true", True), ("B:k=-3", -3), ("B:k=/a=b:c", "/a=b:c"), ("B:k=", "")):
        option = parse_backend_option(text)
        assert option.value == value
        assert type(option.value) is type(value)
        assert str(option) == text


@pytest.mark.parametrize("text", ["", "B", "B:k", ":k=1", "B:=1", "k=1"])
def test_malformed_backend_options(text):
    with pytest.raises(UsageError):
        parse_backend_option(text)


def test_python_options_may_be_loosely_typed():
    options = profile_options(
        "m.pte", methods="forward", shapes=["0=1x2"], load_mode="file", data="a.ptd", backend_options="B:k=1"
    )
    assert options.methods == ("forward",)
    assert options.shapes == (ShapeOption(None, 0, (1, 2)),)
    assert options.load_mode is LoadMode.FILE
    assert options.data == (Path("a.ptd"),)
    assert options.backend_options == (BackendOption("B", "k", 1),)


@pytest.mark.parametrize("wrong", [{"colour": 1}, {"load_mode": "magic"}, {"output": 3}, {"program": "x"}])
def test_wrong_python_options(wrong):
    with pytest.raises(UsageError):
        profile_options("m.pte", **wrong)
