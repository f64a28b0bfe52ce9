"""The example of a delegate: its one command works in a folder of its own, and its README says what it writes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import etmem
from etmem.model.summary import Summary
from etmem.model.words import MemoryKind
from tests.accuracy.captures import category_bytes
from tests.accuracy.captures import etmem as run_etmem

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/delegate"
OWNER = "delegate:PoolBackend"
LAYERS = ((512, 1024), (1024, 1024), (1024, 256))
BATCH, FLOAT = 8, 4


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the example in which ``python make.py`` has run."""
    folder = tmp_path_factory.mktemp("example") / "delegate"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("build", "__pycache__"))
    done = subprocess.run([sys.executable, folder / "make.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "outputs of libpool_delegate.so are PyTorch's" in done.stdout
    return folder


def test_the_readme_has_the_reports_that_the_command_writes(made: Path) -> None:
    assert (made / "README.md").read_text() == (EXAMPLE / "README.md").read_text()


def summary(made: Path, name: str) -> Summary:
    return etmem.load(made / "build" / f"{name}.etmem").summary


def test_untouched_its_owner_and_phases_are_known_all_the_same(made: Path) -> None:
    """GIVEN no word from the delegate THEN the same bytes are its own, in chunks and without a category."""
    plain, told = (summary(made, name) for name in ("libpool_delegate_plain", "libpool_delegate"))
    for one, other in zip(plain.phases, told.phases, strict=True):
        assert (one.kind, one.peak.private_bytes, one.peak.file_bytes) == (
            other.kind, other.peak.private_bytes, other.peak.file_bytes,
        )  # fmt: skip
    assert plain.peaks.inference is not None
    assert category_bytes(plain.peaks.inference.moment, OWNER, "packed_weights") == 0
    assert plain.device_memory == ()
    assert [arena.name for arena in plain.arenas] == ["planned[1]", "method_allocator"]


def test_with_the_c_abi_weights_are_told_from_scratch_and_from_the_device(made: Path) -> None:
    """The closed form of all that it takes: packed rows, biases, one row of scratch, two activations."""
    found = summary(made, "libpool_delegate")
    (pool,) = [arena for arena in found.arenas if arena.name == "pool"]
    users = {(user.instance, str(user.category)): user.used_peak_bytes for user in pool.users}
    weights = [(inputs + 1) * outputs * FLOAT for inputs, outputs in LAYERS]
    first, second = "forward/PoolBackend[0]", "forward/PoolBackend[1]"
    assert users == {
        (first, "packed_weights"): sum(weights[:2]),
        (second, "packed_weights"): weights[2],
        (first, "workspace"): 2 * BATCH * 1024 * FLOAT,
        (second, "workspace"): 2 * BATCH * 1024 * FLOAT,
    }
    (device,) = found.device_memory
    assert (device.memory, device.owner, device.allocations) == (MemoryKind.DMA_BUF, OWNER, 2)
    assert device.inference_peak_bytes == 2 * 2 * BATCH * 1024 * FLOAT
    assert device.live_end_bytes == 0
    assert found.peaks.inference is not None
    assert category_bytes(found.peaks.inference.moment, OWNER, "packed_weights") == 8 << 20


def test_a_description_tells_the_untouched_library_s_pieces(made: Path) -> None:
    """GIVEN the example's description WHEN the plain library is profiled THEN its chunks are packed weights."""
    trace, described = made / "described.etmem", made / "pool_delegate.toml"
    library = made / "build/libpool_delegate_plain.so"
    options = ("--library", library, "--describe", described, "--output", trace, "--quiet")
    ran = run_etmem("profile", made / "build/pool.pte", *options)
    assert ran.code == 0, ran.err
    found = etmem.load(trace, describe=described).summary
    assert found.peaks.inference is not None
    # Chunks of whole MiB, and the accelerator's two buffers, which are file-backed.
    assert category_bytes(found.peaks.inference.moment, OWNER, "packed_weights") == 8 << 20
    assert category_bytes(found.peaks.inference.moment, OWNER, "metadata") < 4096
