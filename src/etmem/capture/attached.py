"""``with etmem.trace("run.etmem") as t:``: recording a running interpreter, or a part of what it does."""

from __future__ import annotations

import ctypes
import html
import os
import platform
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeAlias

from etmem.capture import build, client, machine
from etmem.capture.asking import note_of
from etmem.capture.executorch import UNKNOWN_VERSION
from etmem.capture.metadata import CAPTURE_NOTE, CaptureMetadata, encode, notes_variable
from etmem.model.errors import CaptureError, UsageError
from etmem.model.summary import Target
from etmem.model.words import IssueCode
from etmem.sources import INTERVAL_SECONDS, MemorySource, Sampler, source
from etmem.trace.tables import WINDOW_NOTE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from etmem.api import Profile
    from etmem.model.summary import Summary

_Paths: TypeAlias = "str | Path | Sequence[str | Path]"
_STACKS_VARIABLE = "ETMEM_STACKS"


class _Options(ctypes.Structure):
    """``recording_options`` of native/agent/recording.h, field by field."""

    _fields_ = (
        ("status", ctypes.c_uint32),
        ("keep_rusage", ctypes.c_bool),
        ("dry", ctypes.c_bool),
        ("emulated", ctypes.c_bool),
        ("all_stacks", ctypes.c_bool),
        ("every_stack", ctypes.c_bool),
        ("stacks", ctypes.c_char_p),
        ("hooks_path", ctypes.c_char_p),
        ("builder", ctypes.c_char_p),
        ("notes", ctypes.c_char_p),
    )


_Edge = ctypes.CFUNCTYPE(None)
_kept: list[_Options] = []
"""The agent keeps pointers into them for as long as it records."""

_open: list[Recording] = []
"""The one that records, then those inside it."""


