"""The profiled program behaves as it does without etmem."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.accuracy.captures import ETMEM, PROGRAMS, RUN_MODEL, Ran, command
from tests.accuracy.cases import CASES
from tests.models.registry import model_path

WORKSPACES = {"0": 3, "1": 1, "2": 1}
"""Sharing mode (none, per model, global) -> workspaces that XNNPACK makes for three delegates."""

PLAIN, PROFILED = "plain", "profiled"


def wheel() -> Path:
    spec = importlib.util.find_spec("executorch")
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(next(iter(spec.submodule_search_locations)))


@dataclass(frozen=True)
class Application:
    """A native program on the wheel's C++ SDK, run beside an allocation counter that is none of etmem's."""

    program: Path
    counter: Path

    def run(self, how: str, cwd: Path, *arguments: object) -> Ran:
        prefix = (*ETMEM, "run", "--output", cwd / "trace.etmem", "--") if how == PROFILED else ()
        ran = command((*prefix, self.program, *arguments), cwd, {"LD_PRELOAD": str(self.counter)})
        assert ran.code == 0, ran.err
        return ran

    def counts(self, how: str, cwd: Path, *arguments: object) -> dict[str, int]:
        """first, steady: allocations of the first and of all later inferences; workspaces."""
        out = self.run(how, cwd, *arguments).out
        return {name: int(number) for name, number in re.findall(r"(first|steady|workspaces) (\d+)", out)}


@pytest.fixture(scope="module")
def application(tmp_path_factory: pytest.TempPathFactory) -> Application:
    folder = tmp_path_factory.mktemp("application")
    package = wheel()
    program, counter = folder / "steady", folder / "libcounted.so"
    libraries = ("", "_kernels_optimized", "_backend_xnnpack", "_threadpool", "_etdump")
    subprocess.run(
        ["g++", "-O2", "-fPIC", "-shared", "-x", "c", PROGRAMS / "counted.c", "-x", "none", "-o", counter, "-ldl"],
        check=True,
    )
    subprocess.run(
        [
            *("g++", "-w", "-O1", "-std=c++17", PROGRAMS / "steady.cpp", "-o", program),
            *("-DC10_USING_CUSTOM_GENERATED_MACROS", "-DET_EVENT_TRACER_ENABLED"),
            *(f"-I{package}/include", f"-I{package}/include/executorch/runtime/core/portable_type/c10"),
            *(f"-L{package}/lib", f"-Wl,-rpath,{package}/lib", "-Wl,--no-as-needed"),
            *(f"-lexecutorch{name}" for name in libraries),
            "-ldl",
        ],
        check=True,
    )
    return Application(program, counter)


@pytest.mark.parametrize("mode", WORKSPACES)
def test_allocations_and_workspaces(application: Application, tmp_path: Path, mode: str) -> None:
    """GIVEN 22 inferences THEN steady allocations and workspaces are as many with etmem as without."""
    arguments = (model_path("convs_three_delegates"), mode, 22)
    plain = application.counts(PLAIN, tmp_path, *arguments)
    assert plain["workspaces"] == WORKSPACES[mode]
    assert plain["steady"] < 100, "the program itself allocates in steady state"
    profiled = application.counts(PROFILED, tmp_path, *arguments)
    assert profiled["steady"] == plain["steady"]
    assert profiled["workspaces"] == plain["workspaces"]
    # One per dry-run symbol that is first met then: the dynamic loader allocates while it looks the original up.
    assert 0 <= profiled["first"] - plain["first"] <= 1


def test_xnnpack_allocates_nothing_in_steady_state(application: Application, tmp_path: Path) -> None:
    """Handed a tracer that the application did not give, XNNPACK allocates some fifty times per inference."""
    few, many = (
        application.counts(PROFILED, tmp_path, model_path("convs_three_delegates"), 2, inferences)
        for inferences in (2, 22)
    )
    assert (many["steady"] - few["steady"]) / 20 <= 3
    assert few["first"] + few["steady"] < 119


def test_outputs_are_the_same(application: Application, tmp_path: Path) -> None:
    outputs = []
    for how in (PLAIN, PROFILED):
        application.run(how, tmp_path, model_path("convs_three_delegates"), 2, 3, tmp_path / how)
        outputs.append((tmp_path / how).read_bytes())
    assert len(outputs[0]) == 32 * 4
    assert outputs[0] == outputs[1]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # in executorch's deserializer
def test_etdump_is_the_same(application: Application, tmp_path: Path) -> None:
    """GIVEN an ETDump with every intermediate output THEN only times differ."""
    dumps, outputs = [], []
    for how in (PLAIN, PROFILED):
        files = tuple(tmp_path / f"{how}.{kind}" for kind in ("out", "etdp", "debug"))
        application.run(how, tmp_path, model_path("convs_three_delegates"), 2, 2, *files)
        dumps.append(timeless(files[1].read_bytes()))
        outputs.append(files[2].read_bytes())
    assert sum(event["debug_event"] is not None for run in dumps[0]["run_data"] for event in run["events"]) > 10
    assert dumps[0] == dumps[1]
    assert outputs[0] == outputs[1]


def timeless(data: bytes) -> dict[str, Any]:
    """An ETDump as plain data without its times."""
    from dataclasses import asdict

    from executorch.devtools.etdump.serialize import deserialize_from_etdump_flatcc

    dump = asdict(deserialize_from_etdump_flatcc(data))
    for run in dump["run_data"]:
        for event in run["events"]:
            if event["profile_event"]:
                del event["profile_event"]["start_time"], event["profile_event"]["end_time"]
    return dump


@pytest.mark.parametrize("name", ["convs_three_delegates", "mlp_two_methods", "kv_cache"])
def test_outputs_under_python_are_the_same(tmp_path: Path, name: str) -> None:
    results = []
    for how in (PLAIN, PROFILED):
        script = (sys.executable, RUN_MODEL, model_path(name), CASES[name].inputs, 2, tmp_path / f"{how}.npz")
        prefix = (*ETMEM, "run", "--output", tmp_path / "trace.etmem", "--") if how == PROFILED else ()
        ran = command((*prefix, *script), tmp_path)
        assert ran.code == 0, ran.err
        results.append(np.load(tmp_path / f"{how}.npz"))
    assert results[0].files
    assert results[0].files == results[1].files
    for key in results[0].files:
        np.testing.assert_array_equal(results[0][key], results[1][key])
