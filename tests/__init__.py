"""Tests of etmem: ``python -m pytest`` from the repository's root."""
