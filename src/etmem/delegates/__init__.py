"""One description per delegate, as data: symbols, threads, libraries, what instances share, how it runs dry."""

from etmem.delegates.description import Description, Dry, Evidence, Match, Rule, Share, Tested, ThreadRule
from etmem.delegates.known import descriptions, given, stack_backends
from etmem.delegates.loading import parse

__all__ = [
    "Description",
    "Dry",
    "Evidence",
    "Match",
    "Rule",
    "Share",
    "Tested",
    "ThreadRule",
    "descriptions",
    "given",
    "parse",
    "stack_backends",
]
