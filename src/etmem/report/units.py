"""Bytes, names and paths as text: ASCII, of known width, safe to print whatever the file held."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath

KIB = 1024
MIB = 1024 * 1024

_DTYPES = {"float": "f", "bfloat": "bf", "int": "i", "uint": "u", "complex": "c"}


@dataclass(frozen=True)
class Scale:
    """One unit for a whole table."""

    unit: str
    divisor: int

    def number(self, count: int) -> str:
        """A dash is zero; what is not zero never prints as one."""
        return "-" if count == 0 else self.plain(count)

    def plain(self, count: int) -> str:
        if self.divisor == 1:
            return f"{count:,}"
        value = count / self.divisor
        if abs(value) >= 999.95:
            return f"{value:.0f}"
        return f"{value:.1f}" if abs(value) >= 0.095 else f"{value:.2f}"

    def fine(self, count: int) -> str:
        """Two decimals: terms of a sum."""
        if self.divisor == 1:
            return f"{count:,}"
        value = count / self.divisor
        # The sum with zero takes the sign from what rounds to it.
        return f"{round(value, 2) + 0.0:.2f}" if abs(value) < 999.995 else f"{value:.1f}"

    def whole(self, count: int) -> str:
        """Without decimals where they say little: details in a narrow column."""
        return f"{count / self.divisor:.0f}" if self.divisor > 1 and count >= 5 * self.divisor else self.plain(count)

    def signed(self, count: int) -> str:
        return "-" if count == 0 else f"+{self.plain(count)}" if count > 0 else self.plain(count)

    def with_unit(self, count: int) -> str:
        return f"{self.plain(count)} {self.unit}"


def choose_scale(largest: int, *, exact: bool = False) -> Scale:
    """MiB or KiB by the largest figure of a table; bytes when all digits are asked for."""
    if exact:
        return Scale("B", 1)
    return Scale("MiB", MIB) if largest >= MIB else Scale("KiB", KIB)


def file_size(count: int, *, exact: bool = False) -> str:
    """A file's size in a unit of its own."""
    if exact or count < KIB:
        return f"{count:,} B"
    if count < MIB // 10:
        return f"{count / KIB:.1f} KiB"
    value = count / MIB
    return f"{value:.2f} MiB" if value < 1 else f"{value:.1f} MiB"


def ratio(count: int, base: int) -> str:
    value = count / base
    return f"{value:.0f}" if value >= 9.95 else f"{value:.1f}"


def clean(text: str, limit: int | None = None) -> str:
    """One line of printable ASCII: names from a file may hold anything, escape sequences included."""
    escaped = "".join(c if " " <= c <= "~" else c.encode("unicode_escape").decode("ascii") for c in text)
    return shorten(escaped, limit) if limit is not None else escaped


def shorten(text: str, limit: int) -> str:
    """At most ``limit`` characters; both ends of a name tell it apart, so the middle goes."""
    if len(text) <= limit:
        return text
    if limit <= 4:
        return text[:limit]
    tail = (limit - 2) // 2
    return f"{text[: limit - 2 - tail]}..{text[len(text) - tail :]}"


def file_name(path: str | None, limit: int = 40) -> str:
    return clean(PurePath(path).name, limit) if path else "(program)"


def dtype(name: str) -> str:
    """``float32`` as ``f32``."""
    match = re.fullmatch(r"([a-z]+?)(\d+)", name)
    if match is None or match[1] not in _DTYPES:
        return clean(name, 12)
    return f"{_DTYPES[match[1]]}{match[2]}"


def index_ranges(indices: list[int]) -> str:
    """``[0..23]``, ``[0,2..4]``."""
    runs: list[list[int]] = []
    for index in sorted(set(indices)):
        if runs and index == runs[-1][1] + 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return "[" + ",".join(str(a) if a == b else f"{a}..{b}" for a, b in runs) + "]"


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
