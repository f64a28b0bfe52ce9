"""The plan's text read back, for the runner that is written in Python."""

from __future__ import annotations

import re
from dataclasses import dataclass

_INPUTS = frozenset({"tensor", "int", "bool", "double", "string", "none"})
_ESCAPE = re.compile("%(09|0A|0D|25)")


@dataclass(frozen=True)
class Item:
    """One line: its name and fields, and the inputs that follow a ``run``."""

    name: str
    fields: tuple[str, ...]
    children: tuple[Item, ...] = ()


def items(text: str) -> list[Item]:
    """The lines of a plan as ``plan.encode`` wrote them, inputs under their run."""
    found: list[Item] = []
    for line in text.removesuffix("\n").split("\n"):
        name, *fields = (_ESCAPE.sub(lambda match: chr(int(match[1], 16)), part) for part in line.split("\t"))
        item = Item(name, tuple(fields))
        if name in _INPUTS:
            run = found[-1]
            found[-1] = Item(run.name, run.fields, (*run.children, item))
        else:
            found.append(item)
    return found
