"""The closed forms of tests/models/cases.json as values to compare with."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.accuracy.captures import shape_options

FACTS: dict[str, Any] = json.loads((Path(__file__).parents[1] / "models" / "cases.json").read_text())
NAMES = tuple(name for name in FACTS if name != "about")

PIXELS, TAPS, POINTER = 256 * 256, 3 * 3, 8
TILES = range(1, 17)
"""Rows that one call of any of XNNPACK's convolution kernels computes."""


@dataclass(frozen=True)
class Case:
    name: str
    facts: dict[str, Any]

    @property
    def shapes(self) -> tuple[str, ...]:
        """Options of ``etmem profile`` that give the case its inputs."""
        return tuple(shape_options(self.facts["inputs"]))

    @property
    def inputs(self) -> str:
        return json.dumps(self.facts["inputs"])

    def blocks(self, at: str, isa: str, version: str = "") -> Counter[tuple[str, str | None, int]]:
        """What XNNPACK holds: the expected part of ``captures.blocks``; ``version`` is an older ExecuTorch's."""
        count: Counter[tuple[str, str | None, int]] = Counter()
        for block in self.facts.get(f"with_{version}", self.facts)["blocks"]:
            if at == "inference" or block["phase"] == "method_load":
                count[block["category"], block["phase"], sized(block, isa)] += block["count"]
        return count


def sized(block: dict[str, Any], isa: str) -> int:
    """A block's bytes on an instruction set; 0 where it is none of the known ones and the formula must do."""
    size: int = block["by_isa"].get(isa, 0) if "by_isa" in block else block["bytes"]
    return size


def indirection_sizes() -> set[int]:
    """Bytes of one convolution's indirection buffer in the ``convs`` cases, for every row tile."""
    return {-(-PIXELS // tile) * tile * TAPS * POINTER for tile in TILES}


CASES = {name: Case(name, FACTS[name]) for name in NAMES}
