"""Stack traces as Python prints them, taken apart; the file is never opened and nothing is run."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FRAME = re.compile(r'^\s*File "(?P<file>[^"\n]*)", line (?P<line>\d{1,9}), in (?P<function>[^\n]*)$')
_LIBRARY = re.compile(r"(^|/)(site-packages|dist-packages|lib/python3[^/]*)/|(^|/)torch/(nn|_|fx|export)")


@dataclass(frozen=True)
class Frame:
    file: str
    line: int
    function: str
    text: str
    """The line as it was when the model was exported; empty where it was not recorded."""


def parse_stack_trace(trace: str) -> tuple[Frame, ...]:
    """The frames, outermost first, whatever else the text holds."""
    frames: list[Frame] = []
    for line in trace.splitlines():
        found = _FRAME.match(line)
        if found:
            frames.append(Frame(found["file"], int(found["line"]), found["function"].strip(), ""))
        elif frames and not frames[-1].text:
            last = frames[-1]
            frames[-1] = Frame(last.file, last.line, last.function, line.strip())
    return tuple(frames)


def own_frame(stack: tuple[Frame, ...]) -> Frame | None:
    """The innermost frame in the model's own code; a library's where there is no other."""
    own = [frame for frame in stack if not _LIBRARY.search(frame.file.replace("\\", "/"))]
    return own[-1] if own else stack[-1] if stack else None
