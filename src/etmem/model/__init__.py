"""The words of etmem as enums and frozen dataclasses. Imports nothing of the rest."""
