"""From a file of another profiler to owners and categories."""

from __future__ import annotations

import gzip
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from etmem.delegates import Description, Evidence, descriptions
from etmem.importing import heapprofd, pprof
from etmem.importing.naming import Names, file_name, modules_of, names
from etmem.importing.owning import UNKNOWN, Place, place
from etmem.importing.profile import Frame, HeapProfile, Sample
from etmem.importing.wire import MalformedError
from etmem.model.errors import InputError, UsageError, reason
from etmem.model.sampled import (
    SampledBytes,
    SampledCategory,
    SampledModule,
    SampledOwner,
    SampledProfile,
    SampledStack,
)
from etmem.model.summary import Issue
from etmem.model.words import EXECUTORCH, HOST, IssueCode, Severity

_GZIP = b"\x1f\x8b"
_HINT = "a heap profile of heapprofd (a Perfetto trace), or a pprof profile of live memory (profile.proto, gzip)"
_ORDER = {EXECUTORCH: 1, HOST: 2, UNKNOWN: 3}
_MUCH_UNNAMED = 0.1


def import_profile(
    path: Path, *, symbols: Sequence[Path] = (), describe: Sequence[Path] = (), process: int | None = None
) -> SampledProfile:
    """Owners and categories of a profile, by call stack.

    ``symbols`` are unstripped libraries, for modules whose functions the profile does not name; ``describe`` are
    descriptions of delegates over those that are known. Raises InputError and UsageError.
    """
    profile = _read(path, process)
    known = descriptions(describe)
    named = names(profile, symbols)
    rows = [(sample, named.of(sample.stack)) for sample in profile.samples]
    placed = [(sample, found, place(found, known)) for sample, found in rows]
    return SampledProfile(
        file=path.name,
        format=profile.format,
        process=profile.process,
        interval_bytes=profile.interval_bytes,
        moment=profile.moment,
        total=_sum(profile.samples),
        owners=_owners(placed),
        modules=tuple(_modules(profile, named)),
        stacks=_stacks(placed),
        issues=tuple(_issues(profile, placed, known)),
    )


def _read(path: Path, process: int | None) -> HeapProfile:
    try:
        data = path.read_bytes()
        if data.startswith(_GZIP):
            data = gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read: {reason(error)}", _HINT) from error
    try:
        # Both begin with a message in field 1, so what is inside has to tell.
        found = heapprofd.parse(data, process) if heapprofd.is_trace(data) else None
    except heapprofd.ProcessError as error:
        raise UsageError(f"{path.name}: {error}", "choose one with --process PID") from error
    except MalformedError:
        found = None
    try:
        return found or pprof.parse(data)
    except (MalformedError, pprof.NoHeapProfileError) as error:
        raise InputError(f"{path} is no heap profile: {error}", _HINT) from error


def _sum(samples: Sequence[Sample]) -> SampledBytes:
    return SampledBytes(
        sum(sample.live_bytes for sample in samples),
        sum(sample.live_blocks for sample in samples),
        sum(sample.allocated_bytes for sample in samples),
        sum(sample.allocated_blocks for sample in samples),
    )


_Placed = tuple[Sample, list[str], Place]


def _owners(placed: Sequence[_Placed]) -> tuple[SampledOwner, ...]:
    """Delegates by what they hold, then ExecuTorch, then the application."""
    groups: dict[str, dict[tuple[object, object], list[Sample]]] = defaultdict(lambda: defaultdict(list))
    where: dict[tuple[object, object], Place] = {}
    for sample, _, found in placed:
        key = (found.category, found.phase)
        where[key] = found
        groups[found.owner][key].append(sample)
    owners = []
    for owner, categories in groups.items():
        parts = [SampledCategory(where[key].category, where[key].phase, _sum(rows)) for key, rows in categories.items()]
        parts.sort(key=lambda part: (-part.figures.live_bytes, part.category, str(part.phase)))
        owners.append(SampledOwner(owner, _sum([s for rows in categories.values() for s in rows]), tuple(parts)))
    return tuple(sorted(owners, key=lambda one: (_ORDER.get(one.owner, 0), -one.figures.live_bytes, one.owner)))


def _stacks(placed: Sequence[_Placed]) -> tuple[SampledStack, ...]:
    groups: dict[tuple[tuple[str, ...], Place], list[Sample]] = defaultdict(list)
    for sample, found, where in placed:
        shown = tuple(_shown(frame, name) for frame, name in zip(sample.stack, found, strict=True))
        groups[shown[::-1], where].append(sample)
    rows = [
        SampledStack(where.owner, where.category, where.phase, where.operator, frames, _sum(samples))
        for (frames, where), samples in groups.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-row.figures.live_bytes, -row.figures.allocated_bytes, row.frames)))


def _shown(frame: Frame, name: str) -> str:
    return name or (f"[{file_name(frame.module)}]" if frame.module else "[unknown]")


def _modules(profile: HeapProfile, named: Names) -> Iterator[SampledModule]:
    seen = {frame for sample in profile.samples for frame in sample.stack}
    frames = Counter(frame.module for frame in seen)
    unnamed = Counter(frame.module for frame in seen if not named.of([frame])[0])
    for module in modules_of(profile):
        library = named.libraries.get(module)
        path = str(library.path) if library else ""
        yield SampledModule(module.path, module.build_id, path, frames[module], unnamed[module])


def _issues(
    profile: HeapProfile, placed: Sequence[_Placed], known: Mapping[str, Description]
) -> Iterator[Issue]:  # fmt: skip
    for remark in profile.remarks:
        yield Issue(IssueCode.PROFILE_REMARK, Severity.WARNING, f"its profiler says: {remark}", "", {})
    live = sum(sample.live_bytes for sample, _, _ in placed)
    blind = sum(sample.live_bytes for sample, _, found in placed if found.owner == UNKNOWN)
    if live and blind > _MUCH_UNNAMED * live:
        yield Issue(
            IssueCode.SYMBOLS_MISSING,
            Severity.ERROR,
            f"{100 * blind / live:.0f} % of the live bytes have no name on their call stacks: their owner is not known",
            "--symbols LIB gives the unstripped library; etmem import --full lists the modules",
            {"bytes": blind},
        )
    elif not any(found.owner not in (HOST, UNKNOWN) for _, _, found in placed):
        yield Issue(
            IssueCode.NO_EXECUTORCH,
            Severity.ERROR,
            "no function of ExecuTorch is on any call stack",
            "is its library stripped? --symbols LIB gives the unstripped one",
            {},
        )
    for backend in sorted({found.owner.partition(":")[2] for _, _, found in placed} - {""}):
        description = known.get(backend)
        if description is None:
            text = f"nothing is known about {backend}: all that it allocates is metadata"
            yield Issue(IssueCode.NO_DELEGATE_DESCRIPTION, Severity.INFO, text, "docs/delegates.md", {})
        elif description.tested.by is Evidence.READING:
            text = f"categories of {backend} are by reading: {description.tested.what}"
            yield Issue(IssueCode.DESCRIPTION_BY_READING, Severity.INFO, text, "docs/delegates.md", {})
