"""One error hierarchy. Every error says what to do next."""

from __future__ import annotations


class EtmemError(Exception):
    """Something that the user can act on: one line, one hint, an exit code."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(EtmemError):
    """The command line, or an argument of the Python interface, is wrong."""

    exit_code = 2


class InputError(EtmemError):
    """A model, trace, input or option file is missing, unreadable or malformed."""


class ProgramError(InputError):
    """A .pte, .ptd or .bpte that cannot be read."""


class TraceError(InputError):
    """A trace that cannot be read."""


class CaptureError(EtmemError):
    """A capture could not be started or produced no trace."""


class BuildError(CaptureError):
    """A native part could not be compiled: no compiler, no headers, or a failed build."""


def reason(error: BaseException) -> str:
    """Why something could not be read, written or started, without the number and the path that OSError repeats."""
    return getattr(error, "strerror", None) or str(error)
