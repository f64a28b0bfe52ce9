"""Owners, categories and delegate instances as a report spells them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from etmem.model.summary import DelegateInfo, Phase
from etmem.model.words import EXECUTORCH, HOST, PROFILER, Category, MemoryKind
from etmem.report.units import clean, index_ranges

_INSTANCE = re.compile(r"(?P<method>.*)/(?P<backend>[^/]*)\[(?P<index>\d+)\]", re.DOTALL)
_OWNERS = {EXECUTORCH: "ExecuTorch", HOST: "host", PROFILER: "profiler"}
_MEMORY = {
    MemoryKind.GPU: "GPU",
    MemoryKind.NPU: "NPU",
    MemoryKind.DMA_BUF: "DMA-BUF",
    MemoryKind.OTHER_DEVICE: "device",
}


@dataclass(frozen=True, order=True)
class Instance:
    """``forward/XnnpackBackend[2]``, taken apart."""

    method: str
    index: int


def parse_instance(text: str) -> Instance | None:
    match = _INSTANCE.fullmatch(text)
    return Instance(match["method"], int(match["index"])) if match else None


def owner_name(owner: str) -> str:
    return _OWNERS.get(owner) or clean(owner.removeprefix("delegate:"), 32)


def category_name(category: Category) -> str:
    return "inputs, outputs" if category is Category.INPUTS_OUTPUTS else category.value.replace("_", " ")


def memory_name(kind: MemoryKind) -> str:
    return _MEMORY[kind]


def owner_label(owner: str, delegates: tuple[DelegateInfo, ...], limit: int) -> str:
    """An owner and, for a delegate, its instances: ``XnnpackBackend[0..2]``, ``... prefill[0] decode[0]``."""
    name = owner_name(owner)
    mine = [d for d in delegates if owner == f"delegate:{d.backend}"]
    if not mine:
        return name
    programs = {d.program for d in mine}
    if len(programs) > 1:
        return f"{name} x{len(mine)} in {len(programs)} programs"
    by_method = _by_method(Instance(d.method, d.instance) for d in mine)
    if len(by_method) == 1:
        return name + index_ranges(next(iter(by_method.values())))
    label = f"{name} " + " ".join(clean(m, 16) + index_ranges(i) for m, i in by_method.items())
    return label if len(label) <= limit else f"{name} x{len(mine)} in {len(by_method)} methods"


def instances_label(instances: Iterable[Instance]) -> str:
    """``[0..2]``, or with the methods where there are several."""
    by_method = _by_method(instances)
    if len(by_method) == 1:
        return index_ranges(next(iter(by_method.values())))
    return " ".join(clean(m, 16) + index_ranges(i) for m, i in by_method.items())


def phase_name(phase: Phase, *, programs: int = 1) -> str:
    """``method_load forward``, ``inference forward 1``, with the program's number where there are several."""
    words = [phase.kind.value]
    if phase.method is not None:
        words.append(clean(phase.method, 24))
    if phase.iteration is not None:
        words.append(str(phase.iteration))
    if programs > 1:
        words.append(f"#{phase.program}")
    return " ".join(words)


def _by_method(instances: Iterable[Instance]) -> dict[str, list[int]]:
    by_method: dict[str, list[int]] = {}
    for instance in instances:
        by_method.setdefault(instance.method, []).append(instance.index)
    return by_method
