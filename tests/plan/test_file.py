"""What the file alone says: arenas, contents, findings, verdicts, options."""

from __future__ import annotations

import json

import pytest

from etmem.model.errors import UsageError
from etmem.model.words import FindingCode
from etmem.planning import PlanOptions, plan
from etmem.planning.emit import METHOD_POOL, TEMP_POOL, cmake, header
from etmem.planning.options import parse_bytes, parse_region
from etmem.planning.tables import TABLES, rows
from etmem.report.plan_svg import to_svg

FINDINGS = {
    "mlp_three_delegates": FindingCode.GRAPH_BREAK,
    "convs_three_delegates": FindingCode.GRAPH_BREAK,
    "mlp_dynamic": FindingCode.DYNAMIC_BOUND,
    "kv_cache": FindingCode.KV_COPIES,
    "mlp_portable": FindingCode.TRANSPOSED_WEIGHT,
    "mlp_two_methods": FindingCode.PACKED_TWICE,
}
"""Each case's own, where it is large enough to be worth a remark."""


def findings(found):
    return {finding.code: finding for finding in found.findings}


@pytest.mark.parametrize(
    "name", ["convs_three_delegates", "mlp_dynamic", "kv_cache", "mlp_portable", "mlp_two_methods"]
)
def test_each_case_s_finding_from_the_file(model, name):
    assert FINDINGS[name] in findings(plan(model(name)))


def test_findings_have_their_bytes(model):
    broken = findings(plan(model("convs_three_delegates")))[FindingCode.GRAPH_BREAK]
    assert (broken.bytes, broken.saving_bytes) == (16777216, 7602176)
    twice = findings(plan(model("mlp_two_methods")))[FindingCode.PACKED_TWICE]
    assert (twice.bytes, twice.saving_bytes) == (4 * 16785408, 4 * 16785408)
    cached = plan(model("mlp_two_methods"), PlanOptions(preset="android"))
    assert FindingCode.PACKED_TWICE not in findings(cached)
    bound = findings(plan(model("mlp_dynamic")))[FindingCode.DYNAMIC_BOUND]
    assert bound.bytes == 67108864 + 67108896
    assert bound.saving_bytes is None


def test_a_shape_is_held_against_its_bound(model):
    given = plan(model("mlp_dynamic"), PlanOptions(shapes={(None, 0): (1, 2048)}))
    method = given.methods[0]
    assert method.dynamic_bound_bytes == 67108864
    assert method.dynamic_used_bytes == 67108864 // 4096
    saving = findings(given)[FindingCode.DYNAMIC_BOUND].saving_bytes
    assert saving is not None
    assert saving > 134_000_000
    with pytest.raises(UsageError, match="4097x2048"):
        plan(model("mlp_dynamic"), PlanOptions(shapes={(None, 0): (4097, 2048)}))


def test_arenas_are_maps(model):
    found = plan(model("kv_cache"))
    (arena,) = found.methods[0].arenas
    assert arena.bytes == 50335808
    assert arena.live_peak_bytes <= arena.bytes
    assert arena.bytes_of("mutable") == 16777216
    assert sum(place.bytes for place in arena.live_at_peak) == arena.live_peak_bytes
    assert arena.peak_instruction == found.methods[0].instructions[arena.peak]
    live = {place for place in arena.placed if place.first <= arena.peak <= place.last}
    for one in live:
        for other in live - {one}:
            assert one.offset + one.bytes <= other.offset or other.offset + other.bytes <= one.offset


def test_what_graph_breaks_put_into_an_arena(model):
    """The two activations that cross the cuts are 8 MiB each; uncut, the input and one of them are left at once."""
    (arena,) = plan(model("convs_three_delegates")).methods[0].arenas
    assert arena.break_bytes == 7602176
    assert "graph breaks put 7.2 of it there" in plan(model("convs_three_delegates")).text()
    (whole,) = plan(model("convs")).methods[0].arenas
    assert whole.break_bytes == 0


def test_mutable_buffers_have_a_share_and_copies(model):
    found = plan(model("kv_cache"))
    assert (found.methods[0].mutable_bytes, found.methods[0].mutable_copies_bytes) == (16777216, 2 * 16777216)
    assert "mutable buffers (KV caches) take 33 %, copies of them 32.0" in found.text()
    assert plan(model("convs")).methods[0].mutable_bytes == 0


