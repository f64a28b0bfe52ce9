"""What changed from run A to run B. Pure; only counted bytes enter, RSS and the host stand beside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from etmem.analysis.diff_blocks import BlockGroup, block_changes, largest_blocks, operator_changes
from etmem.analysis.diff_comparable import comparable, mismatches
from etmem.analysis.diff_model import Beside, Diff, MismatchCode, Spoils
from etmem.analysis.diff_moments import INSTANTS, category_changes, instance_changes, moment, peak_changes
from etmem.analysis.diff_phases import arena_changes, phase_changes
from etmem.analysis.diff_reasons import reasons
from etmem.model.summary import Summary
from etmem.model.words import HOST, Category

_SPOILED_BY = {"load": Spoils.LOAD, "inference": Spoils.INFERENCE, "steady": Spoils.INFERENCE}


def diff(
    a: Summary,
    b: Summary,
    *,
    names: tuple[str, str] = ("a", "b"),
    blocks: tuple[Sequence[BlockGroup], Sequence[BlockGroup]] | None = None,
) -> Diff:
    """The change from ``a`` to ``b``.

    ``blocks`` are those of two traces (``diff_blocks.all_blocks``); without them the largest blocks of the
    summaries are compared. Where the two are not like for like, single blocks are not compared at all.
    """
    found = mismatches(a, b)
    owners_known = not any(mismatch.code is MismatchCode.OWNERS_WITHHELD for mismatch in found)
    by_block = comparable(found, Spoils.BLOCKS)
    old, new = blocks if blocks is not None else (largest_blocks(a), largest_blocks(b))
    changed_blocks = block_changes(old, new, complete=blocks is not None) if by_block else ()
    can_compare = {at: comparable(found, spoiled) for at, spoiled in _SPOILED_BY.items()}
    return Diff(
        a=names[0],
        b=names[1],
        mismatches=found,
        peaks=peak_changes(a, b, can_compare),
        changes=category_changes(a, b) if owners_known else (),
        instances=instance_changes(a, b) if owners_known else (),
        phases=phase_changes(a, b, allocations=comparable(found, Spoils.ALLOCATIONS)),
        arenas=arena_changes(a, b),
        operators=operator_changes(old, new) if by_block else (),
        blocks=changed_blocks,
        blocks_compared="no" if not by_block else "all" if blocks is not None else "largest",
        reasons=reasons(a, b, found),
        beside=tuple(_beside(a, b)),
    )


def _beside(a: Summary, b: Summary) -> Iterator[Beside]:
    for at in INSTANTS:
        tensors = [_host(one, at) for one in (a, b)]
        if tensors != [None, None]:
            yield Beside(f"host inputs_outputs, {at}", *tensors)
    for at in ("load", "inference"):
        growth = [rss_growth(one, at) for one in (a, b)]
        if growth != [None, None]:
            yield Beside(f"RSS growth, {at}", *growth)


def _host(summary: Summary, at: str) -> int | None:
    known = moment(summary, at)
    if known is None:
        return None
    parts = (part for one in known.owners if one.owner == HOST for part in one.categories)
    return sum(part.private_bytes + part.file_bytes for part in parts if part.category is Category.INPUTS_OUTPUTS)


def rss_growth(summary: Summary, at: str) -> int | None:
    """The kernel's high water of load or inference over RSS before the first phase; null where it is not known."""
    start = next((phase.rss.start_bytes for phase in summary.phases if phase.rss is not None), None)
    high = next((water.high_water_bytes for water in summary.high_waters if water.at == at), None)
    return None if start is None or high is None else high - start
