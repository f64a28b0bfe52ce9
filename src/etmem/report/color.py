"""The text report in colour: what stands out by position in plain text stands out by weight on a terminal.

Only escape sequences are added, so columns stay where they are.
"""

from __future__ import annotations

import re

_RULES = (
    (re.compile(r"^(PEAK of \w+ +)(\S+ \S+)", re.MULTILINE), r"\1" + "\x1b[1m" + r"\2" + "\x1b[0m"),
    (re.compile(r"^([A-Z]{4,}(?: [A-Z]+)*)$", re.MULTILINE), "\x1b[1m" + r"\1" + "\x1b[0m"),
    (re.compile(r"^(\d+ )([a-z_]+)(?=  )", re.MULTILINE), r"\1" + "\x1b[36m" + r"\2" + "\x1b[0m"),
    (re.compile(r"^(error)(?= [a-z_]+)", re.MULTILINE), "\x1b[1;31m" + r"\1" + "\x1b[0m"),
    (re.compile(r"^(warning)(?= [a-z_]+)", re.MULTILINE), "\x1b[33m" + r"\1" + "\x1b[0m"),
    (re.compile(r"(?<= )(#+)$", re.MULTILINE), "\x1b[34m" + r"\1" + "\x1b[0m"),
    (re.compile(r"^((?:trace \S.*|beside: .*|  hint: .*))$", re.MULTILINE), "\x1b[2m" + r"\1" + "\x1b[0m"),
)


def colored(text: str) -> str:
    """The report's text with escape sequences. What it was made from holds none: names are cleaned before."""
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text
