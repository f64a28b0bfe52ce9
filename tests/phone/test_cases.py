"""The eight cases on CPUs that this machine has not, and on its own: block counts to the byte."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from etmem.model.summary import Summary
from tests.accuracy.captures import MIB, blocks, category_bytes
from tests.accuracy.cases import CASES, NAMES, Case, indirection_sizes
from tests.phone.profiles import CPUS, SME_WORKSPACE, TAPS, indirection_bytes, profiled, tile

RUNS = [
    f"{name}-on-{cpu}"
    for name, cpu in product(NAMES, CPUS)
    # It has no delegate, so that nothing in it depends on the CPU, and computes all the same.
    if name != "mlp_portable" or cpu in ("cortex-a76", "host")
]


@pytest.fixture(params=RUNS, scope="module")
def ran(request: pytest.FixtureRequest) -> tuple[Case, str, Summary]:
    name, _, cpu = request.param.partition("-on-")
    return CASES[name], cpu, profiled(name, cpu, shapes=CASES[name].shapes[1::2])


@pytest.mark.parametrize("at", ["load", "inference"])
def test_blocks(ran: tuple[Case, str, Summary], at: str) -> None:
    """GIVEN a case WHEN profiled for a CPU THEN the large blocks are those of the formula: so many, so large."""
    case, cpu, summary = ran
    found = blocks(summary, at)
    rows = tile(cpu, summary)
    expected: Counter[tuple[str, str | None, int]] = Counter()
    for block in case.facts["blocks"]:
        if at == "load" and block["phase"] == "inference":
            continue
        size = block["bytes"]
        if block["category"] == "operator_buffers":
            if rows is None:
                sizes = {key[2] for key in found if key[0] == "operator_buffers" and key[2] > MIB}
                assert len(sizes) == 1
                assert sizes <= indirection_sizes()
                size = sizes.pop()
            else:
                size = indirection_bytes(rows)
        if cpu == "max" and block["category"] == "workspace":
            size += SME_WORKSPACE.get(case.name, 0)
        expected[block["category"], block["phase"], size] += block["count"]
    assert Counter({key: n for key, n in found.items() if key[2] > MIB}) == expected


def test_planned_memory(ran: tuple[Case, str, Summary]) -> None:
    case, _, summary = ran
    planned = {arena.method: arena.bytes for arena in summary.arenas if arena.name.startswith("planned[")}
    assert planned == case.facts["planned"]
    assert summary.peaks.inference is not None
    assert category_bytes(summary.peaks.inference.moment, "executorch", "planned_memory") == sum(planned.values())


def test_every_byte_has_an_owner(ran: tuple[Case, str, Summary]) -> None:
    _, _, summary = ran
    allocated = sum(phase.allocated_bytes for phase in summary.phases)
    assert allocated > 0
    assert sum(phase.unowned_bytes for phase in summary.phases) <= 0.001 * allocated


def test_nothing_is_left_unread(ran: tuple[Case, str, Summary]) -> None:
    """GIVEN libraries of another CPU THEN their symbols are read: no block is without category for want of a name."""
    _, _, summary = ran
    assert not {str(issue.code) for issue in summary.issues} - {"dry_outputs_invalid"}


def test_the_target_names_the_cpu(ran: tuple[Case, str, Summary]) -> None:
    _, cpu, summary = ran
    target, emulator = summary.target, summary.environment.emulator
    assert target.dry
    if cpu == "host":
        assert not emulator
    else:
        arch = "x86_64" if cpu == "haswell" else "aarch64"
        assert (target.arch, target.cpu) == (arch, cpu)
        assert emulator.startswith(f"qemu-{arch} ")
    assert not summary.balances
    assert not summary.high_waters
    assert all(phase.rss is None for phase in summary.phases)


@pytest.mark.parametrize("cpu", ["cortex-a53", "cortex-a76", "haswell", "host"])
def test_packed_weights_are_all_found(cpu: str) -> None:
    """GIVEN call stacks on another CPU THEN filters and biases are told from XNNPACK's other blocks."""
    found = blocks(profiled("convs", cpu, shapes=CASES["convs"].shapes[1::2]), "inference")
    inner, first = (32 * 32 * TAPS + 32) * 4, (3 * 32 * TAPS + 32) * 4
    assert found["packed_weights", "method_load", inner] == 5
    assert found["packed_weights", "method_load", first] == 1


def test_the_cache_of_phones_packs_once() -> None:
    """GIVEN two methods with the same weights WHEN the Android preset's cache is on THEN they are packed once."""
    shapes = CASES["mlp_two_methods"].shapes[1::2]
    wheel, android = (
        profiled("mlp_two_methods", "cortex-a76", shapes=shapes, preset=preset) for preset in ("wheel", "android")
    )
    assert (wheel.target.preset, android.target.preset) == ("wheel", "android")
    assert wheel.peaks.load is not None
    assert android.peaks.load is not None
    saved = wheel.peaks.load.moment.private_bytes - android.peaks.load.moment.private_bytes
    assert saved / MIB == pytest.approx(64, abs=0.5)
    assert wheel.peaks.load.moment.private_bytes / MIB == pytest.approx(128.6, abs=1.5)