class Recording:
    """A trace of this process between ``__enter__`` and ``__exit__``, in a file of its own.

    What was loaded before is not in it: blocks that are older count as the process's, and methods that were loaded
    before run unseen, which an issue says. As many as you like, one after the other or one inside the other: an inner
    one has the phases that begin in it, and all blocks that the outer has recorded. Raises ``UsageError`` under
    ``etmem run``, which records the process already, and ``CaptureError`` where it cannot be written.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        stacks: bool = False,
        describe: _Paths = (),
        sources: Sequence[str | MemorySource] = (),
        interval_seconds: float = INTERVAL_SECONDS,
    ) -> None:
        """``stacks``: every allocation inside a phase records its native call stack; ``describe``: see ``load``.

        ``sources`` are asked at the edges of phases and every ``interval_seconds``, in this process: names, or objects
        with the methods of ``etmem.sources.MemorySource``.
        """
        self.path = Path(path)
        self._stacks = stacks
        self._describe = tuple(Path(path) for path in ((describe,) if isinstance(describe, str | Path) else describe))
        self._sources = tuple(source(one, os.getpid()) if isinstance(one, str) else one for one in sources)
        self._interval = interval_seconds
        self._sampler: Sampler | None = None
        self._profile: Profile | None = None
        self._agent: ctypes.CDLL | None = None
        self._begin_ns = 0

    def __enter__(self) -> Self:
        self._begin_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        if _open:
            _check_writable(self.path)
            if self._sources:
                hint = "name them there: its values are in this one too"
                raise UsageError("sources belong to the outer recording", hint)
            _open.append(self)
            return self
        agent = ctypes.CDLL(str(build.agent()))
        options = self._options()
        _kept.append(options)
        raw = self._raw()
        error = agent.etmem_attach(os.fsencode(raw.absolute()), ctypes.byref(options))
        if error:
            raise _cannot_attach(error, raw)
        self._agent = agent
        _open.append(self)
        client.adopt(agent)
        if self._sources:
            self._ask(agent)
        return self

    def _ask(self, agent: ctypes.CDLL) -> None:
        self._sampler = Sampler(self._sources, client.count, self._interval, client.profilers_own)
        self._edge = _Edge(self._sampler.ask)
        agent.etmem_on_edge(self._edge)
        self._sampler.start()

    def _ask_no_more(self, agent: ctypes.CDLL) -> dict[str, str]:
        """Why sources failed, as notes."""
        if self._sampler is None:
            return {}
        agent.etmem_on_edge(None)
        self._sampler.stop()
        return {f"issue.{IssueCode.SOURCE_FAILED}": f"{name}: {why}" for name, why in self._sampler.failures.items()}

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        from etmem.capture.session import keep
        from etmem.capture.trailer import append_notes

        _open.remove(self)
        if self._agent is not None:
            notes = self._ask_no_more(self._agent)
            self._agent.etmem_detach()
            self._agent = None
            if notes:
                append_notes(self._raw(), notes)
        else:
            shutil.copyfile(_open[0]._raw(), self._raw())  # noqa: SLF001 -- its own class
            append_notes(self._raw(), {WINDOW_NOTE: str(self._begin_ns)})
        keep(self._raw(), self.path)

    @property
    def profile(self) -> Profile:
        """What was recorded. Raises ``UsageError`` while the recording still runs."""
        if self in _open:
            raise UsageError("the trace is still being recorded", "ask for it after the with block")
        if self._profile is None:
            from etmem.api import load

            self._profile = load(self.path, describe=self._describe)
        return self._profile

    def summary(self) -> Summary:
        """``etmem.summary/1`` as dataclasses."""
        return self.profile.summary

    def __str__(self) -> str:
        return self.profile.text()

    def _repr_html_(self) -> str:
        text = str(self.path) if self in _open else str(self)
        return f"<pre>{html.escape(text)}</pre>"

    def _raw(self) -> Path:
        return self.path.with_name(self.path.name + ".raw")

    def _options(self) -> _Options:
        from etmem.delegates import stack_backends

        backends = ",".join(stack_backends(self._describe))
        os.environ[_STACKS_VARIABLE] = backends  # the hooks read it where they meet the first delegate
        metadata = CaptureMetadata(_target(), machine.environment((*sys.orig_argv,), os.environ), ())
        asked = dict(note_of(one, self._interval) for one in self._sources)
        notes = notes_variable({CAPTURE_NOTE: encode(metadata), **asked})
        return _Options(
            all_stacks=self._stacks,
            stacks=backends.encode(),
            builder=os.fsencode(sys.executable),
            notes=notes.encode(),
        )


def trace(
    path: str | Path,
    *,
    stacks: bool = False,
    describe: _Paths = (),
    sources: Sequence[str | MemorySource] = (),
    interval_seconds: float = INTERVAL_SECONDS,
) -> Recording:
    """Record this process: ``with etmem.trace("run.etmem") as t: ...``, then ``t.summary()``."""
    return Recording(path, stacks=stacks, describe=describe, sources=sources, interval_seconds=interval_seconds)


def _check_writable(path: Path) -> None:
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise CaptureError(f"cannot write {path}", "name another place for the trace")


def _target() -> Target:
    cpu, isa = machine.cpu()
    return Target(
        arch=platform.machine(),
        cpu=cpu,
        isa=isa,
        pointer_bytes=machine.POINTER_BYTES,
        executorch=_version(),
        runtime="attached",
        loader="",
        iterations=0,
        dry=False,
        preset="",
        backend_options=(),
        threads=None,
        inputs=(),
    )


def _version() -> str:
    from etmem.capture import executorch

    try:
        return executorch.find(None).version
    except CaptureError:
        return UNKNOWN_VERSION


def _cannot_attach(error: int, raw: Path) -> Exception:
    import errno

    if error == errno.EBUSY:
        return UsageError(
            "this process is being recorded already", "end that trace first; under `etmem run` there is one"
        )
    if error == errno.ENOSYS:
        return CaptureError("no call of this process can be followed", "start it with `etmem run -- COMMAND`")
    return CaptureError(f"cannot write {raw}: {os.strerror(error)}", "name another place for the trace")
