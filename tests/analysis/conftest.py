from __future__ import annotations

from collections.abc import Sequence

import pytest

from etmem.analysis.symbols import Symbolizer


@pytest.fixture
def named_frames(monkeypatch: pytest.MonkeyPatch):
    """Lets a world's made-up frames have the names that it gave them."""

    def use(symbols: dict[int, str]) -> None:
        def stack(_self: Symbolizer, frames: Sequence[int]) -> list[str]:
            return [symbols.get(frame, "") for frame in frames]

        monkeypatch.setattr(Symbolizer, "stack", stack)

    return use
