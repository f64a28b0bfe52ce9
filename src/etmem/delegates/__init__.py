"""One description per delegate, as data: symbols, threads, libraries, what instances share, how it runs dry."""

from etmem.delegates.description import Description, Dry, Match, Rule, Share, ThreadRule
from etmem.delegates.loading import descriptions, parse, stack_backends

__all__ = ["Description", "Dry", "Match", "Rule", "Share", "ThreadRule", "descriptions", "parse", "stack_backends"]