@pytest.mark.parametrize("name", ["mlp", "mlp_two_methods", "llama", "many_methods", "without_constant_segment"])
def test_the_parts_add_up_to_the_file(model, name):
    file = plan(model(name)).contents[0]
    assert sum(part.bytes for part in file.parts) == file.file_bytes == model(name).stat().st_size


def test_named_data_that_methods_share(model):
    shared = [part for part in plan(model("mlp_two_methods")).contents[0].named_data if len(part.used_by) == 2]
    assert sum(part.bytes for part in shared) == 4 * (2048 * 2048 + 2048) * 4
    assert shared[0].used_by == ("decode/XnnpackBackend[0]", "prefill/XnnpackBackend[0]")


def test_methods_that_could_share_arenas(model):
    assert plan(model("mlp_two_methods")).shared_arena_saving_bytes == 16448


def test_budgets(model):
    steady = 54_476_113
    fits, tight = (
        plan(model("convs"), PlanOptions(budget_bytes=budget)).verdicts[0] for budget in (64 << 20, steady - 2**20)
    )
    assert (fits.fits, tight.fits) == (True, False)
    assert tight.left_bytes < 0 < fits.left_bytes
    unknown = plan(model("unknown_backend"), PlanOptions(budget_bytes=1 << 30)).verdicts[0]
    assert unknown.fits is None
    assert "not told" in unknown.reason


def test_regions_of_a_microcontroller(model):
    region = parse_region("sram=20MiB:planned.1,method,temp")
    options = PlanOptions(target="armv7m", regions=(region, parse_region("flash=2MiB:program")))
    found = plan(model("mlp_portable"), options)
    sram, flash = found.verdicts
    assert {part.name: part.bytes for part in sram.parts} == {"planned.1": 16793600, "method": 2032, "temp": 93}
    assert (sram.fits, flash.fits) == (True, False)
    assert found.estimate == ()
    assert f"{METHOD_POOL} 2032" in header(found)
    assert f"set({TEMP_POOL} 93 " in cmake(found)
    assert f"{METHOD_POOL}=2032" in found.text()


@pytest.mark.parametrize(("text", "size"), [("512MiB", 1 << 29), ("1.5 GB", 1_500_000_000), ("64", 64), ("8kb", 8000)])
def test_sizes(text, size):
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "-1", "5 XB", "MiB"])
def test_what_is_no_size(text):
    with pytest.raises(UsageError):
        parse_bytes(text)


@pytest.mark.parametrize("text", ["sram", "sram=1MiB", "sram=1MiB:stack", "=1MiB:method"])
def test_what_is_no_region(text):
    with pytest.raises(UsageError):
        parse_region(text)


def test_unknown_targets_are_refused(model):
    with pytest.raises(UsageError, match="no such target"):
        plan(model("mlp"), PlanOptions(target="z80"))
    with pytest.raises(UsageError, match="no such CPU"):
        plan(model("mlp"), PlanOptions(cpu="z80"))


def test_external_data_has_to_be_the_program_s(model):
    data = next(model("external_data").parent.glob("*.ptd"))
    found = plan(model("external_data"), PlanOptions(data=(data,)))
    assert [file.file_bytes for file in found.contents][1] == data.stat().st_size


def test_json_is_stable_and_tables_are_rows(model):
    found = plan(model("convs"))
    data = json.loads(found.to_json())
    assert next(iter(data)) == "schema"
    assert data["schema"] == "etmem.plan/1"
    assert found.to_json() == plan(model("convs")).to_json()
    for table in TABLES:
        assert len(found.to_dataframe(table)) == len(rows(found, table))
        assert all(not isinstance(value, list | dict) for row in rows(found, table) for value in row.values())
    assert sum(row["private_bytes"] for row in rows(found, "estimate") if row["at"] == "steady") > 54_000_000
    with pytest.raises(UsageError):
        rows(found, "nothing")


@pytest.mark.parametrize("name", ["convs", "mlp_two_methods", "llama", "unknown_backend"])
def test_text_and_picture_keep_their_width(model, name):
    found = plan(model(name))
    for full in (False, True):
        text = found.text(full=full)
        assert text.isascii()
        assert max(map(len, text.splitlines())) <= 88
    picture = to_svg(found)
    assert picture.startswith("<svg ")
    places = sum(len(arena.placed) for method in found.methods for arena in method.arenas)
    assert picture.count("<title>") == places
