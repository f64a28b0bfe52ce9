"""What a runner's failure means to its user: an issue of the capture, or an error of the command line."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from etmem.model.errors import CaptureError, UsageError
from etmem.model.summary import Issue
from etmem.model.words import IssueCode, Severity

if TYPE_CHECKING:
    from collections.abc import Sequence


class Exit(IntEnum):
    """Exit codes of native/runner/main.cpp and of the Python runner."""

    OK = 0
    BAD_PLAN = 64
    LIBRARY_FAILED = 65
    OPTION_REFUSED = 66
    PROGRAM_FAILED = 67
    METHOD_FAILED = 68
    INPUT_FAILED = 69
    EXECUTION_FAILED = 70
    OUTPUT_FAILED = 71
    DRY_STOPPED = 72


@dataclass(frozen=True)
class RunnerError:
    """One ``error`` line of a runner."""

    phase: str
    error: str
    """ExecuTorch's name of it, such as ``OperatorMissing``."""
    message: str


_MISSING_OPERATOR = re.compile(r"Missing operator: \[\d+\] (\S+)")
_MISSING_BACKEND = re.compile(r"Backend (\S+) is not registered")
_UNAVAILABLE_BACKEND = re.compile(r"Backend (\S+) is not available")
_LOG_LINE = re.compile(r"^[EF] \S+ executorch:\S+\] (.+)$", re.MULTILINE)
_HINTS = {"OpenvinoBackend": 'pip install "openvino>=2025.1,<2026", or set OPENVINO_LIB_PATH to libopenvino_c.so.'}


def parse_error(line: str) -> RunnerError | None:
    """The error in a progress line; None for any other line."""
    kind, _, rest = line.partition("\t")
    fields = rest.split("\t", 2)
    return RunnerError(*fields) if kind == "error" and len(fields) == 3 else None


def missing_operators(log: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_MISSING_OPERATOR.findall(log)))


def failure(status: int, errors: Sequence[RunnerError], log: str) -> Issue | None:
    """The issue of a runner that ended with ``status``; None where all went well.

    Raises ``UsageError`` and ``CaptureError`` where nothing was measured because of what was asked.
    """
    if status == Exit.OK:
        return None
    if status < 0:
        return _killed(-status, log)
    error = errors[-1] if errors else RunnerError("start", "Internal", f"the runner exited with {status}")
    if status == Exit.LIBRARY_FAILED:
        raise UsageError(f"--library cannot be opened: {error.message}")
    if status == Exit.OPTION_REFUSED:
        raise _refused(error, log)
    if status in (Exit.BAD_PLAN, Exit.OUTPUT_FAILED):
        raise CaptureError(f"{error.phase}: {error.message}")
    if status == Exit.DRY_STOPPED:
        return Issue(
            IssueCode.DRY_STOPPED,
            Severity.WARNING,
            f"{error.message} stopped with {error.error}: an operator refused what the dry inference left in a tensor",
            "What was allocated until there is counted. Run it without --dry for the rest.",
            {"method": error.message, "error": error.error},
        )
    message, hint = _explain(error, log)
    return Issue(IssueCode.PROGRAM_FAILED, Severity.ERROR, message, hint, {"phase": error.phase, "error": error.error})


def _refused(error: RunnerError, log: str) -> UsageError:
    if error.error == "NotFound":
        return UsageError(f"--backend-option {error.message}: this ExecuTorch has no such backend")
    option = error.message if error.phase == "option" else f"--{error.phase}"
    return UsageError(f"{option} is refused: {error.error}", _last_error(log))


def _killed(number: int, log: str) -> Issue:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    hints: dict[int, str] = {
        signal.SIGKILL: "Where the system was out of memory, `dmesg` says so; --dry needs less.",
        signal.SIGABRT: "ExecuTorch aborts on a failed check: " + (_last_error(log) or "see the log."),
    }
    return Issue(
        IssueCode.PROCESS_KILLED,
        Severity.ERROR,
        f"the process was ended by {name}; the trace holds everything up to there",
        hints.get(number, "See the log."),
        {"signal": number},
    )


def _explain(error: RunnerError, log: str) -> tuple[str, str]:
    operators = missing_operators(log)
    if operators:
        return (
            f"{error.message}: no kernel is registered for {', '.join(operators)}",
            "Give the library that has it with --library FILE, or export without it.",
        )
    backend = _MISSING_BACKEND.search(log)
    if backend:
        return (
            f"{error.message}: this ExecuTorch has no {backend[1]}",
            "Give the library that has it with --library FILE, or a build that does with --executorch PREFIX.",
        )
    backend = _UNAVAILABLE_BACKEND.search(log)
    if backend:
        hint = _HINTS.get(backend[1], "Its own libraries may be missing: see the log.")
        return f"{error.message}: {backend[1]} is not available here", hint
    what = {"program_load": "cannot be loaded", "method_load": "cannot be loaded", "inputs": "does not take its input"}
    text = f"{error.message} {what.get(error.phase, 'failed')}: {error.error}"
    return text, _last_error(log) or "See the log."


def _last_error(log: str) -> str:
    """The last line that ExecuTorch logged as an error, without its prefix."""
    found = _LOG_LINE.findall(log)
    return found[-1].strip() if found else ""
