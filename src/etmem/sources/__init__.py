"""Objects that are asked for named byte counts while a program runs: a GPU library, a control group, one of yours."""

from etmem.sources.finding import names, source
from etmem.sources.model import MemorySource, Reading
from etmem.sources.sampling import INTERVAL_SECONDS, Sampler

__all__ = ["INTERVAL_SECONDS", "MemorySource", "Reading", "Sampler", "names", "source"]
