"""From a trace to its summary: pure functions over the trace's tables. ``summarize`` is the way through all of them.

blocks -> scopes, threads -> owners -> ledger -> phases, peaks, arenas, delegates, balance, issues

Nothing is imported here: a diff of two summaries needs no NumPy.
"""
