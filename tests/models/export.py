"""Export test models: ``python -m tests.models.export NAME ... | all``; prints the path of each."""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.models.registry import FAMILIES, cache_directory, family_of, file_of

Exporter = Callable[[], Any]
"""Returns an ExecutorchProgramManager, or the bytes of the file."""


def write(built: Any, path: Path) -> None:
    """Write a program, and its tensor data (.ptd) beside it where it has some."""
    if isinstance(built, bytes):
        path.write_bytes(built)
        return
    with path.open("wb") as file:
        built.write_to_file(file)
    if getattr(built, "_tensor_data", None):
        built.write_tensor_data_to_file(str(path.parent))


def export(name: str) -> Path:
    """Export one model into the cache. The program file appears last and whole, so its presence means success."""
    import torch

    family, file = family_of(name), file_of(name)
    exporters: dict[str, Exporter] = importlib.import_module(f"tests.models.{family}").MODELS
    if set(exporters) != set(FAMILIES[family]):
        raise RuntimeError(f"{family}.MODELS and the registry name different files")
    target = cache_directory(family)
    target.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory(dir=target) as scratch, torch.no_grad():
        write(exporters[file](), Path(scratch) / file)
        for made in sorted(Path(scratch).iterdir(), key=lambda path: path.name == file):
            made.rename(target / made.name)
    return target / file


def main(names: list[str]) -> None:
    files = [file for family in FAMILIES.values() for file in family]
    for name in files if names == ["all"] else names:
        path = export(name)
        print(f"{path} {path.stat().st_size:,} bytes", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
