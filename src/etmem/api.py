"""The Python interface: ``etmem.profile``, ``etmem.load`` and the ``Profile`` that both give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from etmem.capture.metadata import CAPTURE_NOTE, EXIT_STATUS_NOTE, CaptureMetadata, decode, with_exit_status
from etmem.capture.options import (
    BackendOption,
    Capture,
    LoadMode,
    Preset,
    ProfileOptions,
    Runtime,
    ShapeOption,
    parse_backend_option,
    parse_shape,
)
from etmem.model.errors import InputError, UsageError
from etmem.model.summary import Environment, Summary, Target

if TYPE_CHECKING:
    from etmem.analysis.context import Context
    from etmem.program import Program
    from etmem.report.view import View
    from etmem.trace.tables import Trace

PROGRAM_SUFFIX = ".pte"


@dataclass(frozen=True, repr=False)
class Profile:
    """What one run was found to need."""

    summary: Summary
    trace_path: Path
    log_path: Path | None = None
    """ExecuTorch's own log, where the capture kept it."""
    describe: tuple[Path, ...] = ()
    """Descriptions of delegates that it was read with, over those that are known."""
    opened: View | None = field(default=None, compare=False)
    """The trace as it was read, where that was kept: a long one takes longer to read than to draw."""

    def text(self, *, full: bool = False, bytes_exact: bool = False, width: int = 80) -> str:
        """The report as text; ``full`` is what ``etmem profile --full`` prints."""
        from etmem.report.text import render

        return render(self.summary, width=width, bytes_exact=bytes_exact, full=full, trace_path=self.trace_path)

    def to_json(self) -> str:
        """``etmem.summary/1``; docs/reference/summary.md describes it."""
        from etmem.report.json import to_json

        return to_json(self.summary)

    def html(self, path: str | Path) -> None:
        """Write the page that ``etmem report --html`` writes. Raises EtmemError where it cannot be written."""
        self.export("html", path)

    def export(self, name: str, path: str | Path) -> None:
        """Write any report that ``etmem report`` has an option for: ``profile.export("pprof", "mlp.pb.gz")``."""
        from etmem.report.exports import BY_NAME, write

        if name not in BY_NAME:
            raise UsageError(f"no such report: {name!r}", f"there are {', '.join(BY_NAME)}")
        write(name, self.view(), Path(path))

    def view(self) -> View:
        """The trace opened for what its summary does not show. Raises TraceError."""
        opened = self.opened or view(self.trace_path, describe=self.describe)
        # Its own summary: that has the source lines that an ETRecord gave it.
        return replace(opened, summary=self.summary)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        peaks = (("load", self.summary.peaks.load), ("inference", self.summary.peaks.inference))
        sizes = [f"{at} {p.moment.private_bytes + p.moment.file_bytes:,} B" for at, p in peaks if p is not None]
        return f"<Profile {self.trace_path.name}: {', '.join(sizes) or 'no peak'}>"


def profile(model: str | Path, **options: object) -> Profile:
    """Run a ``.pte`` as ``etmem profile`` does. The options are the fields of ``ProfileOptions``.

    ``shapes`` and ``backend_options`` take the command line's spelling too; a path may be a string and a
    single value stand for a tuple: ``etmem.profile("m.pte", shapes="0=1x64", load_mode="file")``.
    Raises EtmemError; a program that fails gives a Profile with an issue, not an exception.
    """
    from etmem.capture.profile import profile as capture_profile

    chosen = profile_options(model, **options)
    return from_capture(capture_profile(chosen), chosen)


def load(
    trace: str | Path,
    *,
    etrecord: str | Path | None = None,
    trust_etrecord: bool = False,
    describe: str | Path | Iterable[str | Path] = (),
    keep: bool = False,
) -> Profile:
    """Read a trace that ``etmem profile`` or ``etmem run`` wrote. Raises TraceError.

    Source lines come from ``etrecord``, else from an ETRecord beside the program. Raises InputError for one that
    is given and is another program's. ``trust_etrecord`` reads it by ExecuTorch's own reader, which runs what stands
    in the file. ``describe`` are descriptions of delegates, over those that are known. ``keep`` holds what was read
    for the reports that show more than a summary.
    """
    from etmem.devtools.joining import with_record

    path = Path(trace)
    described = tuple(Path(str(item)) for item in _several(describe))
    opened = view(path, describe=described)
    summary = with_record(opened.summary, etrecord, trust=trust_etrecord)
    return Profile(summary, path, describe=described, opened=opened if keep else None)


def from_capture(capture: Capture, options: ProfileOptions | None = None, *, keep: bool = False) -> Profile:
    """The profile of a capture that has just ended, with the ETRecord and ETDump that the options ask for."""
    from etmem.devtools.joining import add_memory, with_record

    record, trust = (options.etrecord, options.trust_etrecord) if options else (None, False)
    opened = _view_of(capture)
    summary = with_record(opened.summary, record, trust=trust)
    if options is not None and options.etdump is not None and capture.exit_status == 0:
        add_memory(options.etdump, capture.trace_path, allocations=options.etdump_allocations)
    return Profile(summary, capture.trace_path, capture.log_path, capture.describe, opened if keep else None)


def _view_of(capture: Capture) -> View:
    """A capture that has just ended."""
    from etmem.trace.reader import read

    metadata = CaptureMetadata(
        capture.target, capture.environment, tuple(str(path) for path in capture.programs), capture.issues
    )
    return _view(read(capture.trace_path), metadata, capture.trace_path, capture.describe)


def summarize_trace(path: Path, describe: Sequence[Path] = ()) -> Summary:
    """The summary of a trace by what stands in it alone."""
    return view(path, describe=describe).summary


