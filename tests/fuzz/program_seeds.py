"""Writes the seeds of programs, data and blobs, honest ones and lies: python -m tests.fuzz.program_seeds."""

from __future__ import annotations

import struct
from pathlib import Path

from etmem.program.reader import opened
from tests.fuzz.targets import CORPUS
from tests.models.registry import model_path
from tests.plan.lies import LIES
from tests.plan.test_ethos_u import PROGRAM as ETHOS_U
from tests.plan.test_ethos_u import block, scratch, stream

PROGRAMS = ("structured", "unknown_backend", "without_constant_segment", "many_operators", "bundled", "custom_operator")
BLOBS = ("convs", "quantized_xnnpack")


def first_blob(path: Path) -> bytes:
    with opened(path) as (program, view):
        delegate = program.plans[0].delegates[0]
        place = (program.inline_delegates if delegate.inline else program.segments)[delegate.index]
        return bytes(view[place.file_offset : place.file_offset + place.bytes])


def seeds() -> dict[str, bytes]:
    external = model_path("external_data")
    data = next(external.parent.glob("*.ptd")).read_bytes()
    found = {f"program/{name}": model_path(name).read_bytes() for name in PROGRAMS}
    found |= {f"program/{name}": lie(model_path("structured").read_bytes()) for name, lie in LIES.items()}
    found["program/external_data"] = external.read_bytes()
    # The tensors' bytes are never looked at.
    found["external_data/whole"] = data[:1024] + bytes(len(data) - 1024)
    found |= {f"xnnpack/{name}": first_blob(model_path(name)) for name in BLOBS}
    found["ethos_u/compiled"] = first_blob(ETHOS_U)[:2048]
    key = block("cmd_data", b"a" * 64, external=True)
    found["ethos_u/external"] = bytes(stream(key, block("inputs", struct.pack("<i", 0)), scratch(4720)))
    return found


def main() -> None:
    for name, data in seeds().items():
        path = CORPUS / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)


if __name__ == "__main__":
    main()
