"""speedscope.app's file format: a profile for each peak, the steady state and all that was allocated."""

from __future__ import annotations

import json

from etmem.report.stacks import AT, StackRow, path_of
from etmem.report.view import View

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_NAMES = ("live at the peak of load", "live at the peak of inference", "steady", "allocated")


def render(view: View) -> bytes:
    profiles = [_profile(view, index, name) for index, name in enumerate(_NAMES)]
    data = {
        "$schema": _SCHEMA,
        "exporter": "etmem",
        "name": view.title,
        "activeProfileIndex": AT.index(view.highest),
        "shared": {"frames": [{"name": name} for name in view.stacks.frames]},
        "profiles": profiles,
    }
    return json.dumps(data, separators=(",", ":"), ensure_ascii=True).encode("ascii")


def _profile(view: View, index: int, name: str) -> dict[str, object]:
    rows = [row for row in view.stacks.rows if _bytes(row, index)]
    weights = [_bytes(row, index) for row in rows]
    return {
        "type": "sampled",
        "name": name,
        "unit": "bytes",
        "startValue": 0,
        "endValue": sum(weights),
        "samples": [path_of(row) for row in rows],
        "weights": weights,
    }


def _bytes(row: StackRow, index: int) -> int:
    return row.live[index].bytes if index < len(AT) else row.allocated.bytes
