"""What a dry run leaves out: answers in place of a delegate's arithmetic, and issues that say so.

The agent answers for the delegates that etmem describes itself; what a user's description names is answered by a
library made for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from etmem.capture import build
from etmem.delegates import descriptions, given
from etmem.model.summary import Issue
from etmem.model.words import IssueCode, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from etmem.capture.options import Progress
    from etmem.delegates import Description

_MOST_NAMED = 4
_ANSWERS = """\
// What a dry run answers in place of the functions that descriptions name.
#include <string.h>

#include "etmem/etmem.h"

static void tell(const char* symbol) {
  const etmem_api* api = etmem_get_api();
  if (api != nullptr) api->note(api->string("dry.symbol", 10), api->string(symbol, strlen(symbol)));
}
"""
_ANSWER = """
extern "C" __attribute__((visibility("default"))) int %(symbol)s() {
  static bool told;
  if (!told) tell("%(symbol)s");
  told = true;
  return 0;
}
"""


def answers(describe: Sequence[Path], progress: Progress, toolchain: build.Toolchain | None = None) -> Path | None:
    """A library whose functions answer 0 in place of those that the user's descriptions name; None without any.

    Raises ``BuildError``.
    """
    symbols = sorted({found.dry.symbol for found in given(describe).values() if found.dry.symbol})
    if not symbols:
        return None
    source = _ANSWERS + "".join(_ANSWER % {"symbol": symbol} for symbol in symbols)
    return build.generated("answers.so", source, progress, toolchain)


def dry_issues(backends: Iterable[str], operators: Iterable[str], describe: Sequence[Path] = ()) -> tuple[Issue, ...]:
    """Of a dry run with these delegates and, outside of them, these operators."""
    known = descriptions(describe)
    computed = sorted(set(operators))
    unsupported = sorted(backend for backend in set(backends) if not _can_be_dry(known.get(backend)))
    return (_outputs(computed), *(_unsupported(backend, known) for backend in unsupported))


def _can_be_dry(description: Description | None) -> bool:
    return description is not None and description.dry.symbol is not None


def _outputs(computed: list[str]) -> Issue:
    named = ", ".join(computed[:_MOST_NAMED]) + (", ..." if len(computed) > _MOST_NAMED else "")
    still = f"; {len(computed)} operators outside of delegates did: {named}" if computed else ""
    return Issue(
        IssueCode.DRY_OUTPUTS_INVALID,
        Severity.INFO,
        f"dry: delegates allocated and did not compute{still}",
        "Outputs are not valid, and RSS says nothing: bytes are counted. Leave --dry out to measure.",
        {"operators": computed},
    )


def _unsupported(backend: str, known: Mapping[str, Description]) -> Issue:
    description = known.get(backend)
    reason = description.dry.reason if description is not None else "etmem has no description of it"
    return Issue(
        IssueCode.DRY_UNSUPPORTED,
        Severity.WARNING,
        f"{backend} cannot be run dry, so it computed: {reason.rstrip('.')}",
        "Its bytes are those of a real run.",
        {"backend": backend},
    )
