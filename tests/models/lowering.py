"""From an exported program to an ExecuTorch one."""

from __future__ import annotations

from typing import Any


def lower(programs: Any, partitioner: Any = None) -> Any:
    """Lower one exported program, or a dict of them by method name; by default nothing is delegated."""
    from executorch.exir import to_edge_transform_and_lower

    if isinstance(programs, dict):
        partitioner = {name: [partitioner] for name in programs} if partitioner else None
    else:
        partitioner = [partitioner] if partitioner else []
    return to_edge_transform_and_lower(programs, partitioner=partitioner).to_executorch()


def xnnpack() -> Any:
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

    return XnnpackPartitioner()