def analyze_trace(path: Path, describe: Sequence[Path] = ()) -> tuple[Summary, Context]:
    """The summary of a trace and the account that it was made from, which still knows every block."""
    opened = view(path, describe=describe)
    return opened.summary, opened.context


def view(trace: str | Path, *, describe: Sequence[Path] = ()) -> View:
    """A trace opened for the reports that show more than its summary. Raises TraceError."""
    path = Path(trace)
    return _view(*_read_trace(path), path, describe)


def _read_trace(path: Path) -> tuple[Trace, CaptureMetadata]:
    from etmem.trace.reader import read

    trace = read(path)
    note = trace.note(CAPTURE_NOTE)
    metadata = decode(note) if note is not None else _unknown(trace)
    return trace, with_exit_status(metadata, trace.note(EXIT_STATUS_NOTE))


def _view(trace: Trace, metadata: CaptureMetadata, path: Path, describe: Sequence[Path]) -> View:
    from etmem.analysis.findings import findings
    from etmem.analysis.summarize import summary
    from etmem.report.view import View

    found = _context(trace, metadata, describe)
    return View(summary(found, findings), found, path)


def _context(trace: Trace, metadata: CaptureMetadata, describe: Sequence[Path]) -> Context:
    from etmem.analysis.accounting import account
    from etmem.analysis.options import SummaryOptions
    from etmem.analysis.summarize import context
    from etmem.delegates import descriptions

    options = SummaryOptions(
        target=metadata.target,
        environment=metadata.environment,
        # An emulator's pages are none of the program's.
        dry=metadata.target.dry or bool(metadata.environment.emulator),
        issues=metadata.issues,
    )
    return context(account(trace, options, descriptions(describe), _programs(trace, metadata)))


def _programs(trace: Trace, metadata: CaptureMetadata) -> dict[str, Program]:
    """The program files that the trace names, as far as they are still there and still the same."""
    from etmem.program import read
    from etmem.trace.tables import ScopeKind, as_number

    noted = {key: value for key, value in trace.notes if key.startswith("program.")}
    sizes = {as_number(value) for key, value in noted.items() if key.endswith(".bytes")} - {None}
    paths = [*metadata.programs, *(value for key, value in noted.items() if key.endswith(".path"))]
    paths += [scope.name for scope in trace.scopes.values() if scope.kind is ScopeKind.PROGRAM_LOAD and scope.name]
    paths += [file.path for file in trace.file_maps if file.path.endswith(PROGRAM_SUFFIX)]
    found: dict[str, Program] = {}
    for path in dict.fromkeys(paths):
        try:
            program = read(Path(path))
        except (InputError, OSError):
            continue
        # Exported again since: its offsets and constants would be read into the old trace.
        if not sizes or program.file_bytes in sizes:
            found[path] = program
    return found


def _unknown(trace: Trace) -> CaptureMetadata:
    """For a trace without a capture note: a process that was started with the agent by hand."""
    header = trace.header
    target = Target(
        arch=header.arch,
        cpu="",
        isa="",
        pointer_bytes=header.pointer_bytes,
        executorch="unknown",
        runtime="command",
        loader="unknown",
        iterations=0,
        dry=False,
        preset="",
        backend_options=(),
        threads=None,
        inputs=(),
    )
    environment = Environment(
        etmem="unknown",
        python="unknown",
        platform="unknown",
        kernel="unknown",
        libc="unknown",
        allocator="unknown",
        page_bytes=header.page_bytes,
        memlock_limit_bytes=None,
        command=(),
        exit_status=None,
    )
    return CaptureMetadata(target, environment, ())


def profile_options(model: str | Path, **options: object) -> ProfileOptions:
    """ProfileOptions from loosely typed values. Raises UsageError for what does not exist or fit."""
    known = {field.name for field in fields(ProfileOptions)} - {"program"}
    for name in options:
        if name not in known:
            raise UsageError(f"profile has no option {name!r}", f"it has {', '.join(sorted(known))}")
    values = {name: _CONVERT[name](value) if name in _CONVERT else value for name, value in options.items()}
    return ProfileOptions(program=Path(model), **values)  # type: ignore[arg-type]


def _path(value: object) -> Path | None:
    if value is None or isinstance(value, Path):
        return value
    if isinstance(value, str):
        return Path(value)
    raise UsageError(f"not a path: {value!r}")


def _several(value: object) -> tuple[object, ...]:
    if value is None:
        return ()
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else (value,)


def _paths(value: object) -> tuple[Path | None, ...]:
    return tuple(_path(item) for item in _several(value))


def _shapes(value: object) -> tuple[ShapeOption, ...]:
    return tuple(item if isinstance(item, ShapeOption) else parse_shape(str(item)) for item in _several(value))


def _backend_options(value: object) -> tuple[BackendOption, ...]:
    given = _several(value)
    return tuple(item if isinstance(item, BackendOption) else parse_backend_option(str(item)) for item in given)


def _choice(kind: type[Enum], value: object) -> Enum:
    try:
        return kind(value)
    except ValueError:
        raise UsageError(f"{value!r} is none of {', '.join(str(member.value) for member in kind)}") from None


_CONVERT: dict[str, Callable[[object], object]] = {
    "methods": lambda value: tuple(str(item) for item in _several(value)),
    "inputs": _paths,
    "data": _paths,
    "libraries": _paths,
    "describe": _paths,
    "sources": lambda value: tuple(str(item) for item in _several(value)),
    "shapes": _shapes,
    "backend_options": _backend_options,
    "output": _path,
    "executorch": _path,
    "etrecord": _path,
    "etdump": _path,
    "load_mode": lambda value: _choice(LoadMode, value),
    "preset": lambda value: _choice(Preset, value),
    "runtime": lambda value: _choice(Runtime, value),
}
