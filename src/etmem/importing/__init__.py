"""Heap profiles of other profilers: owners and categories by call stack, sampled and said to be so."""

from etmem.importing.importing import import_profile

__all__ = ["import_profile"]
