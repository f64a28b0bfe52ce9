"""What in the model makes its memory so, and what a change would save: largest saving first.

Every rule reads the trace's figures or the program file; none knows a model. What is small against the peak is
left out: a remark has to be worth a change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from etmem.analysis.findings_inference import first_inference_grows, indirection_buffers
from etmem.analysis.findings_program import dynamic_bounds, graph_breaks, kv_copies, transposed_weights
from etmem.analysis.findings_weights import double_weights, original_kept, packed_twice

if TYPE_CHECKING:
    from etmem.analysis.context import Context, Finder
    from etmem.model.summary import Finding

_RULES: tuple[Finder, ...] = (
    packed_twice,
    double_weights,
    original_kept,
    dynamic_bounds,
    kv_copies,
    transposed_weights,
    graph_breaks,
    first_inference_grows,
    indirection_buffers,
)


def findings(context: Context) -> tuple[Finding, ...]:
    """All findings: by saving, then by bytes, then in the order of the rules."""
    found = [finding for rule in _RULES for finding in rule(context)]
    return tuple(sorted(found, key=lambda finding: (-(finding.saving_bytes or 0), -finding.bytes)))
