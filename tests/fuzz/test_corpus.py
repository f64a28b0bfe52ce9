"""The committed corpus, and a fixed number of its mutations, through the fuzzer's targets."""

from __future__ import annotations

import random
import resource
import time
from pathlib import Path

import pytest

from tests.fuzz.targets import CORPUS, TARGETS

MUTATIONS = 25
SECONDS = 20
GROWTH = 300 * 1024
"""KiB that one input may add to what the process has needed so far."""

SEEDS = sorted(path for name in TARGETS for path in (CORPUS / name).iterdir())


def mutated(data: bytes, seed: int) -> bytes:
    """A few bytes changed, dropped, doubled, or the end cut off."""
    draw = random.Random(seed)
    found = bytearray(data)
    for _ in range(draw.randint(1, 6)):
        if not found:
            break
        at, length = draw.randrange(len(found)), draw.choice((1, 2, 4, 8, 64))
        change = draw.randrange(5)
        if change == 0:
            found[at] ^= 1 << draw.randrange(8)
        elif change == 1:
            found[at : at + length] = draw.choice((b"\0", b"\xff", b"\x7f")) * length
        elif change == 2:
            found[at : at + length] = draw.randbytes(length)
        elif change == 3:
            found[at:at] = found[at : at + length]
        else:
            del found[at : at + length if draw.random() < 0.9 else None]
    return bytes(found)


def run(name: str, data: bytes) -> None:
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    TARGETS[name](data)
    assert time.process_time() - start < SECONDS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < GROWTH


@pytest.mark.parametrize("path", SEEDS, ids=lambda path: f"{path.parent.name}-{path.name[:12]}")
def test_corpus(path: Path) -> None:
    run(path.parent.name, path.read_bytes())


@pytest.mark.parametrize("path", SEEDS, ids=lambda path: f"{path.parent.name}-{path.name[:12]}")
def test_mutations(path: Path) -> None:
    data = path.read_bytes()
    for seed in range(MUTATIONS):
        run(path.parent.name, mutated(data, seed))
