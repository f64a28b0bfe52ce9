"""What the words of a report mean and what to do about them. The texts are in explain.toml."""

from __future__ import annotations

import difflib
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from etmem.analysis.diff_model import MismatchCode
from etmem.model.errors import UsageError
from etmem.report.table import MIN_WIDTH, wrap
from etmem.report.units import clean

KINDS = (
    *("owner", "category", "phase", "figure", "balance line", "source", "certainty", "severity", "issue", "finding"),
    *("mismatch", "reason", "budget", "cycles", "matrix"),
)
_SOURCE = Path(__file__).with_name("explain.toml")


@dataclass(frozen=True)
class Entry:
    word: str
    kind: str
    means: str
    do: str


@cache
def entries() -> dict[str, Entry]:
    """All entries by word, in the order of the file."""
    data = tomllib.loads(_SOURCE.read_text(encoding="utf-8"))
    return {word: Entry(word, **table) for word, table in data.items()}


def find(text: str) -> Entry:
    """The entry of a word as a user may spell it: any case, blanks or dashes for underscores, with what a report
    prints around it (``planned[1]``, ``delegate:XnnpackBackend``). Raises UsageError with near misses."""
    word = re.sub(r"[\s\-]+", "_", text.strip().lower())
    for form in (word, re.sub(r"(:|\[).*", "", word), *_rewritten(word)):
        if form in entries():
            return entries()[form]
    near = difflib.get_close_matches(word, entries(), n=3, cutoff=0.5)
    hint = f"did you mean {', '.join(near)}?" if near else "etmem explain lists all words"
    raise UsageError(f"no such word: {clean(text, 60)!r}", hint)


def _rewritten(word: str) -> list[str]:
    """Names that stand for a word of the vocabulary."""
    if word.startswith("libraries_of_"):
        return ["libraries_of"]
    if re.match(r"planned\b|planned\[", word):
        return ["planned_memory"]
    # The first line of a diff names mismatches in short: isa, inputs, dry.
    short = [code.value for code in MismatchCode if code.short.replace(" ", "_") == word]
    return ["delegate"] if re.search(r"backend(\[[\d.,]+\])?$", word) else short


def render(entry: Entry, width: int = MIN_WIDTH) -> str:
    lines = [
        f"{entry.word}  ({entry.kind})",
        *wrap(entry.means, width),
        *wrap(entry.do, width, first="do: ", rest="    "),
    ]
    return "\n".join(lines) + "\n"


def render_index(width: int = MIN_WIDTH) -> str:
    """All words, by kind."""
    lines: list[str] = []
    for kind in KINDS:
        words = [entry.word for entry in entries().values() if entry.kind == kind]
        indent = " " * 14
        lines += wrap(", ".join(words), width, first=kind.ljust(14), rest=indent)
    return "\n".join(lines) + "\n"
