"""Names of the test models, their families and where their files are cached. Needs neither torch nor executorch."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

FAMILIES: dict[str, tuple[str, ...]] = {
    "allocating": ("allocating.pte",),
    "cases": (
        "mlp.pte",
        "mlp_portable.pte",
        "mlp_three_delegates.pte",
        "mlp_dynamic.pte",
        "mlp_two_methods.pte",
        "convs.pte",
        "convs_three_delegates.pte",
        "kv_cache.pte",
    ),
    "llama": ("llama.pte", "llama_tokenizer.json"),
    "openvino_cnn": ("openvino_cnn.pte", "openvino_and_xnnpack.pte"),
    "architectures": (
        "mobilenet.pte",
        "resnet.pte",
        "bert.pte",
        "whisper.pte",
        "decoder.pte",
        "unet.pte",
        "mobilenet_int8.pte",
        "resnet_int8.pte",
        "bert_int8.pte",
        "whisper_int8.pte",
        "decoder_int8.pte",
        "unet_int8.pte",
        "mobilenet_dynamic_int8.pte",
        "resnet_dynamic_int8.pte",
        "bert_dynamic_int8.pte",
        "whisper_dynamic_int8.pte",
        "decoder_dynamic_int8.pte",
        "unet_dynamic_int8.pte",
        "perceptron_dynamic_int8.pte",
    ),
    "odd_shapes": ("odd_shapes.pte", "odd_shapes_int8.pte", "odd_shapes_dynamic.pte"),
    "quantized": ("quantized_xnnpack.pte", "quantized_portable.pte"),
    "kinds": (
        "every_dtype.pte",
        "structured.pte",
        "many_operators.pte",
        "many_methods.pte",
        "external_data.pte",
        "bundled.bpte",
        "custom_operator.pte",
        "unknown_backend.pte",
        "without_constant_segment.pte",
    ),
    "tensorless": ("tensorless.pte",),
    "recorded": ("recorded_convs.pte", "recorded_breaks.pte", "recorded_rows.pte", "recorded_methods.pte"),
}
"""Family (a module of this package) -> the files it exports."""

PACKAGES: dict[str, tuple[str, ...]] = {
    "llama": ("torch", "executorch", "transformers"),
    "openvino_cnn": ("torch", "executorch", "openvino", "nncf"),
    "architectures": ("torch", "executorch", "torchao"),
    "odd_shapes": ("torch", "executorch", "torchao"),
    "quantized": ("torch", "executorch", "torchao"),
}
"""Packages whose versions decide the bytes of a family's files; by default torch and executorch."""


HELPERS: dict[str, tuple[str, ...]] = {"architectures": ("quantizing",), "odd_shapes": ("quantizing",)}
"""Modules of this package that a family's module uses, beside those that all do."""


MANY = 6


def file_of(name: str) -> str:
    """The file name of a model given with or without its suffix."""
    files = [file for family in FAMILIES.values() for file in family]
    match = [file for file in files if name in (file, file.partition(".")[0])]
    if len(match) != 1:
        raise KeyError(f"{name!r} is none of {', '.join(sorted(files))}")
    return match[0]


def family_of(name: str) -> str:
    file = file_of(name)
    return next(family for family, files in FAMILIES.items() if file in files)


def cache_directory(family: str) -> Path:
    """Where a family's files belong: a new place whenever its script or a package that it uses changes."""
    here = Path(__file__).parent
    digest = hashlib.sha256()
    for script in ("export", "lowering", *HELPERS.get(family, ()), family):
        digest.update((here / f"{script}.py").read_bytes())
    for package in PACKAGES.get(family, ("torch", "executorch")):
        digest.update(f"{package}=={version(package)}".encode())
    return cache_base() / f"{family}-{digest.hexdigest()[:16]}"


def cache_base() -> Path:
    """Beside what etmem itself caches, so that every checkout of a machine shares the exports."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("ETMEM_TEST_CACHE") or Path(home) / "etmem" / "test-models")


@contextmanager
def only_one(base: Path, what: str) -> Iterator[None]:
    """Test workers that want the same thing made wait for one another."""
    base.mkdir(parents=True, exist_ok=True)
    with (base / f".{what}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def model_path(name: str) -> Path:
    """The exported file of a model; where the cache does not hold it, all that its family lacks is made now, by one
    process: importing torch takes longer than most exports."""
    family = family_of(name)
    directory = cache_directory(family)
    path = directory / file_of(name)
    if not path.exists():
        with only_one(directory.parent, family):
            missing = [file for file in FAMILIES[family] if not (directory / file).exists()]
            if missing:
                export(*missing)
    return path


def export(*names: str) -> None:
    """Run the exporter in processes of its own: torch stays out of the tests', and its warnings out of their output."""
    # Two of them for many models: while one test worker waits for these, the other mostly does as well.
    shares = [names[::2], names[1::2]] if len(names) > MANY else [names]
    with ThreadPoolExecutor(len(shares)) as pool:
        list(pool.map(_export, shares))


def _export(names: Sequence[str]) -> None:
    command = [sys.executable, "-W", "ignore", "-m", "tests.models.export", *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"exporting {' '.join(names)} failed:\n{done.stderr[-4000:]}")
