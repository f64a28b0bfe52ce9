"""Which finding of one run is which of the other's: by what it is about, then by its size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from etmem.model.summary import Finding
from etmem.model.words import FindingCode

Pair = tuple[Finding | None, Finding | None]


def pairs(a: Sequence[Finding], b: Sequence[Finding]) -> Iterator[Pair]:
    """Every finding of both runs once, with its counterpart or None, in the order of ``a`` and then of ``b``.

    Findings about one thing (one code, owner, method and backend) are paired so that the least bytes lie between
    them: one that comes or goes is then the one that has no counterpart, whatever place it has in its list.
    """
    free: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for at, finding in enumerate(b):
        free[_subject(finding)].append(at)
    partners = dict(_closest(a, b, free))
    for at, finding in enumerate(a):
        yield finding, b[partners[at]] if at in partners else None
    taken = set(partners.values())
    yield from ((None, finding) for at, finding in enumerate(b) if at not in taken)


def _closest(
    a: Sequence[Finding], b: Sequence[Finding], free: dict[tuple[str, ...], list[int]]
) -> Iterator[tuple[int, int]]:
    possible = [(abs(x.bytes - b[j].bytes), i, j) for i, x in enumerate(a) for j in free[_subject(x)]]
    left_a, left_b = set(range(len(a))), set(range(len(b)))
    for _, i, j in sorted(possible):
        if i in left_a and j in left_b:
            left_a.remove(i)
            left_b.remove(j)
            yield i, j


def _subject(finding: Finding) -> tuple[str, ...]:
    """What a finding is about. Of the first inference's growth the owner is only the largest of several."""
    owner = "" if finding.code is FindingCode.FIRST_INFERENCE_GROWS else finding.owner
    instance = str(finding.detail.get("instance") or "")
    method = str(finding.detail.get("method") or instance.rpartition("/")[0])
    return (finding.code.value, owner, method, str(finding.detail.get("backend") or ""))
