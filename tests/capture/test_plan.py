"""The plan's text, and that the Python runner reads what was written."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etmem.capture.options import BackendOption, LoadMode
from etmem.capture.plan import Fill, MethodRun, RunnerPlan, ScalarInput, TensorInput, encode
from etmem.capture.plan_text import items
from etmem.program.model import ValueKind

PROGRAM = Path("/models/m.pte")


def test_every_item_of_a_plan():
    plan = RunnerPlan(
        program=PROGRAM,
        methods=("prefill", "decode"),
        runs=(
            MethodRun(
                "prefill",
                3,
                (
                    TensorInput(6, (1, 2), Fill.RANDOM, seed=7),
                    TensorInput(4, (), Fill.ZEROS),
                    TensorInput(15, (4,), Fill.FILE, path=Path("/tmp/raw"), offset=64),
                    ScalarInput(ValueKind.INT, 3),
                    ScalarInput(ValueKind.BOOL, True),
                    ScalarInput(ValueKind.DOUBLE, 0.1),
                    ScalarInput(ValueKind.STRING, "a b"),
                    ScalarInput(ValueKind.NONE, None),
                ),
            ),
        ),
        data=(Path("/models/m.ptd"),),
        load_mode=LoadMode.FILE,
        libraries=(Path("/lib/ops.so"),),
        options=(
            BackendOption("B", "flag", False),
            BackendOption("B", "number", -3),
            BackendOption("B", "path", "/x y"),
            BackendOption("XnnpackBackend", "save_weight_cache_on_disk", True),
        ),
        threads=2,
        share_arenas=True,
        dry=True,
        etdump=Path("/tmp/e"),
        debug_bytes=10,
        outputs=Path("/tmp/o"),
    )
    assert encode(plan).splitlines() == [
        "etmem-plan\t1",
        "program\t/models/m.pte",
        "data\t/models/m.ptd",
        "loader\tfile",
        "library\t/lib/ops.so",
        "option\tB\tflag\tbool\t0\tbefore",
        "option\tB\tnumber\tint\t-3\tbefore",
        "option\tB\tpath\tstring\t/x y\tbefore",
        "option\tXnnpackBackend\tsave_weight_cache_on_disk\tbool\t1\tafter",
        "threads\t2",
        "share_arenas\t1",
        "dry\t1",
        "etdump\t/tmp/e\t10",
        "outputs\t/tmp/o",
        "method\tprefill",
        "method\tdecode",
        "run\tprefill\t3",
        "tensor\t6\t1x2\trandom\t7",
        "tensor\t4\t-\tzeros",
        "tensor\t15\t4\tfile\t/tmp/raw\t64",
        "int\t3",
        "bool\t1",
        "double\t0.1",
        "string\ta b",
        "none",
    ]


def test_inputs_belong_to_their_run():
    runs = tuple(MethodRun(name, 1, (ScalarInput(ValueKind.INT, n),) * n) for n, name in enumerate(("a", "b", "c")))
    read = [item for item in items(encode(RunnerPlan(PROGRAM, (), runs))) if item.name == "run"]
    assert [(item.fields, len(item.children)) for item in read] == [(("a", "1"), 0), (("b", "1"), 1), (("c", "1"), 2)]


@pytest.mark.parametrize("name", ["plain", "tab\there", "100%09", "line\nend", "é"])
def test_names_come_back(name):
    read = items(encode(RunnerPlan(Path("/") / name, (name,), ())))
    assert [item.fields[0] for item in read if item.name in ("program", "method")] == [f"/{name}", name]


@given(st.text(st.characters(codec="utf-8", exclude_characters="\x00/"), min_size=1).filter(lambda s: s.strip(".")))
def test_any_method_name_comes_back(name):
    (method,) = (item for item in items(encode(RunnerPlan(PROGRAM, (name,), ()))) if item.name == "method")
    assert method.fields == (name,)
