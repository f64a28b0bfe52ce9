"""From a trace to its summary: pure functions over the trace's tables.

blocks -> scopes, threads -> owners -> ledger -> phases, peaks, arenas, delegates, balance, issues
"""

from etmem.analysis.options import SummaryOptions
from etmem.analysis.summarize import summarize

__all__ = ["SummaryOptions", "summarize"]
