"""The command line: the list of CPUs, several side by side, and what cannot run on another CPU."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.accuracy.captures import command, etmem
from tests.models.registry import model_path
from tests.phone.profiles import indirection_bytes


def test_the_list_says_what_each_stands_for() -> None:
    ran = etmem("profile", "--cpu", "list")
    assert ran.code == 0
    for name in ("cortex-a53", "cortex-a76 *", "max", "haswell *", "host"):
        assert any(line.startswith(name) for line in ran.out.splitlines())
    assert max(map(len, ran.out.splitlines())) <= 80


def test_the_first_screen_names_the_cpu_and_says_why_there_is_no_rss(tmp_path: Path) -> None:
    """GIVEN --arch alone THEN the usual CPU of phones is taken, and dry."""
    ran = etmem("profile", model_path("convs"), "--arch", "aarch64", "--preset", "android", cwd=tmp_path)
    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    assert "aarch64 cortex-a76" in " ".join(lines[:2])
    assert "preset android" in ran.out
    assert "weight_cache_enabled=true" in ran.out
    closing = next(line for line in lines if line.startswith("dry, in qemu-aarch64"))
    assert "RSS would be the emulator's" in closing
    assert "RSS " not in "".join(line for line in lines if line.startswith(("PEAK", "                 RSS")))
    assert max(map(len, lines)) <= 80
    again = etmem("report", "convs.etmem", cwd=tmp_path)
    # The estimate is made for a program that has just run, not for a trace.
    assert again.out == "".join(line for line in ran.out.splitlines(keepends=True) if not line.startswith("estimate "))


def test_a_trace_for_another_cpu_is_not_like_one_for_this(tmp_path: Path) -> None:
    for cpu in ("cortex-a53", "haswell"):
        ran = etmem("profile", model_path("convs"), "--cpu", cpu, "--json", f"{cpu}.json", "-q", cwd=tmp_path)
        assert ran.code == 0, ran.err
    ran = etmem("diff", "cortex-a53.json", "haswell.json", cwd=tmp_path)
    assert "arch" in ran.out.splitlines()[0] + ran.out.splitlines()[1]


def test_compare_cpus_is_one_table(tmp_path: Path) -> None:
    cpus = ("cortex-a53", "haswell", "host")
    ran = etmem(
        *("profile", model_path("convs"), "--compare-cpus", ",".join(cpus), "--json", "cpus.json"), cwd=tmp_path
    )
    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[1].split() == ["B", *cpus]
    buffers = next(line for line in lines if line.startswith("  operator buffers")).split()[2:]
    assert buffers[:2] == [f"{6 * indirection_bytes(tile):,}" for tile in (6, 5)]
    data = json.loads((tmp_path / "cpus.json").read_text())
    assert data["schema"] == "etmem.targets/1"
    assert [entry["labels"] for entry in data["targets"]] == [[cpu] for cpu in cpus]
    assert all((tmp_path / f"convs.{cpu}.etmem").is_file() for cpu in cpus)


def test_presets_side_by_side(tmp_path: Path) -> None:
    """GIVEN two methods of the same weights THEN Android's weight cache packs them once, on either CPU."""
    ran = etmem(
        *("profile", model_path("mlp_two_methods"), "--compare-cpus", "cortex-a76,host", "--preset", "wheel,android"),
        *("--json", "targets.json"),
        cwd=tmp_path,
    )
    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    assert max(map(len, lines)) <= 80
    columns = [("cortex-a76", "wheel"), ("cortex-a76", "android"), ("host", "wheel"), ("host", "android")]
    assert [tuple(pair) for pair in zip(lines[1].split()[1:], lines[2].split(), strict=True)] == columns
    packed = next(line for line in lines if line.startswith("  packed weights")).split()[2:]
    phone = [int(size.replace(",", "")) for size in packed[:2]]
    assert phone[0] == 2 * 4 * 16_788_200  # two methods of four layers, on NEON
    assert phone[0] - phone[1] == pytest.approx(4 * 16_788_200, abs=40_000)
    data = json.loads((tmp_path / "targets.json").read_text())
    assert [tuple(entry["labels"]) for entry in data["targets"]] == columns
    assert [entry["summary"]["target"]["preset"] for entry in data["targets"]] == [preset for _, preset in columns]
    assert all((tmp_path / f"mlp_two_methods.{cpu}.{preset}.etmem").is_file() for cpu, preset in columns)


@pytest.fixture(scope="module")
def foreign_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("library") / "library.so"
    built = command(("cc", "-shared", "-o", path, "-x", "c", "/dev/null"))
    assert built.code == 0, built.err
    return path


@pytest.mark.parametrize(
    ("model", "options", "code", "message"),
    [
        ("convs", ("--arch", "sparc"), 2, "no instruction set 'sparc'"),
        ("convs", ("--cpu", "cortex-m0"), 2, "no CPU model 'cortex-m0'"),
        ("convs", ("--arch", "x86-64", "--cpu", "cortex-a53"), 2, "cortex-a53 is no x86-64 but aarch64"),
        ("convs", ("--cpu", "cortex-a53", "--runtime", "python"), 2, "the Python runtime runs on this machine's CPU"),
        ("convs", ("--compare-cpus", "cortex-a53,cortex-m0"), 2, "no CPU model 'cortex-m0'"),
        ("convs", ("--compare-cpus", "host", "--cpu", "host"), 2, "takes the place of"),
        ("convs", ("--preset", "wheel,ios"), 2, "no preset 'ios'"),
        ("convs", ("--preset", ","), 2, "no preset ','"),
        ("convs", ("--preset", "wheel,android", "--html", "x.html"), 2, "--html is of one run"),
        ("convs", ("--compare-cpus", "host", "--bundle", "x.zip"), 2, "--bundle is of one run"),
        ("convs", ("--cycles", "2", "--html", "x.html"), 2, "--html is of one run"),
        ("unknown_backend", ("--cpu", "cortex-a53"), 1, "is in no ExecuTorch wheel for aarch64"),
    ],
)
def test_what_cannot_run_there(model: str, options: tuple[str, ...], code: int, message: str, tmp_path: Path) -> None:
    ran = etmem("profile", model_path(model), *options, cwd=tmp_path)
    assert ran.code == code
    first, hint = ran.err.splitlines()
    assert first.startswith("etmem: error: ")
    assert message in first
    assert hint.startswith("hint: ")
    assert not list(tmp_path.iterdir())


def test_a_library_of_this_machine_is_no_use_there(foreign_library: Path, tmp_path: Path) -> None:
    ran = etmem("profile", model_path("convs"), "--cpu", "cortex-a53", "--library", foreign_library, cwd=tmp_path)
    assert ran.code == 2
    assert "cortex-a53 is aarch64" in ran.err
    assert "aarch64-linux-gnu-g++" in ran.err


def test_an_executorch_of_this_machine_is_no_use_there(tmp_path: Path) -> None:
    import executorch

    prefix = next(iter(executorch.__path__))
    ran = etmem("profile", model_path("convs"), "--cpu", "cortex-a53", "--executorch", prefix, cwd=tmp_path)
    assert ran.code == 2
    assert "not aarch64" in ran.err
