"""``etmem.plan/1`` as JSON. The same plan gives the same bytes; fields come in a fixed order."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from etmem.model.codec import to_data

if TYPE_CHECKING:
    from etmem.planning.model import ProgramPlan


def to_json(plan: ProgramPlan) -> str:
    """ASCII, two spaces of indent, a newline at the end; ``schema`` is the first field."""
    data = to_data(plan)
    return json.dumps({"schema": data.pop("schema"), **data}, indent=2, ensure_ascii=True, allow_nan=False) + "\n"
