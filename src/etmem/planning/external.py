"""External data: what a program names, and whether the data files that are given hold it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from etmem.model.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from etmem.planning.estimate import Instance
    from etmem.program import ExternalData, Plan, Program

_NAMED = 3
_HINT = "Give every .ptd that was exported with the program."
Named = dict[str, int | None]
"""Key -> bytes; None where only the data tells."""


def external_names(
    program: Program, plans: Sequence[Plan], instances: Mapping[str, Sequence[Instance]]
) -> Named:  # fmt: skip
    """What methods and delegates load from outside of the program, as far as blobs are understood."""
    inside = {entry.key for entry in program.named_data}
    found: Named = {}
    for plan in plans:
        for tensor in map(plan.tensor, range(len(plan.values))):
            if tensor is not None and tensor.external and tensor.allocation is None and tensor.name:
                found[tensor.name] = tensor.nbytes
        for instance in instances.get(plan.name, ()):
            for use in instance.estimate.named_data if instance.estimate is not None else ():
                if use.key not in inside:
                    found.setdefault(use.key, None)
    return found


def check_data(wanted: Named, data: Sequence[ExternalData], *, all_known: bool) -> None:
    """Data that is given has to be the program's. ``all_known``: every delegate's blob is understood."""
    if not data:
        return
    held = {entry.key: file.segments[entry.segment].bytes for file in data for entry in file.named_data}
    missing = [key for key in wanted if key not in held]
    if missing:
        raise UsageError(f"the .ptd lacks {len(missing)} of {len(wanted)} tensors that the program names: "
                         f"{_listed(missing)}", _HINT)  # fmt: skip
    for key, size in wanted.items():
        if size is not None and held[key] < size:
            raise UsageError(f"{key} takes {size:,} bytes in the program and has {held[key]:,} in the .ptd", _HINT)
    if all_known and not wanted:
        raise UsageError("the program names no external data: the .ptd is not its own", "Leave --ptd out.")


def missing_note(wanted: Named, data: Sequence[ExternalData]) -> Iterator[str]:
    if wanted and not data:
        names = _listed(list(wanted))
        yield f"{len(wanted)} tensors of external data are in no figure ({names}): give them with --ptd"


def _listed(names: list[str]) -> str:
    shown = ", ".join(name[:60] for name in names[:_NAMED])
    return shown + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
