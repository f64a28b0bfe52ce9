"""Made-up frames of worlds get the names that they were given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from etmem.analysis.accounting import account
from etmem.analysis.context import Context
from etmem.analysis.findings import findings
from etmem.analysis.options import SummaryOptions
from etmem.analysis.summarize import context
from etmem.analysis.symbols import Symbolizer
from etmem.delegates import descriptions
from etmem.program import Program
from tests.analysis.worlds import OPTIONS, World


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch):
    """The context of a world, its program being the given one."""

    def tell(world: World, program: Program | None = None, options: SummaryOptions = OPTIONS) -> Context:
        def stack(_self: Symbolizer, frames: Sequence[int]) -> list[str]:
            return [world.symbols.get(frame, "") for frame in frames]

        monkeypatch.setattr(Symbolizer, "stack", stack)
        programs = {} if program is None else {str(program.path): program}
        found = context(account(world.trace(), options, descriptions(), programs))
        folded = context(account(world.trace(), replace(options, fold_from=0), descriptions(), programs))
        assert findings(folded) == findings(found)
        return found

    return tell
