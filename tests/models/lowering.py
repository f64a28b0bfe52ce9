"""From an exported program to an ExecuTorch one."""

from __future__ import annotations

from typing import Any


def lower(
    programs: Any, partitioner: Any = None, constant_methods: dict[str, Any] | None = None, config: Any = None
) -> Any:
    """Lower one exported program, or a dict of them by method name, to what ``write`` takes.

    ``partitioner`` is one for all methods, a dict by method name, or None to delegate nothing.
    """
    from executorch.exir import to_edge_transform_and_lower

    if isinstance(programs, dict) and not isinstance(partitioner, dict):
        partitioner = dict.fromkeys(programs, partitioner)
    wrapped: Any = (
        {name: [one] if one else [] for name, one in partitioner.items()}
        if isinstance(partitioner, dict)
        else [partitioner]
        if partitioner
        else []
    )
    lowered = to_edge_transform_and_lower(programs, partitioner=wrapped, constant_methods=constant_methods)
    return lowered.to_executorch(config)


def xnnpack() -> Any:
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

    return XnnpackPartitioner()
