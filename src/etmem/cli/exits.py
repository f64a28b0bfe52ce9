"""Exit codes of every verb."""

OK = 0
FAILURE = 1
USAGE = 2
OVER_BUDGET = 3
WRONG_FIGURE = 4
"""An issue of severity error: a printed figure is wrong or missing."""
INTERRUPTED = 130
